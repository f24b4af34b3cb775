//! Whole stories: facts in, orders out, and what the journal says of them. No clock, no process, a store in memory.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_driver::{
    AgentLimits, AttemptName, Driver, Fact, FoundAttempt, FoundJob, FoundState, Order, Output, Reading,
};
use latido_policy::{Life, Proposal};
use latido_protocol::attempt::StopReason;
use latido_protocol::files::{
    Backoff, Beats, Budget, End, Excuse, Identity, JobFile, JobSettings, LogLimits, Orphans, Resume, ResumeOn, Spent,
    Start, Status, Want, Wanted,
};
use latido_protocol::status::{Phase, Verdict};
use latido_protocol::{CountLimit, Limit, Outcome, Progress, Span, SubjectName, WallTime};
use latido_store::{MemoryStore, Store};

const SECOND: Duration = Duration::from_secs(1);

fn name() -> SubjectName {
    "catalogue".parse().unwrap()
}

fn identity(pid: u32) -> Identity {
    Identity { machine_id: "m".into(), boot_id: "b".into(), pid_namespace: 1, pid, start_time: u64::from(pid) }
}

fn settings() -> JobSettings {
    JobSettings {
        policy: "default".into(),
        strategy: "script".into(),
        beats: Beats::Own,
        interval: Span(3 * SECOND),
        ttl: Span(10 * SECOND),
        start_within: Span(20 * SECOND),
        hung_after: Limit::None,
        run_for: Limit::None,
        resume: Resume {
            on: vec![ResumeOn::Lost],
            max_attempts: 3,
            max_pickups: 5,
            backoff: Backoff { first: Span(Duration::ZERO), longest: Span(Duration::ZERO) },
            max_attempts_without_progress: CountLimit::None,
            wall_time_max: Limit::None,
            spare_busy: true,
            budget: Budget::default(),
        },
        looping_after: CountLimit::None,
        first_output_within: Limit::None,
        excuse_max: Span(3600 * SECOND),
        slots: vec![],
        orphans: Orphans::End,
        grace: Span(2 * SECOND),
        log: LogLimits { size_max: 1 << 20, files_max: 2 },
        history_every: Span(300 * SECOND),
        presence_every: Span(60 * SECOND),
    }
}

/// The driver with a clock that the test moves.
struct World {
    driver: Driver<MemoryStore>,
    monotonic: Duration,
}

impl World {
    fn new(store: MemoryStore) -> Self {
        Self { driver: Driver::new(store, 300 * SECOND).unwrap(), monotonic: 1000 * SECOND }
    }

    fn wall(&self) -> WallTime {
        WallTime::from_millis(1_700_000_000_000 + u64::try_from(self.monotonic.as_millis()).unwrap())
    }

    fn step(&mut self, facts: Vec<Fact>) -> Output {
        let reading = Reading { monotonic: self.monotonic, boottime: self.monotonic, wall: self.wall() };
        let output = self.driver.step(facts, reading);
        assert!(output.store_error.is_none(), "{:?}", output.store_error);
        output
    }

    /// Lets time pass with a driver that is called whenever it asks to be, and gathers its orders.
    fn pass(&mut self, length: Duration) -> Vec<Order> {
        let end = self.monotonic + length;
        let mut orders = Vec::new();
        let mut output = self.step(vec![]);
        while self.monotonic < end {
            self.monotonic = (self.monotonic + output.wake_in.max(Duration::from_millis(1))).min(end);
            output = self.step(vec![]);
            orders.append(&mut output.orders);
        }
        orders
    }

    fn start(&self, attempt: u32, epoch: u64) -> Start {
        Start {
            version: 1,
            job: name(),
            attempt,
            epoch,
            host: "here".into(),
            launched_at: self.wall(),
            starter: identity(1),
            because: "first attempt".into(),
            by_hand: false,
            command: vec!["catalogue".into()],
            directory: "/".into(),
            checkpoint: String::new(),
            sockets: "/run/x".into(),
            supervisor: Some(identity(100 + attempt)),
            process: Some(identity(200 + attempt)),
            started_at: Some(self.wall()),
        }
    }

    fn found(&self, state: FoundState, epoch: u64) -> Fact {
        Fact::JobFound(Box::new(FoundJob {
            job: JobFile {
                version: 1,
                name: name(),
                created_at: WallTime::from_millis(1),
                command: vec!["catalogue".into()],
                directory: "/".into(),
                environment: Default::default(),
                settings: settings(),
            },
            wanted: Wanted {
                version: 1,
                want: Want::Run,
                epoch,
                at: WallTime::from_millis(1),
                until: None,
                by: "test".into(),
            },
            epoch,
            pickups: 0,
            earlier: vec![],
            attempt: Some(FoundAttempt { start: self.start(1, epoch), status: None, state }),
        }))
    }

    fn status(&self, sequence: u64, silence: Duration) -> Fact {
        Fact::Heard {
            status: Box::new(Status {
                version: 1,
                job: name(),
                attempt: 1,
                epoch: 1,
                at: self.wall(),
                sequence,
                last_beat: Some(self.wall()),
                progress_changed: None,
                progress: Some(Progress { checkpoint: Some("200".into()), ..Progress::default() }),
                state: None,
                errors: 0,
                ready: true,
                broken: false,
                silence_s: Span(silence),
                still_s: Span(silence),
                running_s: Span(silence),
                output_bytes: 0,
                idle_s: None,
                excuse: None,
                spent: Spent::default(),
                stopping: false,
            }),
        }
    }

    fn ended(&self, attempt: u32, epoch: u64, outcome: Outcome) -> Fact {
        Fact::AttemptEnded {
            start: None,
            end: Box::new(End {
                version: 1,
                job: name(),
                attempt,
                epoch,
                started_at: Some(self.wall()),
                ended_at: WallTime::from_millis(self.wall().as_millis() + 5000),
                outcome,
                rusage: None,
                progress: None,
                recorded_by: "supervisor".into(),
                proof: "waited for".into(),
                stopped_for: None,
                spent: Spent::default(),
            }),
        }
    }

    fn verdict(&self) -> Verdict {
        self.driver.subjects(&[])[0].verdict
    }

    fn kinds(&mut self) -> Vec<String> {
        let rows = self.driver.store().entries_after(0, &[], 1000).unwrap();
        rows.into_iter().map(|row| row.kind).collect()
    }
}

fn attempt(number: u32, epoch: u64) -> AttemptName {
    AttemptName { job: name(), number, epoch }
}

fn proposal(proposal: Proposal) -> Fact {
    Fact::StrategyAnswered { attempt: attempt(1, 1), proposal, detail: String::new(), command: None }
}

#[test]
fn a_killed_job_is_asked_about_and_launched_again_with_the_next_epoch() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    assert_eq!(world.step(vec![found]).orders, []);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    let orders = world.step(vec![ended]).orders;
    assert!(
        matches!(&orders[..], [Order::AskStrategy { attempt: about, strategy, .. }] if *about == attempt(1, 1) && strategy == "script"),
        "{orders:?}"
    );
    let orders = world.step(vec![proposal(Proposal::Launch)]).orders;
    assert!(matches!(&orders[..], [Order::Launch { attempt: next, .. }] if *next == attempt(2, 2)), "{orders:?}");
    let row = world.driver.store().subjects().unwrap().remove(0);
    assert_eq!((row.attempt, row.epoch, row.phase.as_str()), (2, 2, "launching"), "the intent is on the disk");
    let kinds = world.kinds();
    for kind in ["attempt-started", "attempt-ended", "lease-expired", "transition", "phase"] {
        assert!(kinds.iter().any(|other| other == kind), "{kind} is missing in {kinds:?}");
    }
}

#[test]
fn an_orphan_is_ended_before_anything_is_launched() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let gone = Fact::SupervisorGone { attempt: attempt(1, 1), process: Life::Alive };
    let orders = world.step(vec![gone.clone()]).orders;
    assert!(
        matches!(&orders[..], [Order::EndOrphan { attempt: orphan, .. }] if *orphan == attempt(1, 1)),
        "{orders:?}"
    );
    assert_eq!(world.verdict(), Verdict::Orphaned);
    assert_eq!(world.step(vec![gone]).orders, [], "told twice, ordered once");
    let ended = Fact::OrphanEnded { attempt: attempt(1, 1), survivors: vec![] };
    let orders = world.step(vec![ended]).orders;
    assert!(matches!(&orders[..], [Order::RecordLost { .. }]), "{orders:?}");
    let lost = world.ended(1, 1, Outcome::lost("the supervisor's process is gone"));
    assert!(matches!(&world.step(vec![lost]).orders[..], [Order::AskStrategy { .. }]));
}

#[test]
fn survivors_hold_the_job_and_a_broken_strategy_holds_it_too() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Unattended(Life::Alive), 1);
    world.step(vec![found]);
    let survivors = Fact::OrphanEnded { attempt: attempt(1, 1), survivors: vec![4711] };
    assert_eq!(world.step(vec![survivors]).orders, []);
    let status = world.driver.subjects(&[]).remove(0);
    assert_eq!(status.phase, Phase::Held);
    assert!(status.next.unwrap().what.contains("4711"));

    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, ended]);
    assert_eq!(world.step(vec![proposal(Proposal::Failed)]).orders, []);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Held);
}

/// Silence grows only while the agent listens: a stopped agent, however long, makes nobody stale.
#[test]
fn an_agent_that_was_stopped_longer_than_the_ttl_calls_nobody_stale() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let beat = world.status(1, Duration::ZERO);
    world.step(vec![found, beat]);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Alive);
    world.monotonic += 3600 * SECOND;
    world.step(vec![]);
    assert_eq!(world.verdict(), Verdict::Alive, "silence counts from the end of the gap");
    assert!(world.kinds().contains(&"agent".to_owned()), "the gap is one entry");
    world.pass(9 * SECOND);
    assert_eq!(world.verdict(), Verdict::Late);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale, "a full ttl of listening after the gap");
}

#[test]
fn silence_measured_by_the_supervisor_survives_a_restart_of_the_agent() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let silent = world.status(3, 9 * SECOND);
    world.step(vec![found, silent]);
    assert_eq!(world.verdict(), Verdict::Late);
    world.pass(2 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale);
}

#[test]
fn what_has_ended_never_changes_and_a_restart_records_nothing_twice() {
    let mut store = MemoryStore::default();
    let mut before = Vec::new();
    for round in 0..2 {
        let mut world = World::new(store);
        let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::exited(0)) else { unreachable!() };
        let found = world.found(FoundState::Ended(end), 1);
        world.step(vec![found]);
        world.driver.forget_absent(WallTime::from_millis(0));
        let late = world.status(9, Duration::ZERO);
        assert_eq!(world.step(vec![late]).orders, []);
        assert_eq!(world.verdict(), Verdict::Ended);
        let kinds = world.kinds();
        if round == 1 {
            assert_eq!(kinds, before);
        }
        before = kinds;
        store = world.driver.into_store();
    }
}

#[test]
fn a_stop_outranks_the_answer_of_a_strategy() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, ended]);
    let wanted =
        Wanted { version: 1, want: Want::Stop, epoch: 1, at: world.wall(), until: None, by: "latido stop".into() };
    world.step(vec![Fact::WantChanged { job: name(), wanted }]);
    assert_eq!(world.step(vec![proposal(Proposal::Launch)]).orders, []);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Ended);
}

#[test]
fn a_removed_job_leaves_no_row_and_a_late_answer_meets_nobody() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    world.step(vec![Fact::JobRemoved { job: name() }]);
    assert_eq!(world.driver.store().subjects().unwrap(), []);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    assert_eq!(world.step(vec![ended, proposal(Proposal::Launch)]).orders, []);
}

/// An attempt that ended while no agent ran is in the journal once, also when the next one has begun.
#[test]
fn what_ended_while_nobody_watched_is_told_to_the_journal_once() {
    let mut world = World::new(MemoryStore::default());
    for round in 0..2 {
        let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::signaled(9, "SIGKILL")) else { unreachable!() };
        let Fact::JobFound(mut found) = world.found(FoundState::Running, 2) else { unreachable!() };
        found.earlier = vec![(world.start(1, 1), *end)];
        world.step(vec![Fact::JobFound(found)]);
        let count = |kinds: &[String], kind: &str| kinds.iter().filter(|other| *other == kind).count();
        let kinds = world.kinds();
        assert_eq!(
            (count(&kinds, "attempt-started"), count(&kinds, "attempt-ended")),
            (2, 1),
            "round {round}: {kinds:?}"
        );
    }
    world.step(vec![Fact::JobRemoved { job: name() }]);
    assert!(world.kinds().iter().any(|kind| kind == "agent"), "a removal is told too");
}

/// A launch that was refused has spent its epoch, also for the agent that comes after.
#[test]
fn an_epoch_that_was_ordered_is_never_ordered_again_and_no_row_goes_back() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let killed = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![found, killed]);
    let orders = world.step(vec![proposal(Proposal::Launch)]).orders;
    assert!(matches!(&orders[..], [Order::Launch { attempt: next, .. }] if *next == attempt(2, 2)), "{orders:?}");
    let failure = latido_policy::LaunchFailure::Failed;
    world.step(vec![Fact::LaunchRefused { attempt: attempt(2, 2), failure, detail: String::new() }]);
    let row = world.driver.store().subjects().unwrap().remove(0);
    assert_eq!((row.phase.as_str(), row.epoch), ("backing-off", 2), "the row tells of the refusal");

    let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::signaled(9, "SIGKILL")) else { unreachable!() };
    let mut world = World::new(world.driver.into_store());
    let found = world.found(FoundState::Ended(end), 1);
    let mut orders = world.step(vec![found]).orders;
    orders.append(&mut world.step(vec![proposal(Proposal::Launch)]).orders);
    assert!(orders.iter().any(|order| matches!(order, Order::Launch { attempt: next, .. } if *next == attempt(2, 3))));
}

#[test]
fn what_a_person_resumed_without_the_agent_is_not_stopped_by_the_stop_before() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let wanted =
        Wanted { version: 1, want: Want::Stop, epoch: 1, at: world.wall(), until: None, by: "latido stop".into() };
    let orders = world.step(vec![Fact::WantChanged { job: name(), wanted }]).orders;
    assert!(matches!(&orders[..], [Order::EndAttempt { .. }]), "{orders:?}");
    let stopped = world.ended(1, 1, Outcome::signaled(15, "SIGTERM").by_order("stopped"));
    world.step(vec![stopped]);

    let Fact::JobFound(mut found) = world.found(FoundState::Running, 2) else { unreachable!() };
    let start = Start { by_hand: true, ..world.start(2, 2) };
    found.attempt = Some(FoundAttempt { start, status: None, state: FoundState::Running });
    let orders = world.step(vec![Fact::JobFound(found)]).orders;
    assert!(!orders.iter().any(|order| matches!(order, Order::EndAttempt { .. })), "{orders:?}");
    let status = world.driver.subjects(&[]).remove(0);
    assert_eq!((status.phase, status.attempt), (Phase::Running, 2));
}

/// A job that was found, changed before it is told.
fn with(fact: Fact, change: impl FnOnce(&mut FoundJob)) -> Fact {
    let Fact::JobFound(mut found) = fact else { unreachable!() };
    change(&mut found);
    Fact::JobFound(found)
}

fn one_gpu() -> AgentLimits {
    AgentLimits {
        resumes_at_once: NonZeroU32::MAX,
        resume_every: Duration::ZERO,
        blackout_share_percent: 50,
        blackout_count_min: 5,
        slots: BTreeMap::from([("gpu".to_owned(), CountLimit::At(1))]),
    }
}

#[test]
fn the_second_job_of_a_slot_is_queued_shows_its_place_and_starts_when_the_first_has_ended() {
    let mut world = World::new(MemoryStore::default());
    world.driver.configure(&one_gpu());
    let gpu = |found: &mut FoundJob| found.job.settings.slots = vec!["gpu".to_owned()];
    let first = with(world.found(FoundState::Running, 1), gpu);
    let second = with(world.found(FoundState::Running, 1), |found| {
        gpu(found);
        found.job.name = "second".parse().unwrap();
        (found.attempt, found.epoch) = (None, 0);
    });
    assert_eq!(world.step(vec![first, second]).orders, []);
    let status = world.driver.subjects(&["second".parse().unwrap()]).remove(0);
    assert_eq!((status.phase, status.place, status.slots), (Phase::Queued, Some(1), vec!["gpu".to_owned()]));
    assert!(status.next.unwrap().what.contains("place 1 in line for gpu"));
    let ended = world.ended(1, 1, Outcome::exited(0));
    let orders = world.step(vec![ended]).orders;
    let second = AttemptName { job: "second".parse().unwrap(), number: 1, epoch: 1 };
    assert!(matches!(&orders[..], [Order::Launch { attempt, .. }] if *attempt == second), "{orders:?}");
}

#[test]
fn more_room_in_the_config_lets_in_who_waits() {
    let mut world = World::new(MemoryStore::default());
    let none = AgentLimits { slots: BTreeMap::from([("gpu".to_owned(), CountLimit::At(0))]), ..one_gpu() };
    world.driver.configure(&none);
    let found = with(world.found(FoundState::Running, 1), |found| {
        found.job.settings.slots = vec!["gpu".to_owned()];
        found.attempt = None;
    });
    assert_eq!(world.step(vec![found]).orders, []);
    world.driver.configure(&AgentLimits { slots: BTreeMap::new(), ..one_gpu() });
    assert!(matches!(world.step(vec![]).orders[..], [Order::Launch { .. }]), "a slot that is not named has no limit");
}

/// `count` attempts that were lost, as their files tell of them.
fn lost(world: &World, count: u32) -> Vec<(Start, End)> {
    let lost = |number: u32| {
        let Fact::AttemptEnded { end, .. } = world.ended(number, u64::from(number), Outcome::lost("x")) else {
            unreachable!()
        };
        (world.start(number, u64::from(number)), *end)
    };
    (1..=count).map(lost).collect()
}

/// A job of which `count` attempts were lost, found by an agent that starts, with a backoff of 100 s and more.
fn found_lost(world: &World, count: u32, change: impl FnOnce(&mut Vec<(Start, End)>)) -> Fact {
    let mut attempts = lost(world, count);
    change(&mut attempts);
    with(world.found(FoundState::Running, u64::from(count)), |found| {
        found.job.settings.resume.backoff = Backoff { first: Span(100 * SECOND), longest: Span(10_000 * SECOND) };
        found.job.settings.resume.max_attempts = 9;
        found.job.settings.resume.max_pickups = 9;
        found.pickups = count;
        let (start, end) = attempts.pop().unwrap();
        found.earlier = attempts;
        found.attempt = Some(FoundAttempt { start, status: None, state: FoundState::Ended(Box::new(end)) });
    })
}

fn waits_for(world: &World) -> Duration {
    world.driver.subjects(&[])[0].next.clone().unwrap().in_s.unwrap().0
}

#[test]
fn a_restart_neither_forgets_nor_doubles_a_backoff() {
    let mut world = World::new(MemoryStore::default());
    let found = found_lost(&world, 3, |attempts| {
        let (_, end) = attempts.last_mut().unwrap();
        end.ended_at = WallTime::from_millis(world.wall().as_millis() - 30_000);
    });
    world.step(vec![found]);
    let left = waits_for(&world);
    assert!(
        left <= 370 * SECOND && left > 290 * SECOND,
        "the third wait is 400 s less jitter, and 30 s are over: {left:?}"
    );
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::BackingOff);
}

#[test]
fn an_attempt_that_a_person_asked_for_begins_a_new_series_also_after_a_restart() {
    let mut world = World::new(MemoryStore::default());
    let found = found_lost(&world, 4, |attempts| attempts[3].0.by_hand = true);
    let found = with(found, |found| found.job.settings.resume.max_attempts = 4);
    world.step(vec![found]);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::BackingOff);
    assert!(waits_for(&world) <= 100 * SECOND, "{:?}", waits_for(&world));
}

#[test]
fn a_job_that_was_ended_for_silence_is_resumed_by_the_next_agent() {
    for (stopped_for, asked) in [(Some(StopReason::Stale), true), (None, false)] {
        let mut world = World::new(MemoryStore::default());
        let found = found_lost(&world, 1, |attempts| attempts[0].1.stopped_for = stopped_for);
        let found = with(found, |found| {
            found.job.settings.resume.on = vec![ResumeOn::Stale];
            found.job.settings.resume.backoff = Backoff { first: Span(Duration::ZERO), longest: Span(Duration::ZERO) };
        });
        let orders = world.step(vec![found]).orders;
        assert_eq!(matches!(orders[..], [Order::AskStrategy { .. }]), asked, "{stopped_for:?}: {orders:?}");
    }
}

#[test]
fn an_excuse_is_shown_with_the_words_of_the_work_and_nobody_is_stale_meanwhile() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    let Fact::Heard { mut status } = world.status(1, Duration::ZERO) else { unreachable!() };
    let because = Some("the provider asks for a pause".to_owned());
    status.excuse = Some(Excuse { since_s: Span(Duration::ZERO), length_s: Span(60 * SECOND), because });
    world.step(vec![found, Fact::Heard { status }]);
    world.pass(59 * SECOND);
    let shown = world.driver.subjects(&[]).remove(0);
    assert_eq!(shown.verdict, Verdict::Alive);
    assert!(shown.reason.ends_with("has 1s left: the provider asks for a pause"), "{}", shown.reason);
    world.pass(12 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale);
}

#[test]
fn a_sweep_reports_once_whom_it_gave_up_and_why() {
    let mut world = World::new(MemoryStore::default());
    let found = with(world.found(FoundState::Running, 1), |found| {
        found.job.settings.resume.on = vec![ResumeOn::Stale];
    });
    let beat = world.status(1, Duration::ZERO);
    let mut output = world.step(vec![found, beat]);
    for _ in 0..20 {
        assert!(output.sweep.is_empty());
        world.monotonic += output.wake_in;
        output = world.step(vec![]);
        if !output.sweep.is_empty() {
            break;
        }
    }
    let report = output.sweep.to_string();
    let expected = "ended 1 for want of beats or progress [catalogue attempt 1 epoch 1 of supervisor 101 on here: silence \
                    10s reached the ttl of 10s], lost 0 []";
    assert_eq!(report, expected);
    assert!(world.step(vec![]).sweep.is_empty(), "once");
}
