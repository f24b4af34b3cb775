//! Silence is measured in the time in which the agent could hear.

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// Field case C001 and its kind: the agent is stopped for longer than the ttl, the job beats on.
#[test]
fn c001_an_agent_stopped_longer_than_the_ttl_calls_nobody_stale() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let beats = "while :; do latido beat --progress 0.5; echo x >> beats; sleep 0.2; done";
    world.detach("a", &["--ttl", "3s", "--interval", "1s"], beats);
    wait_until("a beat", || world.status("a").last_beat.is_some());
    agent.signal("STOP");
    let stopped_at = world.read("beats").lines().count();
    // 20 beats of 0.2 s and more: longer than the ttl, measured by the job itself.
    wait_until("4 s of beats", || world.read("beats").lines().count() >= stopped_at + 20);
    agent.signal("CONT");
    wait_until("the gap's entry", || {
        world.events().iter().any(|entry| serde_json::to_string(entry).unwrap().contains("could not hear"))
    });
    let verdicts = world.verdicts("a");
    assert!(!verdicts.contains(&"stale".to_owned()), "{verdicts:?}");
    assert_eq!(world.attempts("a"), [1]);
}

#[test]
fn a_job_that_falls_silent_is_stale_after_its_ttl_and_is_left_alone() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    world.detach("a", &["--ttl", "1s", "--interval", "300ms"], "latido beat; exec sleep 1000");
    wait_until("stale", || world.verdicts("a").contains(&"stale".to_owned()));
    assert_eq!(world.living("a", 1).len(), 1, "nothing that lives is ended without a setting");
}

#[test]
fn a_stale_job_is_ended_and_resumed_where_its_policy_says_so() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let options =
        ["--ttl", "1s", "--interval", "300ms", "--resume-on", "stale", "--backoff", "0s..0s", "--max-attempts", "2"];
    world.detach("a", &options, "echo $LATIDO_ATTEMPT >> marks; latido beat; exec sleep 1000");
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    assert!(world.end("a", 1).outcome.detail.len() > 3);
    assert!(world.living("a", 1).is_empty());
}

/// Field case C004: a job is killed while its agent sleeps; its ending is recorded once, with the right outcome.
#[test]
fn c004_a_job_that_dies_while_its_agent_is_stopped_is_recorded_once() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &["--resume-on", "failed"], "exec sleep 1000");
    wait_until("alive", || world.verdicts("a").contains(&"alive".to_owned()));
    agent.signal("STOP");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    let end = world.end("a", 1);
    agent.signal("CONT");
    wait_until("its ending", || world.count("attempt-ended", "a") > 0);
    assert_eq!((end.outcome.class, end.outcome.signal), (latido_protocol::Class::Lost, Some(9)));
    agent.end();
    let _agent = Agent::start(&world, BARE);
    assert_eq!((world.count("attempt-ended", "a"), world.count("lease-expired", "a")), (1, 1));
}
