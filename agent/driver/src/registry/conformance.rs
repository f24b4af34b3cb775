//! The list that every implementation of the registry passes.

use std::num::NonZeroU32;
use std::time::Duration;

use latido_protocol::attempt::Advice;
use latido_protocol::registry::{Question, Registration, Reply, TargetName, WorkerBeat, WorkerStanding, WorkerStatus};
use latido_protocol::status::Verdict;
use latido_protocol::{Line, Span, SubjectName, WallTime};
use latido_store::StoreError;

use super::WorkerRegistry;
use crate::Reading;

/// One item: what it shows, and the check.
type Item = (&'static str, fn(&mut Desk<'_>) -> Result<(), StoreError>);

const ITEMS: [Item; 9] = [
    ("a record holds worker, start, last beat, status and targets (AC1)", a_record_is_whole),
    ("a claim is granted once, and to its holder again (AC2)", a_claim_is_granted_once),
    ("an assignment stays, and a full group rejects (AC3)", an_assignment_stays),
    ("a silent worker is dead and what it held is unassigned (AC4)", a_silent_worker_is_dead),
    ("a draining worker takes nothing more and ends cleanly (AC5)", a_draining_worker_ends),
    ("status is one snapshot of all workers (AC6)", status_is_one_snapshot),
    ("missing is apart from stale", missing_is_apart_from_stale),
    ("opening a group removes the rows of its older instance", opening_removes_older_rows),
    ("settings of the registration rule its lease", settings_rule),
];

/// Runs the whole list, each item on a new registry.
///
/// # Panics
///
/// At the first item that does not hold, with its words.
pub fn run(mut make: impl FnMut() -> Box<dyn WorkerRegistry>) {
    for (words, check) in ITEMS {
        let mut registry = make();
        if let Err(error) = check(&mut Desk { registry: &mut *registry, now: Duration::from_secs(1000) }) {
            panic!("{words}: the registry answers that it cannot {error}");
        }
    }
}

/// A registry and the time.
struct Desk<'a> {
    registry: &'a mut dyn WorkerRegistry,
    now: Duration,
}

#[expect(clippy::expect_used, reason = "the names are written below, and a check fails by a panic")]
fn name(text: &str) -> SubjectName {
    text.parse().expect("a name")
}

#[expect(clippy::expect_used, reason = "the lines are written below, and a check fails by a panic")]
fn line(text: &str) -> Line {
    text.parse().expect("a line")
}

#[expect(clippy::expect_used, reason = "the targets are written below, and a check fails by a panic")]
fn target(text: &str) -> TargetName {
    text.parse().expect("a target")
}

fn registration(worker: &str) -> Registration {
    Registration {
        worker: name(worker),
        group: name("executor"),
        instance: None,
        interval_s: Some(Span(Duration::from_secs(30))),
        ttl_s: None,
        missed: NonZeroU32::new(3),
        start_within_s: None,
        host: Some("pod-1".to_owned()),
        pid: Some(42),
    }
}

impl Desk<'_> {
    fn reading(&self) -> Reading {
        let wall = WallTime::from_millis(1_700_000_000_000 + u64::try_from(self.now.as_millis()).unwrap_or(u64::MAX));
        Reading { monotonic: self.now, boottime: self.now, wall }
    }

    fn ask(&mut self, question: Question) -> Result<Reply, StoreError> {
        let reading = self.reading();
        self.registry.ask(question, reading)
    }

    /// Lets time pass as the registry asks for it, so that no gap is found.
    fn pass(&mut self, seconds: u64) -> Result<(), StoreError> {
        let end = self.now + Duration::from_secs(seconds);
        loop {
            let wake_in = self.registry.sweep(self.reading())?;
            if self.now == end {
                return Ok(());
            }
            self.now = end.min(self.now + wake_in.max(Duration::from_millis(1)));
        }
    }

    fn register(&mut self, worker: &str) -> Result<u64, StoreError> {
        let reply = self.ask(Question::Register(registration(worker)))?;
        let Reply::Registered { epoch, .. } = reply else { panic!("not registered: {reply:?}") };
        Ok(epoch)
    }

    fn beat(&mut self, worker: &str, epoch: Option<u64>) -> Result<Advice, StoreError> {
        let (state, active_job) = (Some(line("working")), Some(line("build 7")));
        let beat = WorkerBeat { worker: name(worker), epoch, sequence: None, state, active_job, errors: 2 };
        let reply = self.ask(Question::Beat(beat))?;
        let Reply::Advised { advice } = reply else { panic!("no advice: {reply:?}") };
        Ok(advice)
    }

    fn claim(&mut self, worker: &str, of: &str, event: &str) -> Result<Reply, StoreError> {
        let (target, worker) = (target(of), name(worker));
        self.ask(Question::Claim { target, event: line(event), worker, epoch: None })
    }

    fn worker(&self, worker: &str) -> WorkerStatus {
        let found = self.registry.status().workers.into_iter().find(|status| status.name == name(worker));
        found.unwrap_or_else(|| panic!("worker {worker} has no row"))
    }
}

fn claimed(holder: &str, reply: &Reply) -> u64 {
    let Reply::Claimed { holder: found, epoch } = reply else { panic!("{holder} did not get it: {reply:?}") };
    assert_eq!(*found, name(holder));
    *epoch
}

fn a_record_is_whole(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    let epoch = desk.register("a")?;
    let registered = desk.reading().wall;
    desk.pass(10)?;
    desk.beat("a", Some(epoch))?;
    let held = desk.claim("a", "acme/shop#42", "push")?;
    claimed("a", &held);
    let row = desk.worker("a");
    assert_eq!((row.group, row.epoch, row.status), (name("executor"), epoch, WorkerStanding::Active));
    assert_eq!((row.registered, row.last_beat), (registered, Some(desk.reading().wall)));
    assert_eq!((row.host.as_deref(), row.pid, row.errors), (Some("pod-1"), Some(42), 2));
    assert_eq!((row.state.as_deref(), row.active_job.as_deref()), (Some("working"), Some("build 7")));
    assert_eq!((row.targets, row.verdict), (vec![target("acme/shop#42")], Verdict::Alive));
    Ok(())
}

fn a_claim_is_granted_once(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    desk.register("a")?;
    desk.register("b")?;
    let first = desk.claim("a", "t", "push")?;
    let epoch = claimed("a", &first);
    let already = Reply::AlreadyClaimed { holder: name("a"), epoch };
    assert_eq!(desk.claim("b", "t", "push")?, already);
    assert_eq!(desk.claim("b", "t", "comment")?, already);
    assert_eq!(desk.claim("a", "t", "push")?, first);
    assert_eq!(desk.claim("a", "t", "comment")?, already);
    assert_eq!(desk.ask(Question::Release { target: target("t"), epoch })?, Reply::Done);
    assert_eq!(desk.ask(Question::Release { target: target("t"), epoch })?, Reply::NotClaimed);
    let next = desk.claim("b", "t", "push")?;
    assert!(claimed("b", &next) > epoch);
    Ok(())
}

fn an_assignment_stays(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    desk.register("a")?;
    desk.register("b")?;
    let assign = |of: &str| Question::Assign { target: target(of), group: name("executor") };
    let first = desk.ask(assign("t"))?;
    let second = desk.ask(assign("u"))?;
    claimed("a", &first);
    claimed("b", &second);
    assert_eq!(desk.ask(assign("t"))?, first);
    assert!(matches!(desk.ask(assign("v"))?, Reply::CapacityRejected { .. }));
    assert!(matches!(desk.claim("a", "v", "push")?, Reply::CapacityRejected { .. }));
    Ok(())
}

fn a_silent_worker_is_dead(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    let epoch = desk.register("a")?;
    desk.register("b")?;
    desk.beat("a", None)?;
    let lost = desk.claim("a", "t", "push")?;
    for _ in 0..3 {
        desk.beat("b", None)?;
        desk.pass(29)?;
    }
    assert_eq!(desk.worker("a").verdict, Verdict::Late);
    desk.beat("b", None)?;
    desk.pass(4)?;
    let row = desk.worker("a");
    assert_eq!((row.status, row.verdict, row.targets), (WorkerStanding::Dead, Verdict::Stale, Vec::new()));
    let targets = desk.registry.status().targets;
    assert_eq!((targets[0].holder.clone(), targets[0].pickups), (None, 1));
    assert_eq!(desk.beat("a", Some(epoch))?, Advice::Superseded);
    assert_eq!(desk.worker("a").status, WorkerStanding::Dead);
    let taken = desk.claim("b", "t", "push")?;
    assert!(claimed("b", &taken) > claimed("a", &lost));
    Ok(())
}

fn a_draining_worker_ends(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    desk.register("a")?;
    let held = desk.claim("a", "t", "push")?;
    let epoch = claimed("a", &held);
    assert_eq!(desk.ask(Question::Drain { worker: name("a") })?, Reply::Done);
    assert_eq!(desk.beat("a", None)?, Advice::Drain);
    assert!(matches!(desk.claim("a", "u", "push")?, Reply::Refused { .. }));
    assert_eq!(desk.worker("a").status, WorkerStanding::Draining);
    assert_eq!(desk.ask(Question::Release { target: target("t"), epoch })?, Reply::Done);
    assert_eq!(desk.beat("a", None)?, Advice::Stop);
    assert_eq!(desk.ask(Question::Leave { worker: name("a"), epoch: None })?, Reply::Done);
    let row = desk.worker("a");
    assert_eq!((row.status, row.verdict), (WorkerStanding::Dead, Verdict::Ended));
    Ok(())
}

fn status_is_one_snapshot(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    for worker in ["a", "b", "c"] {
        desk.register(worker)?;
    }
    desk.claim("b", "t", "push")?;
    desk.ask(Question::Drain { worker: name("c") })?;
    let status = desk.registry.status();
    let rows: Vec<_> = status.workers.iter().map(|row| (row.name.as_str(), row.status, row.targets.len())).collect();
    let expected =
        [("a", WorkerStanding::Active, 0), ("b", WorkerStanding::Active, 1), ("c", WorkerStanding::Draining, 0)];
    assert_eq!(rows, expected);
    assert_eq!(status.targets[0].holder, Some(name("b")));
    Ok(())
}

fn missing_is_apart_from_stale(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    desk.register("a")?;
    desk.register("b")?;
    desk.beat("b", None)?;
    desk.pass(61)?;
    assert_eq!((desk.worker("a").verdict, desk.worker("b").verdict), (Verdict::Missing, Verdict::Late));
    desk.pass(30)?;
    assert_eq!((desk.worker("a").verdict, desk.worker("b").verdict), (Verdict::Missing, Verdict::Stale));
    Ok(())
}

fn opening_removes_older_rows(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    let open = Question::OpenGroup { group: name("executor") };
    let Reply::Opened { instance: first } = desk.ask(open.clone())? else { panic!("not opened") };
    let epoch = desk.register("a")?;
    desk.claim("a", "t", "push")?;
    let Reply::Opened { instance: second } = desk.ask(open)? else { panic!("not opened") };
    assert!(second > first);
    assert!(desk.registry.status().workers.is_empty());
    assert_eq!(desk.beat("a", Some(epoch))?, Advice::Superseded);
    let old = Registration { instance: Some(first), ..registration("a") };
    assert!(matches!(desk.ask(Question::Register(old))?, Reply::Refused { .. }));
    desk.register("b")?;
    let taken = desk.claim("b", "t", "push")?;
    assert!(claimed("b", &taken) > second);
    Ok(())
}

fn settings_rule(desk: &mut Desk<'_>) -> Result<(), StoreError> {
    let hasty = Registration { ttl_s: Some(Span(Duration::from_secs(40))), ..registration("a") };
    desk.ask(Question::Register(hasty))?;
    desk.register("b")?;
    desk.beat("a", None)?;
    desk.beat("b", None)?;
    desk.pass(41)?;
    assert_eq!((desk.worker("a").verdict, desk.worker("b").verdict), (Verdict::Stale, Verdict::Late));
    let tight = Registration { ttl_s: Some(Span(Duration::from_secs(30))), ..registration("c") };
    assert!(matches!(desk.ask(Question::Register(tight))?, Reply::Refused { .. }));
    Ok(())
}
