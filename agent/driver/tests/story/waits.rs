//! What waits in line, what a restart keeps, what is excused, and what a sweep reports.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_driver::{AgentLimits, AttemptName, Fact, FoundAttempt, FoundJob, FoundState, Order};
use latido_policy::Proposal;
use latido_protocol::attempt::StopReason;
use latido_protocol::files::{Backoff, End, Excuse, ResumeOn, Start};
use latido_protocol::status::{Phase, Verdict};
use latido_protocol::{CountLimit, Outcome, Span, WallTime};
use latido_store::MemoryStore;

use crate::world::{SECOND, World};

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
    world.driver.forget_absent(&BTreeSet::new(), world.wall());
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
        found.job.settings.resume.max_attempts = CountLimit::At(9);
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
    let found = with(found, |found| found.job.settings.resume.max_attempts = CountLimit::At(4));
    world.step(vec![found]);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::BackingOff);
    assert!(waits_for(&world) <= 100 * SECOND, "{:?}", waits_for(&world));
}

/// A person resumed it while its launch was under way, and that launch took the resume back: it is one with them.
#[test]
fn a_launch_under_way_that_carries_out_a_resume_begins_a_new_series_however_it_is_told() {
    type Way = fn(&World, Start) -> Vec<Fact>;
    let started = |_: &World, start| vec![Fact::AttemptStarted { start: Box::new(start) }];
    let seen = |world: &World, start| {
        vec![with(world.found(FoundState::Running, 3), |found| {
            (found.earlier, found.pickups) = (lost(world, 2), 2);
            found.attempt = Some(FoundAttempt { start, status: None, state: FoundState::Running });
        })]
    };
    let failed = |world: &World, start| {
        let Fact::AttemptEnded { end, .. } = world.ended(3, 3, Outcome::lost("x")) else { unreachable!() };
        vec![Fact::AttemptEnded { start: Some(Box::new(start)), end }]
    };
    let ways: [(&str, Way); 3] = [("started", started), ("seen", seen), ("ended", failed)];
    for ((way, tell), by_hand) in ways.into_iter().flat_map(|way| [(way, true), (way, false)]) {
        let mut world = World::new(MemoryStore::default());
        let found =
            with(found_lost(&world, 2, |_| {}), |found| found.job.settings.resume.max_attempts = CountLimit::At(3));
        world.step(vec![found]);
        world.pass(200 * SECOND);
        let attempt = AttemptName { job: crate::world::name(), number: 2, epoch: 2 };
        let answer =
            Fact::StrategyAnswered { attempt, proposal: Proposal::Launch, detail: String::new(), command: None };
        let orders = world.step(vec![answer]).orders;
        assert!(matches!(orders[..], [Order::Launch { by_hand: false, .. }]), "{orders:?}");
        let facts = tell(&world, Start { by_hand, ..world.start(3, 3) });
        world.step(facts);
        let ended = world.ended(3, 3, Outcome::lost("x"));
        world.step(vec![ended]);
        let expected = if by_hand { Phase::BackingOff } else { Phase::Stuck };
        assert_eq!(world.driver.subjects(&[])[0].phase, expected, "{way}, by hand: {by_hand}");
    }
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

#[test]
fn a_worker_cannot_have_the_name_of_a_job() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let registration = latido_protocol::registry::Registration {
        worker: crate::world::name(),
        group: "executor".parse().unwrap(),
        instance: None,
        interval_s: None,
        ttl_s: None,
        missed: None,
        start_within_s: None,
        host: None,
        pid: None,
    };
    let question = Box::new(latido_protocol::registry::Question::Register(registration));
    let replies = world.step(vec![Fact::Asked { ticket: 1, question }]).replies;
    let because = "a job has this name".to_owned();
    assert_eq!(replies, [(1, latido_protocol::registry::Reply::Refused { because })]);
    assert_eq!(world.driver.subjects(&[]).len(), 1);
}

// Supervisor/supervisor PR #1047 (issue #1043)
#[test]
fn c009_a_wall_clock_that_goes_back_in_the_start_window_moves_no_deadline() {
    let mut world = World::new(MemoryStore::default());
    let found = with(world.found(FoundState::Running, 1), |found| found.job.settings.start_within = Span(3 * SECOND));
    world.step(vec![found]);
    let hour_ago = |world: &World| WallTime::from_millis(world.wall().as_millis() - 3_600_000);
    let mut verdicts = Vec::new();
    for _ in 0..40 {
        world.monotonic += SECOND / 10;
        let reading =
            latido_driver::Reading { monotonic: world.monotonic, boottime: world.monotonic, wall: hour_ago(&world) };
        assert!(world.driver.step(vec![], reading).wake_in <= latido_driver::PASS_EVERY);
        verdicts.push(world.verdict());
    }
    let first_missing = verdicts.iter().position(|verdict| *verdict == Verdict::Missing);
    assert_eq!(first_missing, Some(29), "three seconds of real time: {verdicts:?}");
}

// kubernetes/kubernetes PR #16830 (review)
#[test]
fn c015_a_beat_counts_by_what_changed_and_never_by_its_timestamp() {
    let mut world = World::new(MemoryStore::default());
    let found = world.found(FoundState::Running, 1);
    world.step(vec![found]);
    let beat = |world: &World, sequence: u64, skew: i64| {
        let Fact::Heard { mut status } = world.status(sequence, Duration::ZERO) else { unreachable!() };
        let theirs = WallTime::from_millis(world.wall().as_millis().saturating_add_signed(skew));
        (status.at, status.last_beat) = (theirs, Some(theirs));
        Fact::Heard { status }
    };
    for sequence in 1..=8 {
        let skew = if sequence % 2 == 0 { 3_600_000 } else { -3_600_000 };
        let fact = beat(&world, sequence, skew);
        world.step(vec![fact]);
        world.pass(3 * SECOND);
        assert_eq!(world.verdict(), Verdict::Alive, "beat {sequence}");
    }
    world.pass(8 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale, "the last one lies an hour ahead, and is old all the same");
}
