//! What all attempts of a job may have together: progress, time, and budgets.

use core::time::Duration;

use latido_policy::{
    Action, Budget, Class, Counter, Ending, Event, Fingerprint, Heard, JobSettings, Limit, Phase, Proposal, Reason,
    ResumeOn, Spent, Want,
};

use crate::harness::{Bench, JOB, ask, attempt, beat, end_attempt, ending, launch, seconds, settings};

const LOST: Class = Class::Lost;

fn eager() -> JobSettings {
    let mut settings = settings();
    settings.resume.on = ResumeOn { lost: true, failed: true, limit: true, ..ResumeOn::default() };
    settings.resume.max_attempts = Limit::At(100);
    settings.resume.max_pickups = 100;
    settings
}

fn turns(turns: u64) -> Spent {
    Spent { turns, ..Spent::default() }
}

/// Ends the present attempt, and starts the next one if there is one.
fn next(bench: &mut Bench, ending: Ending) -> Reason {
    let number = bench.view().attempt.number.0;
    bench.ended(attempt(number), ending);
    bench.answered(attempt(number), Proposal::Launch);
    if bench.phase() == Phase::Launching {
        bench.started(attempt(number + 1));
    }
    bench.view().phase_because
}

#[test]
fn attempts_without_progress_are_limited_in_a_row_and_a_new_checkpoint_begins_the_row_anew() {
    let mut settings = eager();
    settings.resume.max_attempts_without_progress = Limit::At(2);
    let mut bench = Bench::running(settings);
    for checkpoint in [None, Some(1), Some(1), Some(2), None] {
        next(&mut bench, Ending { checkpoint: checkpoint.map(Fingerprint), ..ending(Class::Failed) });
        assert_eq!(bench.phase(), Phase::Running, "after {checkpoint:?}");
    }
    let because = Reason::NoProgress { attempts: 2, attempts_max: 2 };
    assert_eq!((next(&mut bench, ending(Class::Failed)), bench.phase()), (because, Phase::Stuck));
    bench.want(Want::Resume);
    assert_eq!(bench.phase(), Phase::BackingOff, "a person may try once more");
}

#[test]
fn the_time_of_all_attempts_together_ends_the_one_that_runs() {
    let mut settings = eager();
    settings.resume.wall_time_max = Limit::At(seconds(100));
    let mut bench = Bench::running(settings);
    next(&mut bench, ending(LOST));
    assert_eq!(bench.pass(seconds(39)), []);
    let because = Reason::WallTimeSpent { ran: seconds(100), wall_time_max: seconds(100) };
    assert_eq!(bench.pass(seconds(1)).last(), Some(&end_attempt(attempt(2), because)));
    let ended = Ending { ran_for: seconds(40), ..ending(Class::Limit) };
    assert_eq!((next(&mut bench, ended), bench.phase()), (because, Phase::Stuck));
    bench.want(Want::Resume);
    bench.answered(attempt(2), Proposal::Launch);
    bench.started(attempt(3));
    assert_eq!(bench.pass(seconds(99)), [], "a resume by hand begins a new series");
}

#[test]
fn the_limit_of_one_attempt_is_named_where_it_comes_first() {
    let mut settings = eager();
    settings.resume.wall_time_max = Limit::At(seconds(100));
    settings.lease.run_for = Limit::At(seconds(30));
    let mut bench = Bench::running(settings);
    let because = Reason::RanTooLong { running: seconds(30), run_for: seconds(30) };
    assert_eq!(bench.pass(seconds(30)).last(), Some(&end_attempt(attempt(1), because)));
}

// chaitanyagiri/munder-difflin#288, seed 003 with paperclipai/paperclip#390
#[test]
fn c292_c296_the_second_attempt_gets_what_the_first_left_and_is_ended_at_the_sum() {
    let mut settings = eager();
    settings.resume.budget = Budget { turns: Limit::At(10), ..Budget::default() };
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), Heard { spent: turns(6), ..beat(1, 5) });
    next(&mut bench, Ending { spent: turns(6), ..ending(LOST) });
    assert_eq!(bench.heard(attempt(2), Heard { spent: turns(3), ..beat(1, 5) }).len(), 0);
    let because = Reason::BudgetUsedUp { counter: Counter::Turns, spent: 10, budget: 10 };
    assert_eq!(
        bench.heard(attempt(2), Heard { spent: turns(4), ..beat(2, 6) }).last(),
        Some(&end_attempt(attempt(2), because))
    );
    let ended = Ending { spent: turns(4), ..ending(Class::Limit) };
    assert_eq!((next(&mut bench, ended), bench.phase()), (because, Phase::Stuck));
}

#[test]
fn a_report_that_says_less_than_before_gives_nothing_back() {
    let mut settings = eager();
    settings.resume.budget = Budget { tokens: Limit::At(10), turns: Limit::At(4), ..Budget::default() };
    let mut bench = Bench::running(settings);
    let told = |turns, tokens| Spent { turns, tokens, money: 0 };
    bench.heard(attempt(1), Heard { spent: told(0, 9), ..beat(1, 5) });
    bench.heard(attempt(1), Heard { spent: told(3, 0), ..beat(2, 6) });
    assert_eq!(bench.phase(), Phase::Running);
    let because = Reason::BudgetUsedUp { counter: Counter::Turns, spent: 4, budget: 4 };
    assert_eq!(
        bench.heard(attempt(1), Heard { spent: told(4, 0), ..beat(3, 7) }).last(),
        Some(&end_attempt(attempt(1), because))
    );
}

// DraconDev/pi-goal-list-loop-audit#32
#[test]
fn c293_a_used_up_budget_refuses_a_resume_by_hand_until_there_is_more() {
    let mut settings = eager();
    settings.resume.budget = Budget { turns: Limit::At(5), ..Budget::default() };
    let mut bench = Bench::running(settings);
    let because = Reason::BudgetUsedUp { counter: Counter::Turns, spent: 6, budget: 5 };
    assert_eq!(next(&mut bench, Ending { spent: turns(6), ..ending(Class::Limit) }), because);
    assert_eq!((bench.want(Want::Resume), bench.phase()), (vec![], Phase::Stuck));

    bench.tell(Event::BudgetChanged { subject: JOB, budget: Budget { turns: Limit::At(9), ..Budget::default() } });
    assert_eq!(bench.want(Want::Resume).last(), Some(&ask(attempt(1), Reason::ResumedByHand)));
    bench.answered(attempt(1), Proposal::Launch);
    bench.started(attempt(2));
    let because = Reason::BudgetUsedUp { counter: Counter::Turns, spent: 9, budget: 9 };
    assert_eq!(
        bench.heard(attempt(2), Heard { spent: turns(3), ..beat(1, 5) }).last(),
        Some(&end_attempt(attempt(2), because)),
        "6 of the first attempt are carried over"
    );
}

#[test]
fn a_budget_that_is_lowered_below_what_was_used_up_ends_what_runs() {
    let mut bench = Bench::running(eager());
    bench.heard(attempt(1), Heard { spent: turns(6), ..beat(1, 5) });
    assert_eq!(bench.view().spent, turns(6));
    let because = Reason::BudgetUsedUp { counter: Counter::Turns, spent: 6, budget: 6 };
    let budget = Budget { turns: Limit::At(6), ..Budget::default() };
    let lowered = Event::BudgetChanged { subject: JOB, budget };
    assert_eq!(bench.tell(lowered).last(), Some(&end_attempt(attempt(1), because)));
}

// KarpelesLab/teamclaude PR #89
#[test]
fn c214_a_strategy_that_waits_is_waited_for_and_that_uses_up_no_attempts() {
    let mut settings = eager();
    settings.resume.max_attempts = Limit::At(2);
    let mut bench = Bench::running(settings);
    bench.ended(attempt(1), ending(Class::Failed));
    for _ in 0..20 {
        bench.answered(attempt(1), Proposal::Wait(seconds(30)));
        assert_eq!(bench.pass(seconds(30) - Duration::from_nanos(1)), []);
        let resumed = Reason::Resumed { after: Class::Failed, order: None };
        assert_eq!(bench.pass(Duration::from_nanos(1)), [ask(attempt(1), resumed)]);
    }
    let resumed = Reason::Resumed { after: Class::Failed, order: None };
    assert_eq!(bench.answered(attempt(1), Proposal::Launch).last(), Some(&launch(attempt(2), resumed)));
}

/// The supervisor does not carry out an order for silence where a beat has come since; a limit that was reached meanwhile
/// is an order of its own.
#[test]
fn a_limit_that_is_reached_while_an_order_for_silence_is_void_is_ordered() {
    let mut settings = eager();
    settings.resume.on.stale = true;
    let ttl = settings.lease.ttl;
    settings.lease.run_for = Limit::At(ttl + seconds(5));
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(1, 0));
    let stale = bench.pass(ttl);
    assert!(matches!(stale.last(), Some(Action::EndAttempt { because: Reason::LeaseRanOut { .. }, .. })), "{stale:?}");
    let running = ttl + seconds(6);
    let ordered = bench.heard(attempt(1), Heard { running, ..beat(2, 0) });
    let limit = Reason::RanTooLong { running, run_for: ttl + seconds(5) };
    assert!(
        ordered.iter().any(|action| matches!(action, Action::EndAttempt { because, .. } if *because == limit)),
        "{ordered:?}"
    );
    assert_eq!(bench.phase(), Phase::Draining);
}

/// The supervisor found that it had ended by itself, so what followed from the order is not what happened.
#[test]
fn what_failed_by_itself_while_its_end_was_ordered_is_not_resumed_as_stale() {
    let mut settings = settings();
    settings.resume.on.stale = true;
    let ttl = settings.lease.ttl;
    for (class, phase) in [(Class::Failed, Phase::Ended), (Class::Lost, Phase::BackingOff)] {
        let mut bench = Bench::running(settings);
        bench.heard(attempt(1), beat(1, 0));
        bench.pass(ttl);
        assert_eq!(bench.phase(), Phase::Draining);
        bench.ended(attempt(1), ending(class));
        assert_eq!(bench.phase(), phase, "{class:?}");
    }
}
