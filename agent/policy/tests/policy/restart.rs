//! What an agent's restart neither forgets nor doubles.

use core::time::Duration;

use latido_policy::{
    Action, Class, Ending, Fingerprint, Found, FoundState, Heard, History, JobSettings, Limit, Phase, Proposal, Reason,
    ResumeOn, StopReason, Want,
};

use crate::harness::{Bench, ask, attempt, beat, ending, found, found_running, seconds, settings};

const LOST: Class = Class::Lost;

fn with_backoff(first: u64) -> JobSettings {
    let mut settings = settings();
    settings.resume.backoff_first = seconds(first);
    settings.resume.max_attempts = Limit::At(100);
    settings.resume.max_pickups = 100;
    settings
}

/// What the files tell of these endings, the last of which is the latest attempt's.
fn told(endings: &[Ending], ago: u64) -> Found {
    let (last, earlier) = endings.split_last().unwrap();
    let mut history = History::default();
    earlier.iter().for_each(|ending| history.attempt_ended(ending));
    let lost = endings.iter().filter(|ending| ending.class == LOST).count();
    let latest = found(endings.len().try_into().unwrap(), FoundState::Ended(*last));
    Found { history, pickups: lost.try_into().unwrap(), ended_ago: seconds(ago), ..latest }
}

/// The same endings, lived through by one agent.
fn lived(settings: JobSettings, endings: &[Ending]) -> Bench {
    let mut bench = Bench::running(settings);
    for (number, ending) in (1..).zip(endings) {
        bench.ended(attempt(number), *ending);
        if number < endings.len().try_into().unwrap() {
            bench.pass(seconds(1000));
            bench.answered(attempt(number), Proposal::Launch);
            bench.started(attempt(number + 1));
        }
    }
    bench
}

fn wait(bench: &Bench) -> Duration {
    bench.view().next.unwrap().1.since(bench.now)
}

#[test]
fn a_backoff_is_neither_forgotten_nor_doubled() {
    let checkpoint = Some(Fingerprint(4));
    let endings =
        [ending(LOST), Ending { checkpoint, ..ending(LOST) }, ending(LOST), Ending { checkpoint, ..ending(LOST) }];
    for count in 1..=4 {
        let lived = lived(with_backoff(20), &endings[..count]);
        let whole = wait(&lived);
        let found = Bench::found(with_backoff(20), told(&endings[..count], 7));
        assert_eq!(wait(&found), whole - seconds(7), "after {count} endings");
        assert_eq!(found.view().phase_because, lived.view().phase_because, "and nothing is recorded anew");
    }
    let mut over = Bench::found(with_backoff(20), told(&endings, 1000));
    assert_eq!(over.phase(), Phase::BackingOff);
    assert_eq!(over.view().next, None, "its strategy is asked at once");
    assert_eq!(over.answered(attempt(4), Proposal::Launch).len(), 3);
}

#[test]
fn what_its_strategy_gave_up_stays_given_up_and_goes_on_by_hand() {
    for want in [Want::Run, Want::Resume] {
        let given_up = Found { is_given_up: true, want, ..told(&[ending(LOST)], 0) };
        let mut bench = Bench::empty();
        let actions = bench.add(settings(), given_up);
        assert!(!actions.iter().any(|action| matches!(action, Action::AskStrategy { .. })), "{actions:?}");
        assert_eq!((bench.phase(), bench.view().phase_because), (Phase::Stuck, Reason::StrategyGaveUp), "{want:?}");
        assert_eq!(bench.want(Want::Resume).last(), Some(&ask(attempt(1), Reason::ResumedByHand)));
    }
    let stopped = Found { is_given_up: true, want: Want::Stop, ..told(&[ending(LOST)], 0) };
    assert_eq!(Bench::found(settings(), stopped).phase(), Phase::Ended, "a stop outranks it");
}

#[test]
fn a_wall_clock_that_went_back_lengthens_no_backoff() {
    let found = Bench::found(with_backoff(20), told(&[ending(LOST)], 0));
    assert!(wait(&found) <= seconds(20));
}

#[test]
fn identical_deaths_are_counted_over_all_lives_of_the_agent() {
    let dies = Ending { ran_for: Duration::from_millis(20), ..ending(Class::Failed) };
    let mut settings = with_backoff(0);
    settings.resume.on = ResumeOn { failed: true, ..ResumeOn::default() };
    assert_eq!(Bench::found(settings, told(&[dies; 2], 0)).phase(), Phase::BackingOff);
    let third = Bench::found(settings, told(&[dies; 3], 0));
    let because = Reason::IdenticalDeaths { deaths: 3, ran_for: dies.ran_for };
    assert_eq!((third.phase(), third.view().phase_because), (Phase::Stuck, because));
}

#[test]
fn attempts_since_a_resume_by_hand_are_counted_from_there() {
    let mut settings = with_backoff(0);
    settings.resume.max_attempts = Limit::At(2);
    let mut latest = told(&[ending(LOST), ending(LOST), ending(LOST)], 0);
    assert_eq!(Bench::found(settings, latest).phase(), Phase::Stuck);
    latest.history = History::default();
    latest.history.attempt_ended(&ending(LOST));
    latest.history.attempt_ended(&ending(LOST));
    latest.history.resumed_by_hand();
    assert_eq!(Bench::found(settings, latest).phase(), Phase::BackingOff, "the third is the first of its series");
}

#[test]
fn a_checkpoint_of_an_earlier_attempt_is_not_new_to_the_one_that_runs() {
    let checkpoint = Some(Fingerprint(4));
    let mut history = History::default();
    history.attempt_ended(&Ending { checkpoint, ..ending(LOST) });
    history.attempt_ended(&ending(LOST));
    let mut waits = Vec::new();
    for checkpoint in [checkpoint, Some(Fingerprint(5))] {
        let running = found_running(3, Heard { checkpoint, ..beat(1, 5) });
        let mut bench = Bench::found(with_backoff(100), Found { history, ..running });
        bench.ended(attempt(3), ending(LOST));
        waits.push(wait(&bench));
    }
    assert!(waits[0] > seconds(200) && waits[1] <= seconds(100), "{waits:?}");
}

#[test]
fn what_was_ended_to_be_resumed_is_resumed_by_the_next_agent_too() {
    let mut settings = settings();
    settings.resume.on = ResumeOn { stale: true, hung: true, ..ResumeOn::default() };
    for (order, asks) in [
        (Some(StopReason::Stale), true),
        (Some(StopReason::Hung), true),
        (Some(StopReason::Superseded), false),
        (None, false),
    ] {
        let resumed = ask(attempt(1), Reason::Resumed { after: LOST, order });
        let ended = Ending { order, ..ending(LOST) };
        let mut found_ended = Bench::empty();
        let actions = found_ended.add(settings, found(1, FoundState::Ended(ended)));
        assert_eq!(actions.contains(&resumed), asks, "found ended by {order:?}");
        let stopping = Heard { stopping: true, ..beat(5, 100) };
        let mut found_draining = Bench::found(settings, found_running(1, stopping));
        let actions = found_draining.ended(attempt(1), ended);
        assert_eq!(actions.contains(&resumed), asks, "found while it was being ended by {order:?}");
    }
}

#[test]
fn silence_from_before_the_end_of_a_pause_counts_for_no_later_agent() {
    let mut settings = settings();
    settings.resume.on = ResumeOn { stale: true, ..ResumeOn::default() };
    let silent = found_running(1, Heard { silence: seconds(1000), still: seconds(1000), ..beat(7, 5000) });
    let mut bench = Bench::empty();
    let actions = bench.add(settings, Found { unpaused_ago: Some(seconds(100)), ..silent });
    let phases: Vec<&Action> = actions.iter().filter(|it| matches!(it, Action::RecordPhase { .. })).collect();
    assert!(matches!(phases[..], [Action::RecordPhase { phase: Phase::Running, .. }]), "{actions:?}");
    assert_eq!(bench.view().silence, Some(seconds(100)));
    let ends = |actions: &[Action]| actions.iter().any(|action| matches!(action, Action::EndAttempt { .. }));
    assert!(!ends(&bench.pass(seconds(79))));
    assert!(ends(&bench.pass(seconds(1))), "a ttl after the end of the pause");
}

// sidekiq/sidekiq#4715
#[test]
fn c093_wherever_the_agent_is_killed_the_next_one_brings_the_job_to_the_same_end() {
    let mut settings = with_backoff(5);
    settings.resume.max_attempts_without_progress = Limit::At(3);
    let endings = [ending(LOST); 3];
    let because = Reason::NoProgress { attempts: 3, attempts_max: 3 };
    for killed_after in 1..=3 {
        let mut bench = Bench::found(settings, told(&endings[..killed_after], 2));
        for number in killed_after.try_into().unwrap()..3 {
            bench.pass(seconds(1000));
            bench.answered(attempt(number), Proposal::Launch);
            bench.started(attempt(number + 1));
            bench.ended(attempt(number + 1), ending(LOST));
        }
        let view = bench.view();
        assert_eq!((view.phase, view.phase_because, view.pickups), (Phase::Stuck, because, 3), "{killed_after}");
    }
}

// apache/airflow#7927
#[test]
fn c095_what_died_with_the_agent_is_dead_at_the_first_look_however_late() {
    let gone = found(2, FoundState::Unattended { process: latido_policy::Life::Gone });
    let mut bench = Bench::empty();
    let actions = bench.add(settings(), Found { ended_ago: seconds(3600), ..gone });
    assert!(matches!(actions.last(), Some(Action::RecordLost { .. })), "{actions:?}");
}
