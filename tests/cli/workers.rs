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

/// Two subjects of one name would take each other's beats.
#[test]
fn a_name_belongs_to_one_subject() {
    let world = World::new();
    let _agent = Agent::start(&world, &format!("{BARE}[check.nightly]\nevery = \"1h\"\n"));
    register(&world, "builder");
    for (name, kind) in [("builder", "a worker"), ("nightly", "a check")] {
        let refused = world.latido(&["run", "--detach", "--name", name, "--", "sleep", "1000"]).ends_with(4);
        assert!(refused.stderr.contains(&format!("the name is in use by {kind}")), "{refused:?}");
    }
    world.detach("job", &[], "exec sleep 1000");
    for name in ["job", "nightly"] {
        world.latido(&["worker", "register", name]).ends_with(4);
    }
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

#[test]
fn a_worker_is_stopped_by_its_name_and_hears_it_with_its_next_beat() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    let epoch = register(&world, "a").to_string();
    let held = claimed(claim(&world, "a", "one", "e"));
    let told = world.latido(&["stop", "a"]).ends_with(0);
    assert!(told.stderr.contains("its next beat is answered with stop"), "{told:?}");
    let beat = world.latido(&["beat", "a", "--epoch", &epoch, "--answer"]).ends_with(11);
    assert_eq!(beat.stdout, "stop\n");
    claim(&world, "a", "two", "e").ends_with(4);
    assert_eq!(claimed(claim(&world, "a", "one", "e")), held, "it ends by itself, and keeps what it holds until then");
    let warned = world.latido(&["stop", "a", "--force"]).ends_with(0);
    assert!(warned.stderr.contains("latido sends it no signal"), "{warned:?}");
    world.latido(&["worker", "leave", "a"]).ends_with(0);
    world.latido(&["stop", "a"]).ends_with(4);
    let unknown = world.latido(&["stop", "nobody"]).ends_with(2);
    assert!(unknown.stderr.contains("there is no such subject"), "{unknown:?}");
}

/// A target is stuck at its first loss.
const STRICT: &str = "sink = []\nrule = []\n[group.default]\nmax_pickups = 1\n";

#[test]
fn a_stuck_target_is_refused_with_4_until_a_person_releases_it() {
    let world = World::new();
    let _agent = Agent::start(&world, STRICT);
    register(&world, "a");
    let first = claimed(claim(&world, "a", "one", "e"));
    // Another process takes the name over: what the one before held is lost.
    register(&world, "a");
    let refused = claim(&world, "a", "one", "e").ends_with(4);
    assert!(refused.stderr.contains("lost 1 holders") && refused.stderr.contains("--stuck"), "{refused:?}");
    world.latido(&["release", "one"]).ends_with(2);
    world.latido(&["release", "one", "--epoch", &first.to_string(), "--stuck"]).ends_with(2);
    world.latido(&["release", "one", "--epoch", &first.to_string()]).ends_with(1);
    world.latido(&["release", "one", "--stuck"]).ends_with(0);
    assert!(claimed(claim(&world, "a", "one", "e")) > first);
    world.latido(&["release", "one", "--stuck"]).ends_with(1);
    world.latido(&["release", "other", "--stuck"]).ends_with(1);
    let events = world.latido(&["events"]).ends_with(0).stdout;
    assert!(events.contains("target one, held by worker a on "), "{events}");
}

// temporalio/sdk-java#1258
#[test]
fn c032_a_beat_that_is_not_answered_is_sent_again_and_never_fails_its_worker() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let epoch = register(&world, "a").to_string();
    agent.end();
    // In the agent's place, in the middle of its restart: hangs up once, and then answers.
    let socket = std::os::unix::net::UnixListener::bind(world.state().agent_socket()).unwrap();
    let beat = world.spawn(&["beat", "a", "--epoch", &epoch, "--answer"]);
    drop(socket.accept().unwrap());
    let (mut stream, _) = socket.accept().unwrap();
    let mut asked = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut asked).unwrap();
    assert!(asked.contains("\"beat\""), "{asked}");
    let answer = latido_protocol::control::Answer::Registry {
        reply: latido_protocol::registry::Reply::Advised { advice: latido_protocol::attempt::Advice::GoOn },
    };
    std::io::Write::write_all(&mut stream, format!("{}\n", serde_json::to_string(&answer).unwrap()).as_bytes())
        .unwrap();
    assert_eq!(world.finish(beat).ends_with(0).stdout, "go-on\n");
    drop(socket);
    std::fs::remove_file(world.state().agent_socket()).unwrap();
    world.latido(&["beat", "a", "--epoch", &epoch]).ends_with(0);
}

#[test]
fn rubbish_is_refused_with_three_parts_and_changes_nothing() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    register(&world, "a");
    let (long, huge) = ("x".repeat(10_000), "9".repeat(30));
    let wrong: &[&[&str]] = &[
        &["worker", "register", "../etc"],
        &["worker", "register", "A b"],
        &["worker", "register", &long],
        &["worker", "register", ""],
        &["worker", "register", "b", "--group", "../x"],
        &["worker", "register", "b", "--ttl", "0"],
        &["worker", "register", "b", "--ttl", "-5s"],
        &["worker", "register", "b", "--missed", "0"],
        &["worker", "register", "b", "--missed", &huge],
        &["worker", "register", "b", "--ttl", "10s", "--missed", "3"],
        &["claim", &long, "--event", "e", "--worker", "a"],
        &["claim", "", "--event", "e", "--worker", "a"],
        &["claim", "a\nb", "--event", "e", "--worker", "a"],
        &["claim", "one", "--worker", "a"],
        &["claim", "one", "--event", "e", "--worker", "a", "--epoch", "-1"],
        &["release", "one", "--epoch", &huge],
        &["assign", "one", "--group", "-"],
        &["group", "open", "a/b"],
        &["drain", ""],
    ];
    for words in wrong {
        let ran = world.latido(words);
        assert_eq!(ran.code, Some(2), "{words:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{words:?}: {ran:?}");
    }
    let refused: &[&[&str]] = &[
        &["worker", "register", "b", "--ttl", "0s"],
        &["worker", "register", "b", "--interval", "1h", "--ttl", "1s"],
        &["worker", "register", "b", "--ttl", "300000h"],
        &["worker", "register", "b", "--missed", "1"],
        &["worker", "register", "b", "--instance", "77"],
        &["claim", "one", "--event", "e", "--worker", "nobody"],
        &["claim", "one", "--event", "e", "--worker", "a", "--epoch", "7777"],
        &["assign", "one", "--group", "exekutor"],
        &["drain", "nobody"],
        &["worker", "leave", "nobody"],
    ];
    for words in refused {
        let ran = world.latido(words);
        assert_eq!(ran.code, Some(4), "{words:?}: {ran:?}");
        assert!(ran.stderr.contains("error: ") && ran.stderr.contains("  next: "), "{words:?}: {ran:?}");
    }
    assert_eq!(status(&world).workers.len(), 1);
    assert_eq!(status(&world).targets.len(), 0);
}

#[test]
fn an_event_as_long_as_a_document_is_refused_or_kept_whole() {
    let world = World::new();
    let _agent = Agent::start(&world, BARE);
    register(&world, "a");
    let event = "e".repeat(100_000);
    let ran = claim(&world, "a", "one", &event);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr.len());
    assert_eq!(status(&world).targets.len(), 0);
}
