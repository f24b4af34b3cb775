//! The registry of workers: both implementations, and what the store keeps of it.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, also in the functions it calls")]

use std::time::Duration;

use latido_driver::registry::{MemoryRegistry, StoredRegistry, WorkerRegistry, conformance};
use latido_driver::{Driver, Reading};
use latido_protocol::attempt::Advice;
use latido_protocol::registry::{Question, Registration, Reply, WorkerBeat};
use latido_protocol::{SubjectName, WallTime};
use latido_store::{MemoryStore, SqliteStore, Store};
use serde_json::Value;

const HISTORY_EVERY: Duration = Duration::from_secs(300);

fn stored<S: Store>(store: S) -> StoredRegistry<S> {
    StoredRegistry::new(Driver::new(store, HISTORY_EVERY).unwrap())
}

#[test]
fn the_registry_in_memory_passes_the_conformance_list() {
    conformance::run(|| Box::new(MemoryRegistry::default()));
}

#[test]
fn the_registry_over_a_store_passes_the_conformance_list() {
    conformance::run(|| Box::new(stored(MemoryStore::new("journal"))));
}

#[test]
fn the_registry_over_sqlite_passes_the_conformance_list() {
    let directory = tempfile::tempdir().unwrap();
    let mut count = 0;
    conformance::run(|| {
        count += 1;
        Box::new(stored(SqliteStore::open(&directory.path().join(format!("{count}.db"))).unwrap()))
    });
}

fn at(seconds: u64) -> Reading {
    let now = Duration::from_secs(seconds);
    Reading { monotonic: now, boottime: now, wall: WallTime::from_millis(1_700_000_000_000 + seconds * 1000) }
}

fn name(text: &str) -> SubjectName {
    text.parse().unwrap()
}

fn register(worker: &str) -> Question {
    Question::Register(Registration {
        worker: name(worker),
        group: name("executor"),
        instance: None,
        interval_s: None,
        ttl_s: None,
        missed: None,
        start_within_s: None,
        host: None,
        pid: None,
    })
}

fn claim(worker: &str, event: &str) -> Question {
    let (target, worker) = ("acme/shop#42".parse().unwrap(), name(worker));
    Question::Claim { target, event: event.parse().unwrap(), worker, epoch: None }
}

fn beat(worker: &str, epoch: Option<u64>) -> Question {
    let (sequence, state, active_job, errors) = (None, Some("idle".parse().unwrap()), None, 3);
    Question::Beat(WorkerBeat { worker: name(worker), epoch, sequence, state, active_job, errors })
}

/// The agent dies without a word, and another begins on its store.
fn killed<S: Store>(registry: StoredRegistry<S>) -> StoredRegistry<S> {
    stored(registry.into_driver().into_store())
}

#[test]
fn holders_and_epochs_survive_the_death_of_the_agent() {
    let mut registry = stored(MemoryStore::new("journal"));
    let Reply::Registered { epoch: first, .. } = registry.ask(register("a"), at(0)).unwrap() else { panic!() };
    let held = registry.ask(claim("a", "push"), at(0)).unwrap();
    let mut registry = killed(registry);
    assert_eq!(registry.ask(claim("a", "push"), at(5000)).unwrap(), held);
    assert_eq!(registry.ask(beat("a", Some(first)), at(5000)).unwrap(), Reply::Advised { advice: Advice::GoOn });
    let Reply::Claimed { epoch, .. } = held else { panic!("{held:?}") };
    let target = "acme/shop#42".parse().unwrap();
    assert_eq!(registry.ask(Question::Release { target, epoch }, at(5000)).unwrap(), Reply::Done);
    let mut registry = killed(registry);
    registry.ask(register("b"), at(6000)).unwrap();
    let Reply::Claimed { epoch: next, .. } = registry.ask(claim("b", "push"), at(6000)).unwrap() else { panic!() };
    assert!(next > epoch, "an epoch fell: {next} after {epoch}");
}

/// Steps every second.
fn pass<S: Store>(registry: &mut StoredRegistry<S>, from: u64, to: u64) {
    for second in from..=to {
        registry.sweep(at(second)).unwrap();
    }
}

// etcd-io/etcd#9395 (also #20273, gravitational/teleport#48445)
#[test]
fn c064_restarts_give_a_silent_worker_no_second_lease() {
    let mut registry = stored(MemoryStore::new("journal"));
    registry.ask(register("a"), at(0)).unwrap();
    registry.ask(beat("a", None), at(0)).unwrap();
    for life in 0..17_u64 {
        pass(&mut registry, 0, 12);
        registry = killed(registry);
        let verdict = registry.status().workers[0].verdict;
        if verdict == latido_protocol::status::Verdict::Stale {
            assert!(life >= 14, "after {life} lives of 12 s");
            return;
        }
    }
    panic!("a silent worker outlived 204 s of listening with a ttl of 180 s");
}

// sidekiq/sidekiq#3196 (also #3273)
#[test]
fn c092_what_was_lost_with_the_agent_is_recovered_when_its_lease_ends() {
    let mut registry = stored(MemoryStore::new("journal"));
    registry.ask(register("a"), at(0)).unwrap();
    registry.ask(beat("a", None), at(0)).unwrap();
    registry.ask(claim("a", "push"), at(0)).unwrap();
    let mut registry = killed(registry);
    pass(&mut registry, 7000, 7178);
    assert_eq!(registry.status().targets[0].holder, Some(name("a")));
    pass(&mut registry, 7179, 7182);
    assert_eq!((registry.status().targets[0].holder.clone(), registry.status().targets[0].pickups), (None, 1));
}

// healthchecks/healthchecks#664 (also louislam/uptime-kuma#1159)
#[test]
fn c086_nobody_is_declared_dead_by_the_agents_absence() {
    let mut registry = stored(MemoryStore::new("journal"));
    for number in 0..50 {
        registry.ask(register(&format!("w{number}")), at(0)).unwrap();
        registry.ask(beat(&format!("w{number}"), None), at(0)).unwrap();
    }
    pass(&mut registry, 0, 20);
    let mut registry = killed(registry);
    pass(&mut registry, 100_000, 100_030);
    for number in 0..49 {
        registry.ask(beat(&format!("w{number}"), None), at(100_030)).unwrap();
    }
    pass(&mut registry, 100_031, 100_165);
    let dead: Vec<_> = registry
        .status()
        .workers
        .into_iter()
        .filter(|row| row.verdict == latido_protocol::status::Verdict::Stale)
        .collect();
    assert_eq!(dead.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["w49"]);
}

#[test]
fn a_beat_is_in_the_store_within_a_second() {
    let mut registry = stored(MemoryStore::new("journal"));
    registry.ask(register("a"), at(0)).unwrap();
    registry.ask(beat("a", None), at(2)).unwrap();
    registry.ask(beat("a", None), at(3)).unwrap();
    registry.ask(beat("a", None), at(3)).unwrap();
    let wake_in = registry.sweep(at(3)).unwrap();
    assert!(wake_in <= Duration::from_secs(1), "{wake_in:?}");
    registry.sweep(at(4)).unwrap();
    let rows = registry.into_driver().into_store().registry().unwrap();
    let row = &rows.workers[0].beat;
    assert_eq!((row.sequence, row.errors, row.state.as_deref()), (3, 3, Some("idle")));
    assert_eq!(row.at_ms, Some(at(3).wall.as_millis()));
}

#[test]
fn what_is_released_and_forgotten_leaves_no_row() {
    let mut registry = stored(MemoryStore::new("journal"));
    registry.ask(register("a"), at(0)).unwrap();
    for _ in 0..5 {
        let Reply::Claimed { epoch, .. } = registry.ask(claim("a", "push"), at(1)).unwrap() else { panic!() };
        registry.ask(Question::Release { target: "acme/shop#42".parse().unwrap(), epoch }, at(1)).unwrap();
    }
    registry.ask(Question::OpenGroup { group: name("executor") }, at(2)).unwrap();
    let rows = registry.into_driver().into_store().registry().unwrap();
    assert_eq!((rows.workers, rows.targets), (Vec::new(), Vec::new()));
    assert_eq!(rows.groups.len(), 1);
}

fn assign(group: &str) -> Question {
    Question::Assign { target: "acme/shop#42".parse().unwrap(), group: name(group) }
}

/// The journal's entries of a kind, as they are read.
fn entries(registry: StoredRegistry<MemoryStore>, kind: &str) -> (StoredRegistry<MemoryStore>, Vec<Value>) {
    let mut driver = registry.into_driver();
    let rows = driver.store().entries_after(0, &[kind.to_owned()], 1000).unwrap();
    let entries = rows.iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect();
    (StoredRegistry::new(driver), entries)
}

/// A worker of this name claims the target and dies silently, from `second` on.
fn lose(registry: &mut StoredRegistry<MemoryStore>, worker: &str, second: u64) {
    let Question::Register(registration) = register(worker) else { panic!() };
    let registration = Registration { host: Some("web-3".to_owned()), pid: Some(77), ..registration };
    registry.ask(Question::Register(registration), at(second)).unwrap();
    registry.ask(beat(worker, None), at(second)).unwrap();
    let Reply::Claimed { .. } = registry.ask(claim(worker, "push"), at(second)).unwrap() else { panic!("{second}") };
    pass(registry, second + 1, second + 182);
}

#[test]
fn an_expired_lease_names_the_holder_the_target_and_the_silence() {
    let mut registry = stored(MemoryStore::new("journal"));
    lose(&mut registry, "a", 0);
    let (_, expired) = entries(registry, "lease-expired");
    assert_eq!(expired.len(), 1);
    let told = |key: &str| expired[0][key].clone();
    assert_eq!((told("subject"), told("target")), ("a".into(), "acme/shop#42".into()));
    assert_eq!((told("previous_holder"), told("pickups")), ("worker a on web-3, pid 77".into(), 1.into()));
    let silence = told("silence_s").as_f64().unwrap();
    assert!((180.0..182.0).contains(&silence), "{silence}");
}

#[test]
fn a_target_that_is_stuck_is_told_of_and_given_out_again_by_a_person() {
    let mut registry = stored(MemoryStore::new("journal"));
    for number in 0..5 {
        lose(&mut registry, &format!("w{number}"), 200 * number);
    }
    let (registry, told) = entries(registry, "agent");
    let stuck: Vec<&str> = told
        .iter()
        .filter(|entry| entry["what"] == "target-stuck")
        .filter_map(|entry| entry["detail"].as_str())
        .collect();
    assert_eq!(stuck, ["target acme/shop#42 lost 5 holders: `latido release acme/shop#42 --stuck`"]);
    let mut registry = killed(registry);
    registry.ask(register("last"), at(5000)).unwrap();
    for question in [claim("last", "push"), assign("executor")] {
        let reply = registry.ask(question, at(5000)).unwrap();
        assert!(matches!(&reply, Reply::Refused { because } if because.contains("lost 5 holders")), "{reply:?}");
    }
    let target = || "acme/shop#42".parse().unwrap();
    assert_eq!(registry.ask(Question::Revive { target: target() }, at(5001)).unwrap(), Reply::Done);
    assert!(matches!(registry.ask(claim("last", "push"), at(5001)).unwrap(), Reply::Claimed { .. }));
}

#[test]
fn an_assignment_to_a_group_that_nobody_knows_is_refused_and_makes_none() {
    let mut registry = stored(MemoryStore::new("journal"));
    let reply = registry.ask(assign("exekutor"), at(0)).unwrap();
    assert!(
        matches!(&reply, Reply::Refused { because } if because.starts_with("no group exekutor is known")),
        "{reply:?}"
    );
    registry.ask(register("a"), at(1)).unwrap();
    assert!(matches!(registry.ask(assign("executor"), at(1)).unwrap(), Reply::Claimed { .. }));
    assert!(matches!(registry.ask(assign("exekutor"), at(1)).unwrap(), Reply::Refused { .. }), "nor by asking twice");
}

#[test]
fn what_strangers_say_leaves_nothing_behind() {
    let mut registry = stored(MemoryStore::new("journal"));
    for number in 0..1000 {
        let stranger = format!("stranger-{number}");
        assert_eq!(registry.ask(beat(&stranger, None), at(0)).unwrap(), Reply::UnknownWorker);
        assert_eq!(registry.ask(claim(&stranger, "push"), at(0)).unwrap(), Reply::UnknownWorker);
        let superseded = Reply::Advised { advice: Advice::Superseded };
        assert_eq!(registry.ask(beat(&stranger, Some(7)), at(0)).unwrap(), superseded);
    }
    assert_eq!(registry.status(), latido_protocol::registry::RegistryStatus::default());
    let rows = registry.into_driver().into_store().registry().unwrap();
    assert_eq!((rows.groups, rows.workers, rows.targets), (vec![], vec![], vec![]));
}

fn sqlite(path: &std::path::Path) -> StoredRegistry<SqliteStore> {
    stored(SqliteStore::open(path).unwrap())
}

/// A registry on a file whose three workers beat at second 0 and at second 60, with the beats kept.
fn three_that_beat(path: &std::path::Path) {
    let mut registry = sqlite(path);
    for second in [0, 60] {
        for worker in ["a", "b", "c"] {
            if second == 0 {
                registry.ask(register(worker), at(second)).unwrap();
            }
            registry.ask(beat(worker, None), at(second)).unwrap();
        }
        pass(&mut registry, second, second + 60);
    }
}

#[test]
fn a_restart_knows_the_last_beats_that_were_kept_beside_the_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("latido.db");
    three_that_beat(&path);
    let mut registry = sqlite(&path);
    for worker in registry.status().workers {
        assert_eq!(worker.last_beat, Some(at(60).wall));
    }
    pass(&mut registry, 5000, 5110);
    assert!(registry.status().workers.iter().all(|worker| worker.verdict != latido_protocol::status::Verdict::Stale));
    pass(&mut registry, 5111, 5125);
    assert!(registry.status().workers.iter().all(|worker| worker.verdict == latido_protocol::status::Verdict::Stale));
}

#[test]
fn workers_whose_beats_were_lost_have_a_whole_ttl_and_the_journal_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("latido.db");
    three_that_beat(&path);
    std::fs::remove_file(directory.path().join("latido.db-beats-1")).unwrap();
    let mut registry = sqlite(&path);
    pass(&mut registry, 5000, 5179);
    assert!(registry.status().workers.iter().all(|worker| worker.verdict != latido_protocol::status::Verdict::Stale));
    let store = registry.into_driver().into_store();
    let entries = store.entries_after(0, &["agent".to_owned()], 100).unwrap();
    assert_eq!(entries.iter().filter(|entry| entry.body.contains("beats-lost")).count(), 1, "{entries:?}");
}

#[test]
fn a_dead_worker_has_its_last_beat_in_its_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("latido.db");
    three_that_beat(&path);
    let mut registry = sqlite(&path);
    pass(&mut registry, 5000, 5125);
    drop(registry);
    std::fs::remove_file(directory.path().join("latido.db-beats-1")).unwrap();
    for worker in sqlite(&path).status().workers {
        assert_eq!((worker.verdict, worker.last_beat), (latido_protocol::status::Verdict::Stale, Some(at(60).wall)));
    }
}
