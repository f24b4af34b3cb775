//! What people want: stops, resumes and pauses.

use core::time::Duration;

use latido_policy::{
    Class, Event, Found, Heard, History, JobSettings, Life, Limit, Missed, NextStep, Orphans, Phase, Proposal, Reason,
    Verdict, Want,
};

use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_attempt, end_orphan, ending, record_lost, record_phase, record_verdict,
    seconds, settings,
};
use crate::jobs::{LOST, NO_WAIT, RESUMED, runs, with_backoff};

#[test]
fn a_stop_outranks_a_backoff_a_question_and_a_launch() {
    let stopped = |number| record_phase(attempt(number), Phase::Ended, Reason::Commanded);
    let mut bench = Bench::running(with_backoff(10));
    bench.ended(attempt(1), ending(LOST));
    assert_eq!(bench.want(Want::Stop), [stopped(1)]);
    assert_eq!(bench.pass(seconds(1000)), []);

    let mut bench = Bench::running(settings());
    bench.ended(attempt(1), ending(LOST));
    assert_eq!(bench.want(Want::Stop), [stopped(1)]);
    assert_eq!(bench.answered(attempt(1), Proposal::Launch), []);

    let mut bench = Bench::found(settings(), Found::default());
    assert_eq!(bench.want(Want::Stop), []);
    assert_eq!(
        bench.started(attempt(1)),
        [
            record_verdict(attempt(1), Verdict::Waiting, Verdict::Alive, Reason::Present),
            record_phase(attempt(1), Phase::Draining, Reason::Commanded),
            end_attempt(attempt(1), Reason::Commanded),
        ]
    );
    assert_eq!(bench.ended(attempt(1), ending(LOST)).last(), Some(&stopped(1)));
}

#[test]
fn a_stop_ends_what_runs_once_and_for_good() {
    let mut bench = Bench::running(settings());
    let commanded =
        [record_phase(attempt(1), Phase::Draining, Reason::Commanded), end_attempt(attempt(1), Reason::Commanded)];
    assert_eq!(bench.want(Want::Stop), commanded);
    assert_eq!(bench.want(Want::Stop), []);
    assert_eq!(bench.want(Want::Run), []);
    assert_eq!(bench.want(Want::Pause(None)), []);
    bench.ended(attempt(1), ending(Class::Failed));
    assert_eq!((bench.phase(), bench.pass(seconds(10_000))), (Phase::Ended, vec![]));
}

#[test]
fn a_stop_ends_an_orphan_even_where_orphans_are_held() {
    let mut bench = Bench::running(JobSettings { orphans: Orphans::Hold, ..settings() });
    bench.gone(attempt(1), Life::Alive);
    assert_eq!(
        bench.want(Want::Stop),
        [record_phase(attempt(1), Phase::Draining, Reason::Commanded), end_orphan(attempt(1), Reason::Commanded)]
    );
    assert_eq!(
        bench.orphan_ended(attempt(1), 0),
        [
            record_verdict(attempt(1), Verdict::Orphaned, Verdict::Dead, Reason::ProvenGone),
            record_lost(attempt(1), 1, Reason::Commanded),
        ]
    );
    bench.ended(attempt(1), ending(LOST));
    assert_eq!((bench.phase(), bench.pass(seconds(10_000))), (Phase::Ended, vec![]));
}

#[test]
fn a_resume_during_a_stop_waits_until_the_stop_is_over() {
    let mut bench = Bench::running(settings());
    bench.want(Want::Stop);
    assert_eq!(bench.want(Want::Resume), []);
    let asked = bench.ended(attempt(1), ending(Class::Stopped));
    assert_eq!(asked.last(), Some(&ask(attempt(1), Reason::ResumedByHand)));
}

#[test]
fn a_pause_suspends_judging_and_its_end_begins_a_new_baseline() {
    let mut settings = settings();
    settings.resume.on.stale = true;
    settings.lease.hung_after = Limit::At(seconds(900));
    settings.resume.on.hung = true;
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(1, 5));
    let paused = Reason::Paused { length: Some(seconds(3600)) };
    assert_eq!(bench.want(Want::Pause(Some(seconds(3600)))), [record_phase(attempt(1), Phase::Paused, paused)]);
    assert_eq!(bench.view().next.map(|(step, _)| step), Some(NextStep::Unpause));
    assert_eq!(bench.pass(seconds(3599)), []);
    assert_eq!(bench.pass(seconds(1)), [record_phase(attempt(1), Phase::Running, runs(1))]);
    assert_eq!(bench.view().silence, Some(Duration::ZERO));
    let silent = Heard { silence: seconds(3700), still: seconds(3700), ..beat(1, 3800) };
    assert_eq!(bench.heard(attempt(1), silent), [], "its supervisor counted the pause, and it does not matter");
    assert_eq!(bench.pass(seconds(179)).len(), 1, "late after one interval");
    let stale = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(bench.pass(seconds(1)).last(), Some(&end_attempt(attempt(1), stale)));
}

#[test]
fn nothing_is_done_by_itself_while_paused_and_everything_afterwards() {
    let mut bench = Bench::running(settings());
    bench.want(Want::Pause(None));
    bench.ended(attempt(1), ending(LOST));
    assert_eq!((bench.verdict(), bench.pass(seconds(10_000))), (Verdict::Ended, vec![]));
    assert_eq!(bench.want(Want::Run), [record_phase(attempt(1), Phase::BackingOff, NO_WAIT), ask(attempt(1), RESUMED)]);

    let mut bench = Bench::running(settings());
    bench.want(Want::Pause(None));
    let held = record_phase(attempt(1), Phase::Held, Reason::OrphanWhilePaused);
    assert_eq!(bench.gone(attempt(1), Life::Alive).last(), Some(&held));
    assert_eq!(bench.verdict(), Verdict::Orphaned, "a pause suspends what time decides, and nothing that is seen");
    assert_eq!(bench.want(Want::Run).last(), Some(&end_orphan(attempt(1), Reason::SupervisorGone)));
}

#[test]
fn an_answer_that_comes_while_paused_is_asked_for_again() {
    let mut bench = Bench::running(settings());
    bench.ended(attempt(1), ending(LOST));
    bench.want(Want::Pause(None));
    assert_eq!(bench.answered(attempt(1), Proposal::Launch), []);
    assert_eq!(bench.pass(seconds(10_000)), []);
    assert_eq!(bench.want(Want::Run).last(), Some(&ask(attempt(1), RESUMED)));
}

#[test]
fn attempts_that_nobody_told_of_count_with_those_that_were() {
    let mut settings = settings();
    settings.resume.max_attempts = Limit::At(3);
    let mut bench = Bench::running(settings);
    let mut history = History::default();
    history.attempt_ended(&ending(LOST));
    history.attempt_ended(&ending(LOST));
    let missed = Missed { attempt: attempt(3), history, pickups: 2, by_hand: false };
    bench.tell(Event::AttemptsMissed { subject: JOB, missed });
    bench.started(attempt(3));
    assert_eq!((bench.phase(), bench.view().pickups), (Phase::Running, 2));
    bench.ended(attempt(3), ending(LOST));
    let because = Reason::AttemptsSpent { attempts: 3, max_attempts: 3 };
    assert_eq!((bench.phase(), bench.view().phase_because), (Phase::Stuck, because));
}

/// Somebody ran `latido resume` without the agent, and the attempt that they started is there.
#[test]
fn a_resume_without_the_agent_undoes_a_stop_and_begins_a_series_of_its_own() {
    let mut settings = settings();
    settings.resume.max_attempts = Limit::At(1);
    let mut bench = Bench::running(settings);
    bench.want(Want::Stop);
    bench.ended(attempt(1), ending(Class::Stopped));
    let mut history = History::default();
    history.attempt_ended(&ending(Class::Stopped));
    history.resumed_by_hand();
    let missed = Missed { attempt: attempt(2), history, pickups: 0, by_hand: true };
    bench.tell(Event::AttemptsMissed { subject: JOB, missed });
    bench.started(attempt(2));
    assert_eq!(bench.phase(), Phase::Running, "the stop is over");
    bench.ended(attempt(2), ending(LOST));
    let because = Reason::AttemptsSpent { attempts: 1, max_attempts: 1 };
    assert_eq!((bench.phase(), bench.view().phase_because), (Phase::Stuck, because), "the first of one");
}

/// A person resumed it while its launch was under way, and that launch took the resume back.
#[test]
fn a_resume_that_a_launch_under_way_carries_out_begins_a_series_with_it() {
    let mut settings = settings();
    settings.resume.max_pickups = 2;
    let mut bench = Bench::running(settings);
    bench.ended(attempt(1), ending(LOST));
    bench.answered(attempt(1), Proposal::Launch);
    bench.want(Want::Resume);
    let began = Event::SeriesBegan { subject: JOB, attempt: attempt(2) };
    bench.tell(began);
    bench.started(attempt(2));
    bench.ended(attempt(2), ending(LOST));
    assert_eq!((bench.phase(), bench.view().pickups), (Phase::BackingOff, 2), "the first of two");
    bench.answered(attempt(2), Proposal::Launch);
    bench.started(attempt(3));
    bench.tell(began);
    bench.ended(attempt(3), ending(LOST));
    let because = Reason::PickupsSpent { pickups: 2, max_pickups: 2 };
    assert_eq!(bench.view().phase_because, because, "told again it begins no other");
}
