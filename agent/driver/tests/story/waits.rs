//! What waits in line, what a restart keeps, what is excused, and what a sweep reports.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_driver::{AgentLimits, AttemptName, Fact, FoundAttempt, FoundJob, FoundState, Order};
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
    world.driver.forget_absent(world.wall());
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
