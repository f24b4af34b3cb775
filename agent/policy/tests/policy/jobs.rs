//! Whole lives of jobs, with every action that follows.

use core::num::NonZeroU32;
use core::time::Duration;

use latido_policy::{
    Action, Attempt, BeatSource, Class, Ending, Epoch, Event, Fingerprint, Found, FoundState, Heard, JobSettings,
    LaunchFailure, Life, Limit, NextStep, Orphans, Phase, ProcessId, Proposal, Reason, Recorded, ResumeOn, StopReason,
    Verdict, Want,
};

use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_attempt, end_orphan, ending, found, found_running, launch, record_lost,
    record_phase, record_verdict, seconds, settings, supervisor, with_epoch,
};

const LOST: Class = Class::Lost;
const NO_WAIT: Reason = Reason::BackoffBegun { after: LOST, delay: Duration::ZERO };
const RESUMED: Reason = Reason::Resumed { after: LOST };

fn runs(number: u32) -> Reason {
    Reason::AttemptRuns { number: attempt(number).number }
}

fn started(attempt: Attempt) -> Event {
    Event::AttemptStarted { subject: JOB, attempt, supervisor: supervisor(attempt), process: None }
}

fn with_backoff(first: u64) -> JobSettings {
    let mut settings = settings();
    settings.resume.backoff_first = seconds(first);
    settings
}

#[test]
fn a_new_job_is_launched_and_adopted_as_it_starts() {
    let mut bench = Bench::empty();
    let because = Reason::FirstAttempt;
    assert_eq!(
        bench.add(settings(), Found::default()),
        [record_phase(attempt(1), Phase::Launching, because), launch(attempt(1), because)]
    );
    assert_eq!(
        bench.started(attempt(1)),
        [
            record_verdict(attempt(1), Verdict::Waiting, Verdict::Alive, Reason::Present),
            record_phase(attempt(1), Phase::Running, runs(1)),
        ]
    );
    assert_eq!(bench.pass(seconds(100_000)), [], "a job that sends no beats is alive by its presence");
}

#[test]
fn a_job_that_somebody_else_launches_is_left_to_them() {
    let mut bench = Bench::empty();
    assert_eq!(
        bench.add(settings(), found(1, FoundState::Launching)),
        [record_phase(attempt(1), Phase::Launching, Reason::StartedElsewhere)]
    );
    bench.started(attempt(1));
    assert_eq!((bench.phase(), bench.verdict()), (Phase::Running, Verdict::Alive));
}

#[test]
fn a_killed_job_goes_on_at_once_where_no_backoff_is_asked_for() {
    let mut bench = Bench::running(settings());
    assert_eq!(
        bench.ended(attempt(1), ending(LOST)),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Ended, Reason::AttemptEnded { class: LOST }),
            record_phase(attempt(1), Phase::BackingOff, NO_WAIT),
            ask(attempt(1), RESUMED),
        ]
    );
    let waits = Reason::LaunchBegun { waited: Duration::ZERO, start_within: seconds(60) };
    assert_eq!(
        bench.answered(attempt(1), Proposal::Launch),
        [
            record_verdict(attempt(2), Verdict::Ended, Verdict::Waiting, waits),
            record_phase(attempt(2), Phase::Launching, RESUMED),
            launch(attempt(2), RESUMED),
        ]
    );
    assert_eq!(bench.view().pickups, 1);
}

#[test]
fn a_killed_supervisor_has_its_orphan_ended_first() {
    let mut bench = Bench::running(settings());
    assert_eq!(
        bench.gone(attempt(1), Life::Alive),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Orphaned, Reason::SupervisorGone),
            record_phase(attempt(1), Phase::Draining, Reason::SupervisorGone),
            end_orphan(attempt(1), Reason::SupervisorGone),
        ]
    );
    assert_eq!(bench.pass(seconds(10_000)), [], "nothing is launched beside what may live");
    assert_eq!(
        bench.orphan_ended(attempt(1), 0),
        [
            record_verdict(attempt(1), Verdict::Orphaned, Verdict::Dead, Reason::ProvenGone),
            record_lost(attempt(1), 1, Reason::SupervisorGone),
        ]
    );
    assert_eq!(bench.view().pickups, 0, "counted when it is recorded");
    assert_eq!(
        bench.ended(attempt(1), ending(LOST)),
        [
            record_verdict(attempt(1), Verdict::Dead, Verdict::Ended, Reason::AttemptEnded { class: LOST }),
            record_phase(attempt(1), Phase::BackingOff, NO_WAIT),
            ask(attempt(1), RESUMED),
        ]
    );
    assert_eq!(bench.view().pickups, 1);
    assert_eq!(bench.ended(attempt(1), ending(LOST)), [], "told again");
    assert_eq!(bench.view().pickups, 1, "and not counted again");
}

#[test]
fn survivors_hold_the_job_until_a_person_acts() {
    let mut bench = Bench::running(settings());
    bench.gone(attempt(1), Life::Alive);
    let because = Reason::Survivors { count: 2 };
    assert_eq!(bench.orphan_ended(attempt(1), 2), [record_phase(attempt(1), Phase::Held, because)]);
    assert_eq!((bench.verdict(), bench.pass(seconds(10_000))), (Verdict::Orphaned, vec![]));
    assert_eq!(
        bench.want(Want::Resume),
        [
            record_phase(attempt(1), Phase::Draining, Reason::ResumedByHand),
            end_orphan(attempt(1), Reason::ResumedByHand),
        ]
    );
    bench.orphan_ended(attempt(1), 0);
    let asked = bench.ended(attempt(1), ending(LOST));
    assert_eq!(asked.last(), Some(&ask(attempt(1), Reason::ResumedByHand)));
}

#[test]
fn an_orphan_is_left_to_a_person_where_the_policy_says_so() {
    let mut bench = Bench::running(JobSettings { orphans: Orphans::Hold, ..settings() });
    assert_eq!(
        bench.gone(attempt(1), Life::Alive),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Orphaned, Reason::SupervisorGone),
            record_phase(attempt(1), Phase::Held, Reason::OrphanHeld),
        ]
    );
    assert_eq!(
        bench.gone(attempt(1), Life::Gone),
        [
            record_verdict(attempt(1), Verdict::Orphaned, Verdict::Dead, Reason::ProvenGone),
            record_phase(attempt(1), Phase::Draining, Reason::ProvenGone),
            record_lost(attempt(1), 1, Reason::ProvenGone),
        ],
        "it ended by itself"
    );
}

#[test]
fn what_cannot_be_told_is_neither_ended_nor_resumed() {
    let mut bench = Bench::found(settings(), found(3, FoundState::Unattended { process: Life::Unknown }));
    assert_eq!((bench.verdict(), bench.phase()), (Verdict::Unknown, Phase::Held));
    for want in [Want::Run, Want::Resume, Want::Stop, Want::Resume] {
        assert_eq!(bench.want(want), []);
    }
    assert_eq!(bench.pass(seconds(100_000)), []);
    let because = Reason::ProvenGone;
    assert_eq!(
        bench.gone(attempt(3), Life::Gone),
        [
            record_verdict(attempt(3), Verdict::Unknown, Verdict::Dead, because),
            record_phase(attempt(3), Phase::Draining, because),
            record_lost(attempt(3), 1, because),
        ]
    );
    let asked = bench.ended(attempt(3), ending(LOST));
    assert_eq!(asked.last(), Some(&ask(attempt(3), Reason::ResumedByHand)), "what was asked for is not forgotten");
}

#[test]
fn a_resume_that_somebody_else_carries_out_is_not_carried_out_again() {
    let mut bench = Bench::found(settings(), found(3, FoundState::Unattended { process: Life::Unknown }));
    bench.want(Want::Resume);
    bench.started(attempt(4));
    bench.ended(attempt(4), ending(Class::Failed));
    let because = Reason::NotResumed { class: Class::Failed };
    assert_eq!((bench.phase(), bench.view().phase_because), (Phase::Ended, because));
}

#[test]
fn a_failed_look_is_not_a_death_and_passes_with_the_next_beat() {
    let mut bench = Bench::running(settings());
    let look = Event::LookFailed { subject: JOB, attempt: attempt(1) };
    assert_eq!(bench.tell(look), [record_verdict(attempt(1), Verdict::Alive, Verdict::Unknown, Reason::CannotTell)]);
    assert_eq!(bench.tell(look), []);
    assert_eq!(bench.pass(seconds(10_000)), []);
    let because = Reason::BeatsCome { silence: Duration::ZERO, interval: seconds(30) };
    assert_eq!(
        bench.heard(attempt(1), beat(1, 5)),
        [record_verdict(attempt(1), Verdict::Unknown, Verdict::Alive, because)]
    );
}

#[test]
fn silence_changes_the_verdict_alone_unless_more_is_asked_for() {
    let mut bench = Bench::running(settings());
    bench.heard(attempt(1), beat(1, 5));
    let late = Reason::BeatOverdue { silence: seconds(33) + Duration::from_nanos(1), interval: seconds(30) };
    let stale = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(
        bench.pass(seconds(100_000)),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Late, late),
            record_verdict(attempt(1), Verdict::Late, Verdict::Stale, stale),
        ]
    );
}

#[test]
fn a_beat_that_is_told_again_renews_nothing() {
    let mut bench = Bench::running(settings());
    let told = Heard { silence: seconds(2), ..beat(3, 100) };
    bench.heard(attempt(1), told);
    for minute in 1..3_u64 {
        bench.pass(seconds(60));
        bench.heard(attempt(1), told);
        bench.heard(attempt(1), beat(2, 90));
        assert_eq!(bench.view().silence, Some(seconds(2 + 60 * minute)));
    }
    bench.pass(seconds(58));
    assert_eq!(bench.verdict(), Verdict::Stale);
    bench.heard(attempt(1), Heard { silence: seconds(1), ..beat(4, 281) });
    assert_eq!((bench.verdict(), bench.view().silence), (Verdict::Alive, Some(seconds(1))));
}

#[test]
fn a_step_of_the_wall_clock_makes_no_beat_older() {
    let mut bench = Bench::running(settings());
    bench.heard(attempt(1), beat(3, 100));
    bench.pass(seconds(170));
    bench.heard(attempt(1), beat(4, 20));
    assert_eq!((bench.view().silence, bench.policy.refused_count()), (Some(Duration::ZERO), 0));
}

#[test]
fn a_supervisor_that_is_told_later_is_the_one_that_ends_it() {
    let mut bench = Bench::found(settings(), Found::default());
    let nobody = ProcessId { pid: 0, ..supervisor(attempt(1)) };
    bench.tell(Event::AttemptStarted { subject: JOB, attempt: attempt(1), supervisor: nobody, process: None });
    bench.started(attempt(1));
    assert_eq!(bench.want(Want::Stop).last(), Some(&end_attempt(attempt(1), Reason::Commanded)));
}

#[test]
fn a_stale_job_is_ended_once_and_resumed_where_that_is_asked_for() {
    let mut settings = settings();
    settings.resume.on = ResumeOn { stale: true, ..ResumeOn::default() };
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(1, 5));
    let late = Reason::BeatOverdue { silence: seconds(33) + Duration::from_nanos(1), interval: seconds(30) };
    let stale = Reason::LeaseRanOut { silence: seconds(180), ttl: seconds(180) };
    assert_eq!(
        bench.pass(seconds(100_000)),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Late, late),
            record_verdict(attempt(1), Verdict::Late, Verdict::Stale, stale),
            record_phase(attempt(1), Phase::Draining, stale),
            end_attempt(attempt(1), stale),
        ]
    );
    let asked = bench.ended(attempt(1), ending(LOST));
    assert_eq!(asked.last(), Some(&ask(attempt(1), RESUMED)), "although `lost` alone does not resume it");
    assert_eq!(bench.view().pickups, 1);
}

#[test]
fn whoever_never_beats_loses_the_lease_too() {
    let mut settings = settings();
    settings.lease.beats = BeatSource::Own;
    settings.resume.on = ResumeOn { stale: true, ..ResumeOn::default() };
    let mut bench = Bench::running(settings);
    let missing = |waited| Reason::NoFirstBeat { waited: seconds(waited), start_within: seconds(60) };
    assert_eq!(bench.pass(seconds(179)), [record_verdict(attempt(1), Verdict::Waiting, Verdict::Missing, missing(60))]);
    assert_eq!(
        bench.pass(seconds(1)),
        [record_phase(attempt(1), Phase::Draining, missing(180)), end_attempt(attempt(1), missing(180))]
    );
    assert_eq!(missing(180).stop_reason(), Some(StopReason::Stale));
}

#[test]
fn an_attempt_ends_at_its_limit_of_time() {
    let mut settings = settings();
    settings.lease.run_for = Limit::At(seconds(3600));
    settings.resume.on = ResumeOn { limit: true, ..ResumeOn::default() };
    let mut bench = Bench::running(settings);
    bench.pass(seconds(100));
    bench.heard(attempt(1), Heard { running: seconds(200), ..Heard::default() });
    let because = Reason::RanTooLong { running: seconds(3600), run_for: seconds(3600) };
    assert_eq!(bench.pass(seconds(3399)), [], "its supervisor has measured how long it ran");
    assert_eq!(
        bench.pass(seconds(1)),
        [record_phase(attempt(1), Phase::Draining, because), end_attempt(attempt(1), because)]
    );
    let asked = bench.ended(attempt(1), ending(Class::Limit));
    assert_eq!(asked.last(), Some(&ask(attempt(1), Reason::Resumed { after: Class::Limit })));
}

#[test]
fn only_what_is_asked_for_is_resumed() {
    let on = |lost, failed, limit| ResumeOn { lost, failed, limit, ..ResumeOn::default() };
    for (on, class, resumed) in [
        (on(true, true, true), Class::Completed, false),
        (on(true, true, true), Class::Stopped, false),
        (on(true, false, false), LOST, true),
        (on(false, true, true), LOST, false),
        (on(false, true, false), Class::Failed, true),
        (on(true, false, true), Class::Failed, false),
        (on(false, false, true), Class::Limit, true),
        (on(true, true, false), Class::Limit, false),
    ] {
        let mut settings = settings();
        settings.resume.on = on;
        let mut bench = Bench::running(settings);
        let asked = bench.ended(attempt(1), ending(class)).contains(&ask(attempt(1), Reason::Resumed { after: class }));
        assert_eq!(asked, resumed, "{class} with {on:?}");
        assert_eq!(bench.phase(), if resumed { Phase::BackingOff } else { Phase::Ended });
    }
}

#[test]
fn the_backoff_is_waited_for_and_shown() {
    let mut bench = Bench::running(with_backoff(10));
    bench.ended(attempt(1), ending(LOST));
    let (step, at) = bench.view().next.unwrap();
    assert_eq!(step, NextStep::AskStrategy);
    let delay = at.since(bench.now);
    assert!(delay > seconds(7) && delay <= seconds(10), "{delay:?}");
    assert_eq!(bench.pass(delay - Duration::from_nanos(1)), []);
    assert_eq!(bench.pass(Duration::from_nanos(1)), [ask(attempt(1), RESUMED)]);
}

#[test]
fn a_strategy_that_waits_is_asked_again_and_never_at_once() {
    let mut bench = Bench::running(settings());
    bench.ended(attempt(1), ending(LOST));
    for (proposed, waited) in [(seconds(90), seconds(90)), (Duration::ZERO, seconds(1))] {
        let because = Reason::StrategyWaits { delay: waited };
        assert_eq!(
            bench.answered(attempt(1), Proposal::Wait(proposed)),
            [record_phase(attempt(1), Phase::BackingOff, because)]
        );
        assert_eq!(bench.pass(waited - Duration::from_nanos(1)), []);
        assert_eq!(bench.pass(Duration::from_nanos(1)), [ask(attempt(1), RESUMED)]);
    }
}

#[test]
fn a_broken_strategy_holds_its_job() {
    let mut bench = Bench::running(settings());
    bench.ended(attempt(1), ending(LOST));
    assert_eq!(
        bench.answered(attempt(1), Proposal::Failed),
        [record_phase(attempt(1), Phase::Held, Reason::StrategyFailed)]
    );
    assert_eq!(bench.pass(seconds(100_000)), []);
}

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
    settings.resume.max_attempts = NonZeroU32::new(2).unwrap();
    let mut bench = Bench::found(settings, Found::default());
    let failed = Ending { launch_failed: true, ran_for: Duration::ZERO, ..ending(Class::Failed) };
    bench.ended(attempt(1), failed);
    bench.answered(attempt(1), Proposal::Launch);
    let stuck = Reason::AttemptsSpent { attempts: 2, max_attempts: 2 };
    assert_eq!(bench.ended(attempt(2), failed).last(), Some(&record_phase(attempt(2), Phase::Stuck, stuck)));
}

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
    assert_eq!(bench.gone(attempt(1), Life::Alive), [record_phase(attempt(1), Phase::Held, Reason::OrphanWhilePaused)]);
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
fn what_runs_beside_a_new_attempt_is_fenced_off() {
    let mut bench = Bench::running(settings());
    let because = Reason::Fenced { by: Epoch(4) };
    assert_eq!(
        bench.started(with_epoch(2, 4)),
        [record_phase(with_epoch(2, 4), Phase::Running, runs(2)), end_attempt(attempt(1), because)]
    );
    assert_eq!(bench.ended(attempt(1), ending(LOST)), [], "an old epoch changes nothing");
    assert_eq!((bench.view().attempt, bench.phase()), (with_epoch(2, 4), Phase::Running));
}

#[test]
fn a_restart_records_nothing_that_stands_in_the_store() {
    let mut bench = Bench::empty();
    let recorded = Some(Recorded { verdict: Verdict::Alive, phase: Phase::Running });
    assert_eq!(bench.add(settings(), Found { recorded, ..found_running(2, beat(9, 400)) }), []);

    let mut bench = Bench::empty();
    let silent = Heard { silence: seconds(200), ..beat(9, 400) };
    let stale = Reason::LeaseRanOut { silence: seconds(200), ttl: seconds(180) };
    assert_eq!(
        bench.add(settings(), Found { recorded, ..found_running(2, silent) }),
        [record_verdict(attempt(2), Verdict::Alive, Verdict::Stale, stale)],
        "but what changed meanwhile"
    );
}

#[test]
fn a_checkpoint_resets_the_backoff() {
    let mut settings = with_backoff(100);
    settings.resume.max_attempts = NonZeroU32::new(100).unwrap();
    settings.resume.max_pickups = 100;
    let mut bench = Bench::running(settings);
    let mut waits = Vec::new();
    for number in 1..=6 {
        let checkpoint = (number >= 4).then_some(Fingerprint(4));
        bench.heard(attempt(number), Heard { checkpoint, ..beat(1, 5) });
        bench.ended(attempt(number), Ending { checkpoint, ..ending(LOST) });
        let (_, at) = bench.view().next.unwrap();
        waits.push(at.since(bench.now));
        bench.pass(at.since(bench.now));
        bench.answered(attempt(number), Proposal::Launch);
        bench.started(attempt(number + 1));
    }
    let whole = [100, 200, 300, 100, 200, 300];
    for (wait, whole) in waits.iter().zip(whole) {
        assert!(*wait <= seconds(whole) && *wait > seconds(whole) * 3 / 4, "{waits:?}");
    }
}

#[test]
fn a_gap_is_recorded() {
    let mut bench = Bench::running(settings());
    assert_eq!(bench.tell(Event::GapFound { length: seconds(60) }), [Action::RecordGap { length: seconds(60) }]);
}

#[test]
fn a_removed_job_leaves_nothing_due() {
    let mut bench = Bench::running(with_backoff(10));
    bench.ended(attempt(1), ending(LOST));
    assert!(bench.policy.poll_timeout().is_some());
    assert_eq!(bench.tell(Event::JobRemoved { subject: JOB }), []);
    assert_eq!((bench.policy.poll_timeout(), bench.policy.subjects().count()), (None, 0));
    assert_eq!(bench.answered(attempt(1), Proposal::Launch), []);
}

#[test]
fn what_could_not_be_told_and_is_seen_running_is_judged_and_not_held() {
    let mut bench = Bench::found(settings(), found(1, FoundState::Unattended { process: Life::Unknown }));
    bench.started(attempt(1));
    assert_eq!(bench.phase(), Phase::Held, "word of its start may be older than the look that failed");
    let seen = Event::AttemptSeen { subject: JOB, attempt: attempt(1), supervisor: supervisor(attempt(1)) };
    bench.tell(seen);
    bench.heard(attempt(1), beat(1, 5));
    assert_eq!((bench.phase(), bench.verdict()), (Phase::Running, Verdict::Alive));
    let mut orphaned = Bench::running(JobSettings { orphans: Orphans::Hold, ..settings() });
    orphaned.gone(attempt(1), Life::Alive);
    orphaned.tell(seen);
    assert_eq!(orphaned.phase(), Phase::Held, "a supervisor that is proven gone does not come back");
}
