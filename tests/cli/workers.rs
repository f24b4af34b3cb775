//! `latido worker`, `group`, `claim`, `assign`, `release`, `drain`, and the beats of workers, against a real agent.

use std::process::Stdio;

use latido_protocol::registry::{RegistryStatus, WorkerStanding};
use latido_protocol::status::{SubjectKind, Verdict};

use crate::support::{Agent, Ran, World, wait_until};

const BARE: &str = "sink = []\nrule = []\n";

/// A group whose workers are dead after a second.
const HASTY: &str =
    "sink = []\nrule = []\n[group.default]\ncapacity = 2\ninterval = \"250ms\"\nmissed = 4\nstart_within = \"1s\"\n";

fn status(world: &World) -> RegistryStatus {
    serde_json::from_str(&world.latido(&["worker", "list", "--json"]).ends_with(0).stdout).unwrap()
}

/// Registers a worker with a patient lease and answers its epoch.
fn register(world: &World, worker: &str) -> u64 {
    world.latido(&["worker", "register", worker]).ends_with(0).stdout.trim().parse().unwrap()
}

fn claim(world: &World, worker: &str, target: &str, event: &str) -> Ran {
    world.latido(&["claim", target, "--event", event, "--worker", worker])
}

fn claimed(ran: Ran) -> u64 {
    ran.ends_with(0).stdout.trim().parse().unwrap()
}

#[test]
fn a_claim_ends_with_0_and_a_second_one_with_1() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    register(&world, "a");
    register(&world, "b");
    let epoch = claimed(claim(&world, "a", "acme/shop#42", "push-7"));
    assert_eq!(claimed(claim(&world, "a", "acme/shop#42", "push-7")), epoch);
    let already = claim(&world, "b", "acme/shop#42", "push-7").ends_with(1);
    assert!(already.stderr.contains(&format!("worker a holds it, with epoch {epoch}")), "{}", already.stderr);
    world.latido(&["release", "acme/shop#42", "--epoch", &epoch.to_string()]).ends_with(0);
    world.latido(&["release", "acme/shop#42", "--epoch", &epoch.to_string()]).ends_with(1);
    let next = claimed(claim(&world, "b", "acme/shop#42", "push-7"));
    assert!(next > epoch);
    world.latido(&["release", "acme/shop#42", "--epoch", &epoch.to_string()]).ends_with(4);
}

#[test]
fn what_is_over_the_capacity_ends_with_4() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    register(&world, "a");
    claimed(claim(&world, "a", "one", "e"));
    let rejected = claim(&world, "a", "two", "e").ends_with(4);
    assert!(rejected.stderr.contains("as many as one may"), "{}", rejected.stderr);
    world.latido(&["assign", "two"]).ends_with(4);
}

#[test]
fn an_assignment_stays_with_its_worker() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    register(&world, "a");
    register(&world, "b");
    let first = world.latido(&["assign", "one"]).ends_with(0).stdout;
    assert!(first.starts_with("a "), "{first}");
    assert_eq!(world.latido(&["assign", "one"]).ends_with(0).stdout, first);
    assert!(world.latido(&["assign", "two"]).ends_with(0).stdout.starts_with("b "));
}

#[test]
fn a_beat_is_answered_go_on_drain_stop_and_superseded() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let epoch = register(&world, "a").to_string();
    let beat = || world.latido(&["beat", "a", "--epoch", &epoch, "--state", "working", "--errors", "2", "--answer"]);
    assert_eq!(beat().ends_with(0).stdout, "go-on\n");
    let held = claimed(claim(&world, "a", "one", "e"));
    world.latido(&["drain", "a"]).ends_with(0);
    assert_eq!(beat().ends_with(10).stdout, "drain\n");
    claim(&world, "a", "two", "e").ends_with(4);
    world.latido(&["release", "one", "--epoch", &held.to_string()]).ends_with(0);
    assert_eq!(beat().ends_with(11).stdout, "stop\n");
    let row = &status(&world).workers[0];
    assert_eq!((row.status, row.errors, row.state.as_deref()), (WorkerStanding::Draining, 2, Some("working")));
    world.latido(&["worker", "leave", "a", "--epoch", &epoch]).ends_with(0);
    assert_eq!(beat().ends_with(12).stdout, "superseded\n");
}

#[test]
fn a_silent_worker_is_declared_dead_and_its_target_goes_to_another() {
    let world = World::new();
    let _agent = Agent::start(&world, HASTY);
    let epoch = register(&world, "a").to_string();
    world.latido(&["beat", "a", "--epoch", &epoch]).ends_with(0);
    let lost = claimed(claim(&world, "a", "one", "e"));
    wait_until("the death", || status(&world).workers[0].status == WorkerStanding::Dead);
    let row = &status(&world).workers[0];
    assert_eq!((row.verdict, row.targets.len()), (Verdict::Stale, 0));
    assert_eq!((status(&world).targets[0].holder.clone(), status(&world).targets[0].pickups), (None, 1));
    world.latido(&["beat", "a", "--epoch", &epoch, "--answer"]).ends_with(12);
    world.latido(&["worker", "register", "b", "--interval", "1m", "--ttl", "5m"]).ends_with(0);
    assert!(claimed(claim(&world, "b", "one", "e")) > lost);
    let events = world.latido(&["events", "--json"]).ends_with(0).stdout;
    assert_eq!(events.matches("\"type\":\"lease-expired\"").count(), 1, "{events}");
}

#[test]
fn status_shows_workers_beside_jobs() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    register(&world, "a");
    let ran = world.latido(&["status", "a", "--json"]).ends_with(0);
    let document: latido_protocol::status::StatusDocument = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((document.subjects[0].kind, document.subjects[0].verdict), (SubjectKind::Worker, Verdict::Waiting));
    assert!(world.latido(&["worker", "list"]).ends_with(0).stdout.contains("active"));
}

#[test]
fn a_group_is_open_for_one_executor_at_a_time() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let first: u64 = world.latido(&["group", "open", "default"]).ends_with(0).stdout.trim().parse().unwrap();
    register(&world, "a");
    let mut command = world.latido_command(&["group", "open", "default", "--hold"]);
    let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    wait_until("the next instance", || status(&world).workers.is_empty());
    let refused = world.latido(&["group", "open", "default"]).ends_with(4);
    assert!(refused.stderr.contains("holds its lock"), "{}", refused.stderr);
    world.latido(&["worker", "register", "a", "--instance", &first.to_string()]).ends_with(4);
    register(&world, "a");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    world.latido(&["group", "open", "default"]).ends_with(0);
}

#[test]
fn holders_and_epochs_survive_kill_9_of_the_agent() {
    let world = World::new();
    let mut highest = 0;
    register_and_claim_over_deaths(&world, &mut highest);
    let agent = Agent::start(&world, BARE);
    assert_eq!(status(&world).workers.len(), 3);
    drop(agent);
}

/// Three agents, each killed right after it answered.
fn register_and_claim_over_deaths(world: &World, highest: &mut u64) {
    let mut held: Vec<(String, String, u64)> = Vec::new();
    for life in 0..3 {
        let agent = Agent::start(world, BARE);
        for (worker, target, epoch) in &held {
            assert_eq!(claimed(claim(world, worker, target, "e")), *epoch, "{worker} lost {target}");
            claim(world, "nobody", target, "e").ends_with(4);
        }
        let (worker, target) = (format!("w{life}"), format!("t{life}"));
        let registered = register(world, &worker);
        let epoch = claimed(claim(world, &worker, &target, "e"));
        agent.kill();
        assert!(registered > *highest && epoch > registered, "an epoch fell: {highest}, {registered}, {epoch}");
        *highest = epoch;
        held.push((worker, target, epoch));
    }
}

#[test]
fn without_an_agent_nobody_knows_of_claims() {
    let world = World::new();
    let unreachable = claim(&world, "a", "one", "e").ends_with(3);
    assert!(unreachable.stderr.contains("latido agent"), "{}", unreachable.stderr);
    world.latido(&["beat", "a", "--epoch", "1", "--answer"]).ends_with(3);
    world.latido(&["beat", "a", "--epoch", "1"]).ends_with(0);
}
