//! Faults that people have met elsewhere: verdicts about one job, and who is in charge of it. Each names where it was
//! reported.

use core::time::Duration;

use latido_policy::{
    Action, BeatSource, Class, Ending, Event, Fingerprint, FoundState, Ground, Heard, JobSettings, Life, Limit, Phase,
    Policy, Proposal, Reason, ResumeOn, StopReason, SubjectId, Verdict, Want,
};

use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_attempt, end_orphan, ending, found, found_running, launch, record_verdict,
    seconds, settings, supervisor, with_epoch,
};

pub(crate) const LOST: Class = Class::Lost;
pub(crate) const RESUMED: Reason = Reason::Resumed { after: LOST, order: None };

/// Resumed by everything that can be asked for, without a delay.
pub(crate) fn eager() -> JobSettings {
    let mut settings = settings();
    settings.resume.on = ResumeOn { lost: true, failed: true, stale: true, hung: true, limit: true, completed: false };
    settings
}

pub(crate) fn launches(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Launch { .. })).count()
}

pub(crate) fn acts(actions: &[Action]) -> Vec<Action> {
    let records = |action: &&Action| !matches!(action, Action::RecordVerdict { .. } | Action::RecordPhase { .. });
    actions.iter().filter(records).copied().collect()
}

// systemd/systemd PR #38528
#[test]
fn c002_a_job_that_was_paused_for_three_ttls_is_shown_so_and_starts_with_a_whole_ttl() {
    let mut bench = Bench::running(eager());
    bench.heard(attempt(1), beat(1, 5));
    bench.want(Want::Pause(None));
    assert_eq!((acts(&bench.pass(seconds(540))), bench.phase()), (vec![], Phase::Paused));
    bench.want(Want::Run);
    assert_eq!(acts(&bench.pass(seconds(179))), []);
    assert_eq!((bench.phase(), bench.view().attempt), (Phase::Running, attempt(1)));
}

// etcd-io/etcd#13019
#[test]
fn c012_the_time_that_is_left_falls_to_nothing_and_the_verdict_comes_with_it() {
    let mut settings = settings();
    settings.lease.beats = BeatSource::Own;
    settings.lease.interval = seconds(3);
    settings.lease.ttl = seconds(9);
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(1, 5));
    let mut before = seconds(9);
    for step in 1..=200 {
        bench.pass(Duration::from_millis(50));
        let view = bench.view();
        let left = view.next.map_or(Duration::ZERO, |(_, at)| at.since(view.at));
        assert!(left <= seconds(9), "{left:?} at step {step}");
        let is_over = Duration::from_millis(50) * step >= seconds(9);
        assert_eq!(view.verdict == Verdict::Stale, is_over, "at step {step}");
        if view.verdict == Verdict::Late {
            assert!(left < before, "{left:?} after {before:?}");
            before = left;
        }
    }
    assert_eq!(bench.view().next, None, "nothing is left, and no more is waited for");
}

// PrefectHQ/prefect#16459
#[test]
fn c022_the_newest_beat_counts_at_the_time_of_the_decision() {
    let mut bench = Bench::running(eager());
    for round in 1..=200_u64 {
        bench.pass(seconds(178));
        let due = bench.now.after(seconds(4));
        bench.policy.handle_event(
            Event::Heard {
                subject: JOB,
                attempt: attempt(1),
                heard: Heard { silence: seconds(3), ..beat(round, round * 182) },
            },
            due,
        );
        bench.policy.handle_timeout(due);
        bench.now = due;
        let actions: Vec<_> = core::iter::from_fn(|| bench.policy.poll_action()).collect();
        assert_eq!(acts(&actions), [], "round {round}");
        assert_eq!(bench.verdict(), Verdict::Alive, "round {round}");
    }
}

// PrefectHQ/prefect#18653
#[test]
fn c023_what_has_ended_never_changes() {
    let mut bench = Bench::running(eager());
    bench.ended(attempt(1), ending(Class::Completed));
    let before = bench.view();
    assert_eq!(bench.heard(attempt(1), beat(9, 70)), []);
    assert_eq!(bench.started(attempt(1)), []);
    assert_eq!(bench.gone(attempt(1), Life::Gone), []);
    assert_eq!(bench.ended(attempt(1), ending(LOST)), []);
    assert_eq!(bench.policy.refused_count(), 4);
    assert_eq!(bench.policy.poll_timeout(), None, "no timer is armed");
    assert_eq!((bench.pass(seconds(540)), bench.view().phase), (vec![], before.phase));
}

// apache/airflow#29455
#[test]
fn c025_no_first_beat_is_missing_and_never_stale() {
    let mut settings = settings();
    settings.lease.beats = BeatSource::Own;
    settings.lease.ttl = seconds(5);
    settings.lease.interval = seconds(2);
    settings.lease.start_within = seconds(15);
    let mut slow = Bench::running(settings);
    assert_eq!((slow.pass(seconds(8)), slow.verdict()), (vec![], Verdict::Waiting));
    slow.heard(attempt(1), beat(1, 8));
    assert_eq!(slow.verdict(), Verdict::Alive);

    let mut silent = Bench::running(settings);
    let because = Reason::NoFirstBeat { waited: seconds(15), start_within: seconds(15) };
    assert_eq!(silent.pass(seconds(10_000)), [record_verdict(attempt(1), Verdict::Waiting, Verdict::Missing, because)]);
}

// louislam/uptime-kuma#5639
#[test]
fn c034_who_says_that_it_fails_and_falls_silent_fails_once() {
    let mut bench = Bench::running(settings());
    bench.heard(attempt(1), beat(1, 5));
    let failing = |sequence, running, failing| Heard { failing, ..beat(sequence, running) };
    assert_eq!(bench.heard(attempt(1), failing(2, 10, true)).len(), 1);
    assert_eq!(bench.pass(seconds(540)), []);
    let silent = Reason::FailingAndSilent { silence: seconds(540), ttl: seconds(180) };
    assert_eq!((bench.verdict(), bench.view().because), (Verdict::Failing, silent));
    assert_eq!(bench.heard(attempt(1), failing(3, 550, false)).len(), 1);
    assert_eq!(bench.verdict(), Verdict::Alive);
}

// tomcounsell/ai#1226
#[test]
fn c038_a_process_that_merely_exists_makes_no_progress() {
    let mut settings = settings();
    settings.lease.hung_after = Limit::At(seconds(10));
    let mut bench = Bench::running(settings);
    for running in 1..=9 {
        assert_eq!(bench.pass(seconds(1)), []);
        let still = Heard { still: seconds(running), ..beat(running, running) };
        bench.heard(attempt(1), still);
    }
    let because = Reason::ProgressStill { still: seconds(10), hung_after: seconds(10), idle: None };
    assert_eq!(bench.pass(seconds(1)), [record_verdict(attempt(1), Verdict::Alive, Verdict::Hung, because)]);
    assert_eq!((bench.view().silence, bench.view().still), (Some(seconds(1)), Some(seconds(10))), "two ages");
}

// synthaea-lab/edr-new#102
#[test]
fn c039_the_same_progress_again_is_no_progress() {
    let mut bench = Bench::running(JobSettings {
        lease: latido_policy::Lease { hung_after: Limit::At(seconds(60)), ..settings().lease },
        ..settings()
    });
    let progress = Some(Fingerprint(30));
    for second in 1..=100 {
        bench.pass(seconds(1));
        bench.heard(attempt(1), Heard { still: seconds(second), progress, ..beat(second, second) });
        assert_eq!(bench.verdict(), if second < 60 { Verdict::Alive } else { Verdict::Hung }, "at {second}s");
    }
}

// Abilityai/trinity#1369
#[test]
fn c041_a_hung_job_is_told_of_and_left_alone_by_default() {
    let mut settings = settings();
    settings.lease.hung_after = Limit::At(seconds(10));
    let mut bench = Bench::running(settings);
    assert_eq!(acts(&bench.pass(seconds(10_000))), []);
    assert_eq!(bench.verdict(), Verdict::Hung);

    settings.resume.on.hung = true;
    let mut bench = Bench::running(settings);
    let because = Reason::ProgressStill { still: seconds(10), hung_after: seconds(10), idle: None };
    assert_eq!(acts(&bench.pass(seconds(10_000))), [end_attempt(attempt(1), because)]);
}

// vivekchand/clawmetry#953
#[test]
fn c048_one_hung_job_among_many_stays_hung() {
    let mut policy = Policy::new();
    let mut settings = settings();
    settings.lease.hung_after = Limit::At(seconds(900));
    let mut now = latido_policy::Moment::ORIGIN;
    for number in 0..21 {
        let found = found_running(1, beat(1, 0));
        policy.handle_event(Event::JobAdded { subject: SubjectId(number), settings, found }, now);
    }
    for round in 1..=180 {
        now = now.after(seconds(60));
        for number in 0..21 {
            let still = if number == 13 { seconds(60 * round) } else { Duration::ZERO };
            let heard = Heard { still, ..beat(round + 1, 60 * round) };
            policy.handle_event(Event::Heard { subject: SubjectId(number), attempt: attempt(1), heard }, now);
        }
        policy.handle_timeout(now);
    }
    for view in policy.subjects() {
        let expected = if view.subject == SubjectId(13) { Verdict::Hung } else { Verdict::Alive };
        assert_eq!(view.verdict, expected, "{:?}", view.subject);
    }
}

// celery/celery#5935
#[test]
fn c049_a_job_longer_than_its_ttl_is_launched_once() {
    let mut bench = Bench::running(eager());
    for minute in 1..=600 {
        assert_eq!(launches(&bench.pass(seconds(60))), 0);
        bench.heard(attempt(1), beat(0, minute * 60));
    }
    assert_eq!((bench.verdict(), bench.view().attempt), (Verdict::Alive, attempt(1)));
}

// Koed00/django-q#183
#[test]
fn c050_no_delay_starts_an_attempt_beside_a_live_one() {
    let mut settings = eager();
    settings.resume.backoff_first = Duration::from_millis(1);
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(1, 1));
    let passed = bench.pass(seconds(100_000));
    assert_eq!(launches(&passed), 0, "it is stale, and was told to end");
    assert_eq!(bench.phase(), Phase::Draining);
}

// Seed 002: the same condition again at the moment of the reap.
#[test]
fn whoever_beats_before_it_is_told_to_end_runs_on() {
    let mut bench = Bench::running(eager());
    bench.heard(attempt(1), beat(7, 5));
    bench.policy.handle_timeout(bench.now.after(seconds(180)));
    bench.now = bench.now.after(seconds(180));
    let actions: Vec<_> = core::iter::from_fn(|| bench.policy.poll_action()).collect();
    let rests = |ground| matches!(actions.last(), Some(Action::EndAttempt { ground: Some(of), .. }) if *of == ground);
    assert!(rests(Ground::Silent(seconds(180))), "{actions:?}");
    bench.heard(attempt(1), beat(8, 186));
    assert_eq!((bench.phase(), bench.verdict()), (Phase::Running, Verdict::Alive), "the order is void");

    bench.pass(seconds(180));
    bench.heard(attempt(1), Heard { stopping: true, ..beat(9, 367) });
    assert_eq!(bench.phase(), Phase::Draining, "the order came first");
    let order = Some(StopReason::Stale);
    let resumed = Reason::Resumed { after: LOST, order };
    assert_eq!(acts(&bench.ended(attempt(1), Ending { order, ..ending(LOST) })), [ask(attempt(1), resumed)]);
}

// riverqueue/river#1302
#[test]
fn c052_a_late_sweep_never_overwrites_an_ending() {
    let mut bench = Bench::running(eager());
    bench.heard(attempt(1), beat(1, 5));
    bench.now = bench.now.after(seconds(179));
    bench.ended(attempt(1), ending(Class::Completed));
    assert_eq!((bench.pass(seconds(1000)), bench.phase()), (vec![], Phase::Ended));

    let mut bench = Bench::running(eager());
    bench.heard(attempt(1), beat(1, 5));
    bench.now = bench.now.after(seconds(179));
    bench.heard(attempt(1), beat(2, 184));
    assert_eq!((bench.pass(seconds(20)), bench.verdict()), (vec![], Verdict::Alive));
}

// riverqueue/river#1287
#[test]
fn c053_no_limit_is_no_number() {
    let mut bench = Bench::running(eager());
    assert_eq!(bench.pass(seconds(10_000_000_000)), []);
    assert_eq!(bench.view().next, None);
}

// OptimalBits/bull#484
#[test]
fn c055_who_was_superseded_is_told_to_end() {
    let mut bench = Bench::running(settings());
    let told = acts(&bench.started(with_epoch(2, 9)));
    let [Action::EndAttempt { attempt: fenced, supervisor: theirs, .. }] = told[..] else { panic!("{told:?}") };
    assert_eq!((fenced, theirs), (attempt(1), supervisor(attempt(1))));
}

// hashicorp/nomad#6212, slopus/happy PR #1715
#[test]
fn c056_c103_a_resume_ends_the_orphan_before_it_launches() {
    let mut bench = Bench::running(JobSettings { orphans: latido_policy::Orphans::Hold, ..settings() });
    bench.gone(attempt(1), Life::Alive);
    assert_eq!(acts(&bench.want(Want::Resume)), [end_orphan(attempt(1), Reason::ResumedByHand)]);
    assert_eq!(acts(&bench.pass(seconds(1000))), []);
    bench.orphan_ended(attempt(1), 0);
    assert_eq!(acts(&bench.ended(attempt(1), ending(LOST))), [ask(attempt(1), Reason::ResumedByHand)]);
    assert_eq!(acts(&bench.answered(attempt(1), Proposal::Launch)), [launch(attempt(2), Reason::ResumedByHand)]);
}

// sidekiq/sidekiq#4611
#[test]
fn c062_a_job_that_is_being_started_is_not_taken_for_lost() {
    let mut bench = Bench::found(eager(), found(1, FoundState::Launching));
    assert_eq!(acts(&bench.pass(seconds(10_000))), []);
    let mut settings = eager();
    settings.lease.beats = BeatSource::Own;
    let mut bench = Bench::found(settings, found_running(1, Heard { running: seconds(1), ..Heard::default() }));
    assert_eq!((bench.verdict(), acts(&bench.pass(seconds(59)))), (Verdict::Waiting, vec![]));
}

// etcd-io/etcd#9395
#[test]
fn c064_restarts_of_the_agent_never_renew_a_lease() {
    let mut settings = settings();
    settings.lease.ttl = seconds(30);
    settings.lease.interval = seconds(10);
    let mut verdicts = Vec::new();
    for restart in 0..18 {
        let silent = Heard { silence: seconds(10 * restart), ..beat(5, 100 + 10 * restart) };
        let mut bench = Bench::found(settings, found_running(1, silent));
        bench.pass(seconds(9));
        verdicts.push(bench.verdict());
    }
    assert_eq!(verdicts[..3], [Verdict::Alive, Verdict::Late, Verdict::Late]);
    assert!(verdicts[3..].iter().all(|verdict| *verdict == Verdict::Stale), "{verdicts:?}");
}
