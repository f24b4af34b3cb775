//! Silence is measured in the time in which the agent could hear.

use std::time::Duration;

use latido_protocol::status::{Phase, Verdict};

use super::BARE;
use crate::support::{Agent, World, wait_long_until, wait_until};

/// Time as a job counts it that nobody stops.
const CLOCK: &str = "while :; do echo x >> ticks; sleep 0.2; done";

/// Lets so many seconds pass of [`CLOCK`].
fn pass(world: &World, seconds: usize) {
    let ticks = || world.read("ticks").lines().count();
    let begun = ticks();
    wait_until("time", || ticks() >= begun + 5 * seconds);
}

/// What the agent said of itself, oldest first.
fn said_of_itself(world: &World, what: &str) -> usize {
    let is_it = |entry: &latido_protocol::journal::Entry| matches!(&entry.body, latido_protocol::journal::Body::Agent { what: said, .. } if said == what);
    world.events().iter().filter(|entry| is_it(entry)).count()
}

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

/// Field case C008 (google/fleetspeak PR #123): ten jobs sleep with their agent, five times as long as their ttl.
#[test]
fn c008_ten_jobs_that_slept_with_their_agent_are_neither_ended_nor_told_of() {
    let world = World::new();
    let agent = Agent::start(&world, "sink = []\n[alerts]\ngroup_for = \"300ms\"\n");
    world.detach("clock", &[], CLOCK);
    let names: Vec<String> = (1..=10).map(|number| format!("job-{number}")).collect();
    for name in &names {
        let options = ["--ttl", "4s", "--interval", "1s", "--resume-on", "lost,stale"];
        world.detach(name, &options, "while :; do latido beat; sleep 0.5; done");
    }
    wait_until("all beat", || names.iter().all(|name| world.status(name).last_beat.is_some()));
    let pids: Vec<u32> = names.iter().map(|name| world.start(name, 1).process.unwrap().pid).collect();
    agent.signal("STOP");
    pids.iter().for_each(|pid| world.kill(*pid, "STOP"));
    pass(&world, 20);
    agent.signal("CONT");
    pids.iter().for_each(|pid| world.kill(*pid, "CONT"));
    wait_until("the gap's entry", || said_of_itself(&world, "gap") > 0);
    pass(&world, 8);
    for (name, pid) in names.iter().zip(pids) {
        let status = world.status(name);
        assert_eq!((status.verdict, status.attempt, status.pid), (Verdict::Alive, 1, Some(pid)), "{status:?}");
        assert!(!world.verdicts(name).contains(&"stale".to_owned()));
    }
    assert_eq!(said_of_itself(&world, "gap"), 1, "one entry for one gap");
    let alerts = world.events().into_iter().filter(|entry| entry.body.kind() == "alert").collect::<Vec<_>>();
    assert!(alerts.is_empty(), "{alerts:?}");
}

/// What would be ended for silence is many at once: what stopped them all may have stopped what the agent hears by.
#[test]
fn jobs_that_all_fall_silent_together_are_the_agents_own_trouble_and_nobody_is_ended() {
    let world = World::new();
    let _agent = Agent::start(&world, "sink = []\n[alerts]\ngroup_for = \"300ms\"\n");
    let names: Vec<String> = (1..=6).map(|number| format!("job-{number}")).collect();
    for name in &names {
        let options = ["--ttl", "6s", "--interval", "1s", "--resume-on", "lost,stale"];
        world.detach(name, &options, "while :; do latido beat; sleep 0.3; done");
    }
    wait_until("all beat", || names.iter().all(|name| world.status(name).last_beat.is_some()));
    let processes: Vec<u32> = names.iter().map(|name| world.start(name, 1).process.unwrap().pid).collect();
    processes.iter().for_each(|pid| world.kill(*pid, "STOP"));
    wait_until("the doubt", || said_of_itself(&world, "blackout") > 0);
    processes.iter().for_each(|pid| world.kill(*pid, "CONT"));
    let is_alive = |name: &String| world.status(name).verdict == Verdict::Alive;
    wait_until("all are heard again", || names.iter().all(is_alive));
    for name in &names {
        assert_eq!((world.attempts(name), world.status(name).phase), (vec![1], Phase::Running));
    }
    assert_eq!(said_of_itself(&world, "blackout"), 1);
    let is_told = |entry: &latido_protocol::journal::Entry| {
        entry.body.kind() == "alert" && serde_json::to_string(entry).unwrap().contains("agent/blackout/agent")
    };
    wait_until("the alert about the agent itself", || world.events().iter().any(is_told));
}

/// What a hung job waits in is told with the verdict, and that it does nothing.
#[test]
fn a_hung_job_is_shown_with_what_it_waits_in() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let script = "latido beat --step one; mkfifo never; while :; do latido beat; sleep 1; done & cat never";
    world.detach("a", &["--hung-after", "3s", "--interval", "1s", "--ttl", "60s"], script);
    wait_long_until("the reason", Duration::from_secs(90), || {
        let status = world.status("a");
        status.verdict == Verdict::Hung && status.reason.contains("its first process sleeps")
    });
    assert!(world.latido(&["why", "a"]).stdout.contains("its first process sleeps"));
}
