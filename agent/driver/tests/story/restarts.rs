//! What silence a restart counts: none from before a baseline, none of a pause. And what a check tells of its runs.

use std::time::Duration;

use latido_driver::{CheckDefinition, Fact, FoundState, Signaled, Timing, WatchFact};
use latido_policy::{Proposal, Signal};
use latido_protocol::files::Want;
use latido_protocol::status::{Phase, SubjectStatus, Verdict};
use latido_protocol::{CountLimit, Outcome, Progress, WallTime};
use latido_store::{MemoryStore, Store};

use crate::world::{SECOND, World, proposal};

/// The job as it is found running, silent for so long by its supervisor's word, with something else wanted of it.
fn found_silent(world: &World, silence: Duration, wanted: Option<(Want, WallTime)>) -> Fact {
    let Fact::JobFound(mut found) = world.found(FoundState::Running, 1) else { unreachable!() };
    let Fact::Heard { status } = world.status(7, silence) else { unreachable!() };
    found.attempt.as_mut().unwrap().status = Some(*status);
    if let Some((want, until)) = wanted {
        (found.wanted.want, found.wanted.until) = (want, Some(until));
    }
    Fact::JobFound(found)
}

/// The next agent, so much later.
fn next(world: World, away: Duration) -> World {
    let monotonic = world.monotonic + away;
    let mut next = World::new(world.driver.into_store());
    next.monotonic = monotonic;
    next
}

fn ago(world: &World, length: Duration) -> WallTime {
    WallTime::from_millis(world.wall().as_millis() - u64::try_from(length.as_millis()).unwrap())
}

fn phases(world: &mut World) -> Vec<String> {
    let rows = world.driver.store().entries_after(0, &["phase".to_owned()], 100).unwrap();
    rows.into_iter().map(|row| row.body).collect()
}

#[test]
fn silence_from_before_a_long_gap_counts_for_no_later_agent() {
    let mut world = World::new(MemoryStore::default());
    let found = found_silent(&world, Duration::ZERO, None);
    world.step(vec![found]);
    world.pass(2 * SECOND);
    world.monotonic += 60 * SECOND;
    world.step(vec![]);
    world.pass(5 * SECOND);
    assert_eq!(world.verdict(), Verdict::Late);

    let mut later = next(world, 20 * SECOND);
    // Its supervisor was not stopped, and counted all of it.
    let found = found_silent(&later, 87 * SECOND, None);
    later.step(vec![found]);
    assert_eq!(later.verdict(), Verdict::Late, "it was listened to for five seconds since the gap");
    later.pass(3 * SECOND);
    assert_eq!(later.verdict(), Verdict::Late);
    later.pass(3 * SECOND);
    assert_eq!(later.verdict(), Verdict::Stale);
}

#[test]
fn a_job_that_is_silent_without_a_gap_is_stale_at_once_for_the_next_agent() {
    let mut world = World::new(MemoryStore::default());
    let found = found_silent(&world, Duration::ZERO, None);
    world.step(vec![found]);
    let mut later = next(world, 20 * SECOND);
    let found = found_silent(&later, 20 * SECOND, None);
    later.step(vec![found]);
    assert_eq!(later.verdict(), Verdict::Stale);
}

#[test]
fn a_pause_of_a_job_that_is_over_is_no_pause_for_the_next_agent_and_its_silence_counts_from_there() {
    let mut world = World::new(MemoryStore::default());
    let found = found_silent(&world, 600 * SECOND, Some((Want::Pause, ago(&world, 4 * SECOND))));
    world.step(vec![found]);
    let phases = phases(&mut world);
    assert!(!phases.iter().any(|phase| phase.contains("paused")), "{phases:?}");
    assert_eq!(world.verdict(), Verdict::Late, "it is silent for four seconds");
    world.pass(7 * SECOND);
    assert_eq!(world.verdict(), Verdict::Stale);
}

fn watched(fact: WatchFact) -> Fact {
    Fact::Watched(Box::new(fact))
}

fn backup(run_for: Option<Duration>) -> Fact {
    let (name, timing) = ("backup".parse().unwrap(), Timing::Every(100 * SECOND));
    watched(WatchFact::CheckDefined(Box::new(CheckDefinition { name, timing, grace: 10 * SECOND, run_for })))
}

fn signal(signal: Signal, run_id: Option<&str>) -> Fact {
    let (check, run_id) = ("backup".parse().unwrap(), run_id.map(str::to_owned));
    watched(WatchFact::Signaled(Signaled { check, signal, run_id, state: None, kept: None }))
}

fn check(world: &World) -> SubjectStatus {
    world.driver.subjects(&["backup".parse().unwrap()]).remove(0)
}

#[test]
fn a_pause_of_a_check_that_ended_while_no_agent_ran_is_over_once_and_for_all() {
    let mut world = World::new(MemoryStore::default());
    world.step(vec![backup(None)]);
    world.step(vec![signal(Signal::Succeeded, None)]);
    world.pass(50 * SECOND);
    let (subject, until) = ("backup".parse().unwrap(), Some(ago(&world, Duration::ZERO)));
    let until = until.map(|at| WallTime::from_millis(at.as_millis() + 300_000));
    world.step(vec![watched(WatchFact::PauseWanted { subject, until })]);
    world.pass(200 * SECOND);
    for away in [500, 5] {
        world = next(world, away * SECOND);
        world.step(vec![backup(None)]);
        assert_eq!((check(&world).phase, check(&world).verdict), (Phase::Running, Verdict::Alive), "{away}");
        world.pass(20 * SECOND);
    }
    let paused = phases(&mut world).iter().filter(|phase| phase.contains("paused")).count();
    assert_eq!(paused, 1, "it was paused once");
    world.pass(35 * SECOND);
    assert_eq!(check(&world).verdict, Verdict::Late, "of its 100 s it has had 50, and 55 again");
}

#[test]
fn a_run_that_never_told_its_end_is_named_as_long_as_it_is_open() {
    let mut world = World::new(MemoryStore::default());
    world.step(vec![backup(Some(30 * SECOND))]);
    world.step(vec![signal(Signal::Started, Some("b7"))]);
    let since = format!("; run b7 has been open since {}", world.wall());
    world.pass(31 * SECOND);
    assert_eq!(check(&world).verdict, Verdict::Hung);
    assert!(check(&world).reason.ends_with(&since), "{}", check(&world).reason);
    world.pass(80 * SECOND);
    assert_eq!(check(&world).verdict, Verdict::Stale);
    assert!(check(&world).reason.ends_with(&since), "{}", check(&world).reason);
    let rows = world.driver.store().entries_after(0, &["transition".to_owned()], 100).unwrap();
    assert!(rows.last().unwrap().body.contains("run b7"), "{rows:?}");
    world.step(vec![signal(Signal::Succeeded, Some("b7"))]);
    assert!(!check(&world).reason.contains("b7"), "{}", check(&world).reason);
}

#[test]
fn a_job_that_made_no_progress_is_given_up_for_the_next_agent_too() {
    let at = |checkpoint: &str| Some(Progress { checkpoint: Some(checkpoint.to_owned()), ..Progress::default() });
    let mut world = World::new(MemoryStore::default());
    let found = |world: &World, state| {
        let Fact::JobFound(mut found) = world.found(state, 1) else { unreachable!() };
        found.job.settings.resume.max_attempts_without_progress = CountLimit::At(1);
        found
    };
    let heard = |world: &World, sequence, checkpoint| {
        let Fact::Heard { mut status } = world.status(sequence, Duration::ZERO) else { unreachable!() };
        status.progress = at(checkpoint);
        Fact::Heard { status }
    };
    let ended = |world: &World, number: u32, checkpoint| {
        let Fact::AttemptEnded { mut end, .. } = world.ended(number, number.into(), Outcome::lost("x")) else {
            unreachable!()
        };
        end.progress = at(checkpoint);
        end
    };
    let running = found(&world, FoundState::Running);
    world.step(vec![Fact::JobFound(running), heard(&world, 1, "a"), heard(&world, 2, "b")]);
    let (first, second) = (ended(&world, 1, "b"), ended(&world, 2, "a"));
    world.step(vec![Fact::AttemptEnded { start: None, end: first.clone() }]);
    world.step(vec![proposal(Proposal::Launch)]);
    world.step(vec![Fact::AttemptStarted { start: Box::new(world.start(2, 2)) }]);
    world.step(vec![Fact::AttemptEnded { start: None, end: second.clone() }]);
    assert_eq!(world.driver.subjects(&[])[0].phase, Phase::Stuck, "it was at a before");

    let mut later = next(world, SECOND);
    let mut again = found(&later, FoundState::Ended(second));
    again.earlier = vec![(later.start(1, 1), *first)];
    let attempt = again.attempt.as_mut().unwrap();
    attempt.start = later.start(2, 2);
    (again.epoch, again.wanted.epoch, again.pickups) = (2, 2, 2);
    let orders = later.step(vec![Fact::JobFound(again)]).orders;
    assert_eq!((later.driver.subjects(&[])[0].phase, orders.len()), (Phase::Stuck, 0));
}
