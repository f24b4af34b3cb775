//! Whole lives of jobs, with every action that follows.

use core::time::Duration;

use latido_policy::{
    Action, Attempt, BeatSource, Class, Ending, Epoch, Event, Fingerprint, Found, FoundState, Heard, JobSettings, Life,
    Limit, NextStep, Orphans, Phase, ProcessId, Proposal, Reason, Recorded, ResumeOn, StopReason, Verdict, Want,
};

use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_attempt, ending, found, found_running, launch, record_phase, record_verdict,
    seconds, settings, supervisor, with_epoch,
};

pub(crate) const LOST: Class = Class::Lost;
pub(crate) const NO_WAIT: Reason = Reason::BackoffBegun { after: LOST, order: None, delay: Duration::ZERO };
pub(crate) const RESUMED: Reason = Reason::Resumed { after: LOST, order: None };

pub(crate) fn runs(number: u32) -> Reason {
    Reason::AttemptRuns { number: attempt(number).number }
}

pub(crate) fn started(attempt: Attempt) -> Event {
    Event::AttemptStarted { subject: JOB, attempt, supervisor: supervisor(attempt), process: None }
}

pub(crate) fn with_backoff(first: u64) -> JobSettings {
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
            record_verdict(
                attempt(1),
                Verdict::Alive,
                Verdict::Ended,
                Reason::AttemptEnded { class: LOST, order: None }
            ),
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
    let order = Some(StopReason::Stale);
    let resumed = Reason::Resumed { after: LOST, order };
    assert_eq!(asked.last(), Some(&ask(attempt(1), resumed)), "although `lost` alone does not resume it");
    assert_eq!(bench.view().because, Reason::AttemptEnded { class: LOST, order }, "it was latido that ended it");
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
    assert_eq!(asked.last(), Some(&ask(attempt(1), Reason::Resumed { after: Class::Limit, order: None })));
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
        let asked = bench
            .ended(attempt(1), ending(class))
            .contains(&ask(attempt(1), Reason::Resumed { after: class, order: None }));
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
    settings.resume.max_attempts = Limit::At(100);
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
