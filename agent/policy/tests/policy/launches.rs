//! Launches that are refused, won by others, or fail.

use core::time::Duration;

use latido_policy::{
    Action, Attempt, Class, Ending, Event, Found, FoundAttempt, FoundState, LaunchFailure, Limit, NextStep, Phase,
    Proposal, Reason, Verdict, Want,
};

use crate::harness::{Bench, JOB, ask, attempt, ending, launch, record_phase, seconds, settings, with_epoch};
use crate::jobs::{LOST, RESUMED, started};

#[test]
fn a_refused_launch_is_ordered_again_with_a_new_epoch_and_then_held() {
    for failure in [LaunchFailure::Locked, LaunchFailure::Failed] {
        let mut bench = Bench::found(settings(), Found::default());
        let mut waited = Duration::ZERO;
        for refusals in 1..10_u64 {
            bench.tell(Event::LaunchRefused { subject: JOB, attempt: with_epoch(1, refusals), failure });
            assert_eq!(bench.phase(), Phase::BackingOff);
            let (step, at) = bench.view().next.unwrap();
            assert_eq!(step, NextStep::Launch);
            waited += at.since(bench.now);
            let launched = bench.pass(at.since(bench.now));
            assert_eq!(launched.last(), Some(&launch(with_epoch(1, refusals + 1), Reason::FirstAttempt)));
        }
        bench.tell(Event::LaunchRefused { subject: JOB, attempt: with_epoch(1, 10), failure });
        assert_eq!((bench.phase(), bench.verdict()), (Phase::Held, Verdict::Ended));
        assert!(waited > seconds(180), "{waited:?}");
        assert_eq!(bench.pass(seconds(100_000)), []);
        let again = bench.want(Want::Resume);
        assert_eq!(again.last(), Some(&launch(with_epoch(1, 11), Reason::FirstAttempt)));
    }
}

#[test]
fn a_launch_that_was_refused_and_runs_after_all_is_believed() {
    let mut bench = Bench::found(settings(), Found::default());
    bench.tell(Event::LaunchRefused { subject: JOB, attempt: attempt(1), failure: LaunchFailure::Locked });
    bench.started(attempt(1));
    assert_eq!((bench.phase(), bench.pass(seconds(100_000))), (Phase::Running, vec![]));
}

#[test]
fn two_starters_with_one_number_and_epoch_make_one_attempt() {
    let refused = |failure| Event::LaunchRefused { subject: JOB, attempt: attempt(1), failure };
    for failure in [LaunchFailure::Locked, LaunchFailure::Superseded, LaunchFailure::Failed] {
        for refused_first in [true, false] {
            let mut bench = Bench::found(settings(), Found::default());
            let events = [refused(failure), started(attempt(1))];
            for event in if refused_first { events } else { [events[1], events[0]] } {
                bench.tell(event);
            }
            assert_eq!((bench.phase(), bench.view().attempt), (Phase::Running, attempt(1)), "{failure:?}");
            assert_eq!((bench.pass(seconds(10_000)), bench.policy.unexpected_count()), (vec![], 0), "{failure:?}");
        }
    }
}

#[test]
fn whoever_was_superseded_backs_off_until_the_other_starter_shows() {
    let mut bench = Bench::found(settings(), Found::default());
    bench.tell(Event::LaunchRefused { subject: JOB, attempt: attempt(1), failure: LaunchFailure::Superseded });
    assert_eq!(bench.phase(), Phase::BackingOff);
    bench.started(with_epoch(1, 4));
    assert_eq!((bench.phase(), bench.view().attempt), (Phase::Running, with_epoch(1, 4)));
    let asked = bench.ended(with_epoch(1, 4), ending(LOST));
    assert_eq!(asked.last(), Some(&ask(with_epoch(1, 4), RESUMED)));
    let launched = bench.answered(with_epoch(1, 4), Proposal::Launch);
    assert_eq!(launched.last(), Some(&launch(with_epoch(2, 5), RESUMED)), "its epoch is above all that were seen");
}

#[test]
fn a_launch_that_failed_to_start_counts_as_an_attempt() {
    let mut settings = settings();
    settings.resume.on.failed = true;
    settings.resume.max_attempts = Limit::At(2);
    let mut bench = Bench::found(settings, Found::default());
    let failed = Ending { launch_failed: true, ran_for: Duration::ZERO, ..ending(Class::Failed) };
    bench.ended(attempt(1), failed);
    bench.answered(attempt(1), Proposal::Launch);
    let stuck = Reason::AttemptsSpent { attempts: 2, max_attempts: 2 };
    assert_eq!(bench.ended(attempt(2), failed).last(), Some(&record_phase(attempt(2), Phase::Stuck, stuck)));
}

fn found_launching(bench: &mut Bench, attempt: Attempt) -> Vec<Action> {
    let latest = FoundAttempt { attempt, state: FoundState::Launching };
    bench.add(settings(), Found { epoch: attempt.epoch, attempt: Some(latest), ..Found::default() })
}

#[test]
fn a_launch_by_somebody_else_is_waited_for() {
    let mut bench = Bench::running(settings());
    bench.ended(attempt(1), ending(LOST));
    assert_eq!(
        found_launching(&mut bench, attempt(2)).last(),
        Some(&record_phase(attempt(2), Phase::Launching, Reason::StartedElsewhere))
    );
    assert_eq!(bench.answered(attempt(1), Proposal::Launch), [], "nothing is launched beside it");
    bench.started(attempt(2));
    assert_eq!(bench.phase(), Phase::Running);
}

#[test]
fn a_launch_that_was_given_up_and_goes_on_is_waited_for() {
    for (refusals, failure) in [(1, LaunchFailure::Failed), (10, LaunchFailure::Failed), (1, LaunchFailure::Superseded)]
    {
        let mut bench = Bench::found(settings(), Found::default());
        for refusal in 1..refusals {
            bench.tell(Event::LaunchRefused { subject: JOB, attempt: with_epoch(1, refusal), failure });
            bench.pass(seconds(3_000));
        }
        let last = with_epoch(1, refusals);
        bench.tell(Event::LaunchRefused { subject: JOB, attempt: last, failure });
        bench.tell(Event::LaunchSeen { subject: JOB, attempt: last });
        assert_eq!((bench.phase(), bench.view().attempt), (Phase::Launching, last), "after {refusals} of {failure:?}");
        let meanwhile = bench.pass(seconds(3_000));
        assert!(!meanwhile.iter().any(|action| matches!(action, Action::Launch { .. })), "{meanwhile:?}");
        bench.started(last);
        assert_eq!((bench.phase(), bench.pass(seconds(100_000))), (Phase::Running, vec![]));
    }
}

#[test]
fn a_launch_that_is_long_over_is_not_waited_for_again() {
    for (number, epoch) in [(2, 2), (1, 1)] {
        let mut bench = Bench::running(settings());
        bench.ended(attempt(1), ending(LOST));
        bench.answered(attempt(1), Proposal::Launch);
        bench.started(attempt(2));
        bench.ended(attempt(2), ending(Class::Completed));
        assert_eq!(found_launching(&mut bench, with_epoch(number, epoch)), [], "attempt {number}");
        assert_eq!((bench.phase(), bench.view().attempt), (Phase::Ended, attempt(2)));
    }
}

#[test]
fn a_number_that_nobody_gave_with_the_epoch_of_what_runs_is_refused() {
    let mut bench = Bench::running(settings());
    assert_eq!(bench.started(with_epoch(9, 1)), []);
    assert_eq!((bench.view().attempt, bench.policy.refused_count()), (attempt(1), 1));
}
