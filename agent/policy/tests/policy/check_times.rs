//! How time meets a check: pauses, restarts, gaps, the calendar.

use std::time::Duration;

use latido_policy::{
    Action, Attempt, CheckEvent, CheckFound, CheckReason, CheckSchedule, CheckSettings, Event, Expectation, PauseFound,
    Phase, Reason, Recorded, Signal, Verdict,
};

use crate::harness::{Bench, seconds};
use crate::watch::{CHECK, DAY, HOUR, MINUTE, check_reason, daily, daily_at, hourly, run, turned};

fn overdue(bench: &Bench) -> Option<(Duration, bool)> {
    let Reason::Check(
        CheckReason::FirstOverdue { overdue, in_gap, .. }
        | CheckReason::NeverSignaled { overdue, in_gap, .. }
        | CheckReason::Overdue { overdue, in_gap, .. }
        | CheckReason::NotSignaled { overdue, in_gap, .. },
    ) = bench.of(CHECK).1
    else {
        return None;
    };
    Some((overdue, in_gap))
}

#[test]
fn a_pause_covers_its_verdicts_and_its_time_does_not_count() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    bench.pass(30 * MINUTE);
    let paused = Reason::Paused { length: Some(DAY) };
    let (subject, attempt) = (CHECK, Attempt::default());
    assert_eq!(
        bench.pause_check(Some(DAY)),
        [Action::RecordPhase { subject, attempt, phase: Phase::Paused, because: paused }]
    );
    assert_eq!(
        bench.pass(DAY),
        [Action::RecordPhase { subject, attempt, phase: Phase::Running, because: Reason::Watched }],
        "the pause ends by itself"
    );
    bench.pass(29 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late, "an hour of time that counts");
}

#[test]
fn a_moment_of_the_calendar_that_comes_in_a_pause_is_not_owed() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.succeed();
    bench.pause_check(None);
    bench.pass(2 * HOUR);
    bench.expect(daily_at(2, bench.now.after(DAY)));
    bench.unpause_check();
    bench.pass(DAY - MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late, "the next one is");
}

#[test]
fn what_was_owed_before_a_pause_has_the_rest_of_its_grace_after_it() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.succeed();
    bench.pass(HOUR + 10 * MINUTE);
    bench.pause_check(None);
    bench.pass(DAY);
    bench.unpause_check();
    assert_eq!(overdue(&bench), Some((10 * MINUTE, false)));
    bench.pass(20 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Stale);
}

#[test]
fn a_run_that_began_in_a_pause_began_no_later_than_its_end() {
    let mut bench = Bench::check(CheckSettings { run_for: Some(HOUR), ..hourly() });
    bench.pause_check(None);
    bench.pass(2 * HOUR);
    bench.signal(Signal::Started, run(1));
    bench.pass(30 * MINUTE);
    bench.unpause_check();
    assert_eq!(bench.pass(59 * MINUTE), []);
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Hung);
}

#[test]
fn a_signal_in_a_pause_is_taken_in_and_told_after_it() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    bench.pause_check(None);
    assert_eq!(bench.signal(Signal::Failed, None), []);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    bench.unpause_check();
    assert_eq!(bench.check_verdict(), Verdict::Failing);
}

#[test]
fn a_restart_goes_on_where_it_was_and_records_nothing_twice() {
    let mut bench = Bench::check(hourly());
    bench.signal(Signal::Started, run(1));
    bench.pass(HOUR + 10 * MINUTE);
    let memory = bench.policy.check_memory(CHECK);
    let recorded = Some(Recorded { verdict: Verdict::Stale, phase: Phase::Running });
    let mut next = Bench::empty();
    next.now = bench.now;
    let found = CheckFound { memory, pause: None, recorded };
    let added = CheckEvent::Added { subject: CHECK, settings: hourly(), found };
    assert_eq!(next.tell(Event::Check(added)), []);
    assert_eq!(next.of(CHECK), bench.of(CHECK));
    assert_eq!(next.policy.check_memory(CHECK), memory);
}

/// A check whose last sign came half an hour before a pause of a day, of which two hours had passed when the agent was
/// gone; the next one finds this much of it left.
fn found_in_a_pause(left: Option<Duration>) -> (Bench, Vec<Action>) {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    bench.pass(HOUR / 2);
    bench.pause_check(Some(DAY));
    bench.pass(2 * HOUR);
    let memory = bench.policy.check_memory(CHECK);
    let mut next = Bench::empty();
    next.now = bench.now;
    let recorded = Some(Recorded { verdict: Verdict::Alive, phase: Phase::Paused });
    let found = CheckFound { memory, pause: Some(PauseFound { left, lasted: 2 * HOUR }), recorded };
    let actions = next.tell(Event::Check(CheckEvent::Added { subject: CHECK, settings: hourly(), found }));
    (next, actions)
}

#[test]
fn a_pause_that_ended_while_no_agent_ran_is_over_and_its_time_does_not_count() {
    let (mut bench, actions) = found_in_a_pause(Some(Duration::ZERO));
    let (subject, attempt) = (CHECK, Attempt::default());
    assert_eq!(
        actions,
        [Action::RecordPhase { subject, attempt, phase: Phase::Running, because: Reason::Watched }],
        "it is not paused for a moment"
    );
    bench.pass(HOUR / 2 - MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    bench.pass(2 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late, "half an hour was over before the pause");
}

#[test]
fn a_pause_that_goes_on_over_a_restart_keeps_its_end_and_its_whole_length_does_not_count() {
    let (mut bench, actions) = found_in_a_pause(Some(HOUR));
    assert_eq!(actions, []);
    bench.pass(HOUR);
    assert_eq!((bench.policy.subject(CHECK).unwrap().phase, bench.check_verdict()), (Phase::Running, Verdict::Alive));
    bench.pass(HOUR / 2 + MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late);
}

#[test]
fn another_schedule_is_another_check_and_inherits_nothing() {
    let mut bench = Bench::check(hourly());
    bench.signal(Signal::Failed, None);
    let settings = CheckSettings { schedule: CheckSchedule::Every(DAY), ..hourly() };
    let added = CheckEvent::Added { subject: CHECK, settings, found: CheckFound::default() };
    let because = check_reason(CheckReason::FirstAwaited { due_in: Some(DAY) });
    assert_eq!(bench.tell(Event::Check(added)), [turned(CHECK, Verdict::Failing, Verdict::Waiting, because)]);
}

#[test]
fn another_grace_is_the_same_check() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    bench.pass(HOUR + 20 * MINUTE);
    let settings = CheckSettings { grace: HOUR, ..hourly() };
    bench.tell(Event::Check(CheckEvent::Added { subject: CHECK, settings, found: CheckFound::default() }));
    assert_eq!(bench.check_verdict(), Verdict::Late);
}

#[test]
fn a_moment_that_passed_while_nobody_listened_has_its_whole_grace_afterwards() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.succeed();
    bench.pass(MINUTE);
    // The machine slept for nine hours; the line goes on from here.
    bench.expect(Expectation { in_gap: true, ..daily_at(1, bench.now) });
    assert_eq!(overdue(&bench), Some((Duration::ZERO, true)));
    bench.pass(29 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late);
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Stale);
}

#[test]
fn what_was_waited_for_before_a_gap_stays_waited_for() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.succeed();
    bench.pass(HOUR + 20 * MINUTE);
    bench.expect(Expectation { in_gap: true, ..daily_at(2, bench.now) });
    bench.pass(10 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Stale);
}

#[test]
fn a_step_of_the_calendar_moves_the_next_moment_and_no_silence() {
    let mut bench = Bench::check_due_in(daily(), 10 * HOUR);
    bench.succeed();
    bench.pass(HOUR);
    let before = bench.of(CHECK);
    assert_eq!(bench.expect(daily_at(1, bench.now.after(MINUTE))), []);
    assert_eq!(bench.of(CHECK), before);
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late);
}

#[test]
fn a_moment_of_the_calendar_comes_due_once() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.pass(HOUR);
    bench.succeed();
    assert_eq!(bench.expect(daily_at(1, bench.now)), []);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    assert_eq!(bench.policy.refused_count(), 1);
}

#[test]
fn a_moment_that_was_met_early_is_met_wherever_it_is_moved() {
    let mut bench = Bench::check_due_in(daily(), seconds(40));
    bench.succeed();
    bench.expect(daily_at(1, bench.now.after(HOUR)));
    bench.pass(HOUR);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}

// healthchecks/healthchecks#830
#[test]
fn c019_a_signal_forty_seconds_early_meets_its_moment() {
    let mut bench = Bench::check_due_in(CheckSettings { grace: 5 * MINUTE, ..daily() }, DAY);
    bench.succeed();
    for day in 2..9 {
        assert_eq!(bench.pass(DAY - seconds(40)), [], "before day {day}");
        bench.succeed();
        assert_eq!(bench.pass(seconds(40)), [], "at day {day}");
        bench.expect(daily_at(day, bench.now.after(DAY)));
    }
}

#[test]
fn a_signal_long_before_its_moment_does_not_meet_it() {
    let mut bench = Bench::check_due_in(daily(), 2 * MINUTE);
    bench.succeed();
    bench.pass(2 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late);
}

#[test]
fn moments_a_minute_apart_are_met_half_a_minute_early_at_most() {
    let mut bench = Bench::check(daily());
    let every_minute = |mark, moment| Expectation { spacing: MINUTE, ..daily_at(mark, moment) };
    bench.expect(every_minute(1, bench.now.after(seconds(31))));
    bench.succeed();
    bench.pass(seconds(31));
    assert_eq!(bench.check_verdict(), Verdict::Late);
    bench.expect(every_minute(2, bench.now.after(seconds(30))));
    bench.succeed();
    bench.pass(seconds(30));
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}

#[test]
fn the_same_pause_again_keeps_its_end_and_another_one_has_its_own() {
    let is_paused = |bench: &Bench| bench.policy.subject(CHECK).unwrap().phase == Phase::Paused;
    let mut bench = Bench::check(hourly());
    bench.pause_check(Some(HOUR));
    bench.pass(30 * MINUTE);
    bench.pause_check(Some(HOUR));
    bench.pass(30 * MINUTE);
    assert!(!is_paused(&bench), "an hour after it began");
    bench.pause_check(None);
    bench.pause_check(Some(10 * MINUTE));
    bench.pass(10 * MINUTE - seconds(1));
    assert!(is_paused(&bench));
    bench.pass(seconds(1));
    assert!(!is_paused(&bench));
}

#[test]
fn a_pause_whose_end_was_moved_counts_nothing_of_its_whole_time() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    bench.pass(30 * MINUTE);
    bench.pause_check(None);
    bench.pass(2 * HOUR);
    bench.pause_check(Some(HOUR));
    bench.pass(HOUR + 29 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late);
}

#[test]
fn a_check_shows_how_long_it_has_been_silent() {
    let silence = |bench: &Bench| bench.policy.subject(CHECK).unwrap().silence;
    let mut bench = Bench::check(hourly());
    bench.pass(MINUTE);
    assert_eq!(silence(&bench), None, "nothing was heard of it");
    bench.succeed();
    bench.pass(5 * MINUTE);
    assert_eq!(silence(&bench), Some(5 * MINUTE));
}
