//! What was recorded is decided again, and other settings decide otherwise.

use std::time::Duration;

use latido_driver::recording::{Line, RECORDING_VERSION};
use latido_driver::replay::{Afterwards, AsRecorded, Decided, Replay, ReplayError, What, compare};
use latido_driver::{Fact, FoundState, Order};
use latido_policy::Proposal;
use latido_protocol::attempt::StopReason;
use latido_protocol::files::{JobSettings, ResumeOn};
use latido_protocol::status::Verdict;
use latido_protocol::{Class, CountLimit, Outcome, Span, WallTime};

use crate::recorded::{ForJobs, Kept, recorded};
use crate::world::{SECOND, World, proposal};

/// A job that beats, is silent for 8 s, beats again, and dies in the end.
fn live(world: &mut World) {
    let (found, beat) = (world.found(FoundState::Running, 1), world.status(1, Duration::ZERO));
    world.step(vec![found, beat]);
    world.pass(8 * SECOND);
    let beat = world.status(2, Duration::ZERO);
    world.step(vec![beat]);
    world.pass(25 * SECOND);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![ended]);
    world.step(vec![proposal(Proposal::Launch)]);
    world.pass(7 * SECOND);
}

fn ends_stale(ttl: u64) -> impl FnMut(&mut JobSettings) {
    move |settings| {
        (settings.ttl, settings.interval) = (Span(Duration::from_secs(ttl)), Span(SECOND));
        settings.resume.on = vec![ResumeOn::Lost, ResumeOn::Stale];
    }
}

fn whats(decided: &[Decided]) -> Vec<What> {
    decided.iter().map(|decision| decision.what).collect()
}

#[test]
fn a_replay_with_the_recorded_settings_decides_what_was_recorded() {
    let kept = Kept::default();
    live(&mut recorded(&kept));
    let then = kept.decided();
    let stale = What::Verdict(Verdict::Stale);
    assert!(whats(&then).contains(&stale) && whats(&then).contains(&What::Launch), "{then:#?}");
    assert_eq!(kept.replay(AsRecorded), then);
    assert_eq!(kept.replay(ForJobs(|_: &mut JobSettings| {})), then, "twice the same");
}

#[test]
fn time_that_was_cut_out_and_steps_that_were_slow_are_replayed_as_they_were() {
    let kept = Kept::default();
    let mut world = recorded(&kept);
    let (found, beat) = (world.found(FoundState::Running, 1), world.status(1, Duration::ZERO));
    world.step(vec![found, beat]);
    world.pass(2 * SECOND);
    world.monotonic += 3600 * SECOND;
    world.step(vec![]);
    world.monotonic += 20 * SECOND;
    world.rest();
    world.pass(15 * SECOND);
    assert_eq!(kept.replay(AsRecorded), kept.decided());
    let shorter = kept.replay(ForJobs(ends_stale(5)));
    let stale = shorter.iter().find(|decision| decision.what == What::Verdict(Verdict::Stale)).unwrap();
    assert!(
        stale.at.as_millis() > world.wall().as_millis() - 15_000,
        "an hour of deafness makes nobody stale: {stale:?}"
    );
}

#[test]
fn a_store_that_was_away_is_away_in_the_replay() {
    let kept = Kept::default();
    let mut world = recorded(&kept);
    let (found, beat) = (world.found(FoundState::Running, 1), world.status(1, Duration::ZERO));
    world.step(vec![found, beat]);
    world.driver.store().set_away(true);
    let reading = |world: &World| latido_driver::Reading {
        monotonic: world.monotonic,
        boottime: world.monotonic,
        wall: world.wall(),
    };
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    let output = world.driver.step(vec![ended], reading(&world));
    assert!(output.store_error.is_some() && output.orders.is_empty());
    world.driver.store().set_away(false);
    world.monotonic += SECOND;
    let output = world.driver.step(vec![], reading(&world));
    assert!(matches!(output.orders[..], [Order::AskStrategy { .. }]), "{:?}", output.orders);
    let then = kept.decided();
    assert!(whats(&then).contains(&What::Blackout));
    assert_eq!(kept.replay(AsRecorded), then);
}

// apache/airflow#16573 (C026): seen in what was recorded, before a limit is set that work in order runs into
#[test]
fn a_shorter_ttl_would_have_ended_an_attempt_that_beat_again() {
    let kept = Kept::default();
    live(&mut recorded(&kept));
    let differences = compare(&kept.decided(), &kept.replay(ForJobs(ends_stale(5))), &kept.signs());
    let [verdict, end] = &differences[..] else { panic!("{differences:#?}") };
    assert_eq!(verdict.what, What::Verdict(Verdict::Stale));
    assert_eq!(end.what, What::End(StopReason::Stale));
    assert!(end.is_sooner() && end.then.is_none(), "{end:?}");
    assert_eq!((end.about.subject.as_str(), end.about.attempt, end.about.epoch), ("catalogue", 1, 1));
    let side = end.other.as_ref().unwrap();
    assert_eq!(side.listened, 5 * SECOND, "at the ttl itself, between two recorded steps");
    assert_eq!(side.at, WallTime::from_millis(1_700_001_005_000));
    assert_eq!(end.afterwards, Afterwards::BeatAgain { after: 3 * SECOND });
    assert!(end.afterwards.went_on());
}

#[test]
fn an_attempt_that_was_really_dead_is_ended_sooner_and_never_went_on() {
    let kept = Kept::default();
    live(&mut recorded(&kept));
    let differences = compare(&kept.decided(), &kept.replay(ForJobs(ends_stale(9))), &kept.signs());
    let end = differences.iter().find(|difference| difference.what == What::End(StopReason::Stale)).unwrap();
    assert_eq!(end.afterwards, Afterwards::Ended { after: 16 * SECOND, class: Class::Lost });
    assert!(!end.afterwards.went_on());
    let verdicts: Vec<_> = differences.iter().filter(|d| d.what == What::Verdict(Verdict::Stale)).collect();
    let [moved] = verdicts[..] else { panic!("one silence, one verdict: {differences:#?}") };
    assert!(moved.is_sooner());
    assert_eq!(moved.then.as_ref().unwrap().listened - moved.other.as_ref().unwrap().listened, SECOND);
}

#[test]
fn a_longer_ttl_spares_what_was_called_stale() {
    let kept = Kept::default();
    live(&mut recorded(&kept));
    let differences = compare(&kept.decided(), &kept.replay(ForJobs(ends_stale(60))), &kept.signs());
    let [spared] = &differences[..] else { panic!("{differences:#?}") };
    assert_eq!((spared.what, spared.other.is_none()), (What::Verdict(Verdict::Stale), true));
    assert!(!spared.is_sooner());
}

#[test]
fn a_lower_limit_on_attempts_makes_the_job_stuck_and_launches_nothing() {
    let kept = Kept::default();
    live(&mut recorded(&kept));
    let once = |settings: &mut JobSettings| settings.resume.max_attempts = CountLimit::At(1);
    let differences = compare(&kept.decided(), &kept.replay(ForJobs(once)), &kept.signs());
    let whats: Vec<String> = differences.iter().map(|difference| difference.what.to_string()).collect();
    assert_eq!(whats, ["phase stuck", "launch"]);
    assert!(differences[1].other.is_none());
}

#[test]
fn a_recording_that_goes_on_in_the_middle_is_replayed_from_what_a_restart_knows() {
    let kept = Kept { lines_max: Some(6), ..Kept::default() };
    let mut world = recorded(&kept);
    for beat in 1..20 {
        // An agent that begins anew looks at every folder; what it knows already changes nothing.
        let Fact::JobFound(mut found) = world.found(FoundState::Running, 1) else { unreachable!() };
        let Fact::Heard { status } = world.status(beat, Duration::ZERO) else { unreachable!() };
        found.attempt.as_mut().unwrap().status = Some(*status);
        world.step(vec![Fact::JobFound(found)]);
        world.pass(3 * SECOND);
    }
    let lines = kept.lines();
    assert!(matches!(&lines[0], Line::Began(beginning) if !beginning.is_start));
    world.pass(SECOND);
    let ended = world.ended(1, 1, Outcome::signaled(9, "SIGKILL"));
    world.step(vec![ended]);
    let then = kept.decided();
    assert!(whats(&then).contains(&What::Ask), "{then:?}");
    assert_eq!(kept.replay(AsRecorded), then);
}

#[test]
fn what_is_no_recording_and_what_is_newer_is_refused() {
    let kept = Kept::default();
    live(&mut recorded(&kept));
    let lines = kept.lines();
    let refused = Replay::new(AsRecorded).take(&lines[1]).err();
    assert!(matches!(refused, Some(ReplayError::NoBeginning)), "{refused:?}");
    let Line::Began(mut beginning) = lines[0].clone() else { panic!("{:?}", lines[0]) };
    beginning.version += 1;
    let refused = Replay::new(AsRecorded).take(&Line::Began(beginning)).err();
    let newer = RECORDING_VERSION + 1;
    assert!(matches!(refused, Some(ReplayError::Newer { version }) if version == newer), "{refused:?}");
}

#[test]
fn no_command_and_no_environment_is_recorded() {
    const SECRET: &str = "hunter2";
    let kept = Kept::default();
    let mut world = recorded(&kept);
    let mut start = world.start(1, 1);
    start.command = vec![SECRET.into()];
    let Fact::AttemptEnded { end, .. } = world.ended(1, 1, Outcome::signaled(9, "SIGKILL")) else { unreachable!() };
    let Fact::JobFound(mut found) = world.found(FoundState::Running, 1) else { unreachable!() };
    found.job.command = vec![SECRET.into()];
    found.job.environment.insert("TOKEN".into(), SECRET.into());
    found.earlier = vec![(start.clone(), (*end).clone())];
    found.attempt.as_mut().unwrap().start.command = vec![SECRET.into()];
    world.step(vec![Fact::JobFound(found), Fact::AttemptStarted { start: Box::new(start.clone()) }]);
    world.step(vec![Fact::AttemptEnded { start: Some(Box::new(start)), end }]);
    let Fact::StrategyAnswered { attempt, proposal, detail, .. } = proposal(Proposal::Launch) else { unreachable!() };
    let command = Some(vec![SECRET.to_owned()]);
    let orders = world.step(vec![Fact::StrategyAnswered { attempt, proposal, detail, command }]).orders;
    assert!(matches!(&orders[..], [Order::Launch { command: Some(_), .. }]), "{orders:?}");
    assert!(kept.text().contains("catalogue"));
    assert!(!kept.text().contains(SECRET), "{}", kept.text());
    assert_eq!(kept.replay(AsRecorded), kept.decided(), "and nothing is decided by it");
}
