//! Stories of one check.

use core::time::Duration;

use latido_policy::{
    Action, CheckAction, CheckEvent, CheckReason, CheckSettings, Event, OPEN_RUNS_MAX, Signal, Verdict,
};

use crate::harness::{Bench, seconds};
use crate::watch::{CHECK, DAY, HOUR, MINUTE, check_reason, daily, daily_at, hourly, run, turned};

fn unended(id: Option<u64>, open_for: Duration) -> Action {
    let run = id.map(latido_policy::Fingerprint);
    Action::Check(CheckAction::RecordUnended { subject: CHECK, run, open_for })
}

#[test]
fn a_check_that_never_signals_waits_and_then_is_missing() {
    let mut bench = Bench::check(hourly());
    assert_eq!(bench.pass(HOUR + seconds(599)), []);
    assert_eq!(bench.check_verdict(), Verdict::Waiting);
    let grace = 10 * MINUTE;
    let because = check_reason(CheckReason::NeverSignaled { overdue: grace, grace, in_gap: false });
    assert_eq!(bench.pass(seconds(1)), [turned(CHECK, Verdict::Waiting, Verdict::Missing, because)]);
    assert_eq!(bench.pass(DAY), []);
}

#[test]
fn a_check_that_falls_silent_is_late_and_then_stale_and_comes_back() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    let grace = 10 * MINUTE;
    let late = check_reason(CheckReason::Overdue { overdue: Duration::ZERO, grace, in_gap: false });
    assert_eq!(bench.pass(HOUR), [turned(CHECK, Verdict::Alive, Verdict::Late, late)]);
    let stale = check_reason(CheckReason::NotSignaled { overdue: grace, grace, in_gap: false });
    assert_eq!(bench.pass(grace), [turned(CHECK, Verdict::Late, Verdict::Stale, stale)]);
    let alive = check_reason(CheckReason::InTime { ago: Duration::ZERO });
    assert_eq!(bench.succeed(), [turned(CHECK, Verdict::Stale, Verdict::Alive, alive)]);
}

#[test]
fn a_sign_moves_the_next_moment_of_a_check_that_is_due_every_so_often() {
    let mut bench = Bench::check(hourly());
    for _ in 0..5 {
        bench.succeed();
        bench.pass(50 * MINUTE);
        assert_eq!(bench.check_verdict(), Verdict::Alive);
    }
}

#[test]
fn a_moment_of_the_calendar_without_a_sign_is_owed_from_then_on() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.succeed();
    bench.pass(HOUR);
    assert_eq!(bench.check_verdict(), Verdict::Late);
    bench.expect(daily_at(2, bench.now.after(10 * MINUTE)));
    bench.pass(29 * MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Late, "the grace of the first one runs");
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Stale, "the second one moved nothing");
    bench.succeed();
    assert_eq!(bench.check_verdict(), Verdict::Alive, "one success is enough for both");
}

#[test]
fn a_failure_is_told_at_once_and_stays_until_a_success() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    let says = |status| check_reason(CheckReason::SaysFailed { status, ago: Duration::ZERO });
    assert_eq!(bench.signal(Signal::Failed, None), [turned(CHECK, Verdict::Alive, Verdict::Failing, says(None))]);
    assert_eq!(bench.signal(Signal::Started, None), []);
    assert_eq!(bench.signal(Signal::Exited(3), None), []);
    assert_eq!(bench.of(CHECK).1, says(Some(3)));
    bench.signal(Signal::Exited(0), None);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}

#[test]
fn a_failing_check_that_falls_silent_stays_failing_and_says_both() {
    let mut bench = Bench::check(hourly());
    bench.signal(Signal::Exited(7), None);
    assert_eq!(bench.pass(2 * HOUR), []);
    let because = CheckReason::FailedAndOverdue { status: Some(7), overdue: HOUR, grace: 10 * MINUTE };
    assert_eq!(bench.of(CHECK), (Verdict::Failing, check_reason(because)));
}

#[test]
fn a_run_that_is_under_way_is_alive_and_meets_its_moment() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.pass(HOUR + MINUTE);
    bench.signal(Signal::Started, run(1));
    bench.pass(90 * MINUTE);
    assert_eq!(bench.of(CHECK), (Verdict::Alive, check_reason(CheckReason::RunUnderWay { running: 90 * MINUTE })));
}

#[test]
fn a_run_longer_than_it_may_be_is_hung_until_it_ends() {
    let mut bench = Bench::check_due_in(daily(), HOUR);
    bench.signal(Signal::Started, run(1));
    bench.expect(daily_at(2, bench.now.after(DAY)));
    let (running, run_for) = (2 * HOUR, 2 * HOUR);
    let because = check_reason(CheckReason::RunTooLong { running, run_for });
    assert_eq!(bench.pass(2 * HOUR), [turned(CHECK, Verdict::Alive, Verdict::Hung, because)]);
    bench.signal(Signal::Succeeded, run(1));
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}

#[test]
fn the_success_of_another_run_tells_that_an_overlong_one_never_ended() {
    let mut bench = Bench::check_due_in(daily(), 2 * DAY);
    bench.signal(Signal::Started, run(1));
    bench.pass(DAY);
    bench.signal(Signal::Started, run(2));
    let actions = bench.signal(Signal::Succeeded, run(2));
    assert_eq!(actions[0], unended(Some(1), DAY));
    assert_eq!(bench.check_verdict(), Verdict::Alive);
    assert_eq!(bench.pass(HOUR), []);
}

#[test]
fn overlapping_runs_are_told_apart_by_their_ids() {
    let mut bench = Bench::check_due_in(daily(), DAY);
    bench.signal(Signal::Started, run(1));
    bench.pass(HOUR);
    bench.signal(Signal::Started, run(2));
    bench.signal(Signal::Succeeded, run(2));
    assert_eq!(bench.pass(59 * MINUTE), [], "the first one still has time");
    bench.pass(MINUTE);
    assert_eq!(bench.check_verdict(), Verdict::Hung, "the first one, not the second, has run for two hours");
    assert_eq!(bench.policy.subject(CHECK).unwrap().running, Some(2 * HOUR));
}

#[test]
fn a_run_that_never_told_its_end_is_told_when_another_begins() {
    let mut bench = Bench::check(hourly());
    bench.signal(Signal::Started, None);
    bench.pass(HOUR);
    let because = check_reason(CheckReason::RunUnended { ago: HOUR });
    assert_eq!(
        bench.signal(Signal::Started, None),
        [unended(None, HOUR), turned(CHECK, Verdict::Late, Verdict::Stale, because)]
    );
    bench.succeed();
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}

#[test]
fn open_runs_are_bounded_and_the_oldest_makes_room() {
    let mut bench = Bench::check(hourly());
    for id in 0..OPEN_RUNS_MAX as u64 {
        assert!(!bench.signal(Signal::Started, run(id)).contains(&unended(Some(0), Duration::ZERO)));
    }
    let actions = bench.signal(Signal::Started, run(99));
    assert_eq!(actions[0], unended(Some(0), Duration::ZERO));
    assert_eq!(bench.check_verdict(), Verdict::Stale);
}

#[test]
fn signals_told_twice_or_out_of_order_are_refused() {
    let mut bench = Bench::check(hourly());
    bench.signal(Signal::Succeeded, run(1));
    let once = bench.policy.check_memory(CHECK);
    bench.pass(MINUTE);
    bench.signal(Signal::Started, run(1));
    bench.signal(Signal::Succeeded, run(1));
    bench.signal(Signal::Failed, run(1));
    assert_eq!(bench.policy.check_memory(CHECK), once);
    assert_eq!(bench.policy.refused_count(), 3);
}

#[test]
fn yesterdays_run_does_not_stand_for_todays_moment() {
    let mut bench = Bench::check_due_in(daily(), MINUTE);
    bench.pass(MINUTE);
    bench.signal(Signal::Started, run(1));
    bench.expect(daily_at(2, bench.now.after(HOUR)));
    bench.pass(HOUR + MINUTE);
    bench.signal(Signal::Succeeded, run(1));
    assert_eq!(bench.check_verdict(), Verdict::Late);
    bench.signal(Signal::Started, run(2));
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}

#[test]
fn a_log_is_no_sign_of_life() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    bench.pass(HOUR);
    assert_eq!(bench.signal(Signal::Logged, None), []);
    assert_eq!(bench.check_verdict(), Verdict::Late);
}

#[test]
fn a_check_without_grace_is_stale_at_its_moment() {
    let mut bench = Bench::check(CheckSettings { grace: Duration::ZERO, ..hourly() });
    bench.succeed();
    bench.pass(HOUR);
    assert_eq!(bench.check_verdict(), Verdict::Stale);
}

#[test]
fn a_removed_check_is_nobodys() {
    let mut bench = Bench::check(hourly());
    bench.tell(Event::Check(CheckEvent::Removed { subject: CHECK }));
    assert_eq!(bench.policy.poll_timeout(), None);
    assert_eq!(bench.succeed(), []);
    assert_eq!(bench.policy.refused_count(), 1);
    assert!(bench.policy.subject(CHECK).is_none());
}

// louislam/uptime-kuma#5639
#[test]
fn c034_a_check_that_said_it_fails_and_falls_silent_turns_once_and_back_once() {
    let mut bench = Bench::check(hourly());
    bench.succeed();
    let mut actions = bench.signal(Signal::Failed, None);
    actions.extend(bench.pass(3 * HOUR));
    actions.extend(bench.succeed());
    let verdicts: Vec<_> = actions
        .iter()
        .map(|action| {
            let Action::RecordVerdict { previous, current, .. } = action else { panic!("{action:?}") };
            (*previous, *current)
        })
        .collect();
    assert_eq!(verdicts, [(Verdict::Alive, Verdict::Failing), (Verdict::Failing, Verdict::Alive)]);
}

// apache/airflow#29455
#[test]
fn c025_a_check_that_never_signalled_is_missing_and_one_that_did_is_stale() {
    let mut never = Bench::check(hourly());
    let mut once = Bench::check(hourly());
    once.succeed();
    never.pass(2 * HOUR);
    once.pass(2 * HOUR);
    assert_eq!((never.check_verdict(), once.check_verdict()), (Verdict::Missing, Verdict::Stale));
}

// google/fleetspeak execution.go
#[test]
fn c037_signals_that_waited_while_the_agent_was_stopped_are_applied_before_it_judges() {
    let mut bench = Bench::check_due_in(CheckSettings { grace: Duration::ZERO, ..daily() }, MINUTE);
    bench.succeed();
    bench.now = bench.now.after(MINUTE);
    // Facts come before timeouts, at the same moment of the line.
    bench.policy.handle_event(
        Event::Check(CheckEvent::Signaled { subject: CHECK, signal: Signal::Succeeded, run: None }),
        bench.now,
    );
    assert_eq!(bench.pass(Duration::ZERO), []);
    assert_eq!(bench.check_verdict(), Verdict::Alive);
}
