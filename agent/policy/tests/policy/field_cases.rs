//! Faults that people have met elsewhere, at the level of decisions about one job. Each names where it was reported.

use core::num::NonZeroU32;
use core::time::Duration;

use latido_policy::{
    Action, BeatSource, Class, Ending, Event, Fingerprint, Found, FoundState, Heard, JobSettings, LaunchFailure, Life,
    Limit, Phase, Policy, Proposal, Reason, ResumeOn, StopReason, SubjectId, Verdict, Want,
};

use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_attempt, end_orphan, ending, found, found_running, launch, record_phase,
    record_verdict, seconds, settings, supervisor, with_epoch,
};

const LOST: Class = Class::Lost;
const RESUMED: Reason = Reason::Resumed { after: LOST };

/// Resumed by everything that can be asked for, without a delay.
fn eager() -> JobSettings {
    let mut settings = settings();
    settings.resume.on = ResumeOn { lost: true, failed: true, stale: true, hung: true, limit: true };
    settings
}

fn limited(max_attempts: u32, max_pickups: u32) -> JobSettings {
    let mut settings = eager();
    settings.resume.max_attempts = NonZeroU32::new(max_attempts).unwrap();
    settings.resume.max_pickups = max_pickups;
    settings
}

fn launches(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Launch { .. })).count()
}

fn acts(actions: &[Action]) -> Vec<Action> {
    let records = |action: &&Action| !matches!(action, Action::RecordVerdict { .. } | Action::RecordPhase { .. });
    actions.iter().filter(records).copied().collect()
}

/// Ends attempt after attempt, starts what is launched, and answers how many ran until nothing more came.
fn attempts_until_rest(bench: &mut Bench, mut how: impl FnMut(u32) -> Ending) -> u32 {
    for number in bench.view().attempt.number.0.. {
        bench.ended(attempt(number), how(number));
        bench.pass(seconds(1000));
        bench.answered(attempt(number), Proposal::Launch);
        if bench.phase() != Phase::Launching {
            return number;
        }
        bench.started(attempt(number + 1));
    }
    unreachable!("the numbers do not end")
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
    assert!(matches!(actions.last(), Some(Action::EndAttempt { beats: 7, .. })), "{actions:?}");
    bench.heard(attempt(1), beat(8, 186));
    assert_eq!((bench.phase(), bench.verdict()), (Phase::Running, Verdict::Alive), "the order is void");

    bench.pass(seconds(180));
    bench.heard(attempt(1), Heard { stopping: true, ..beat(9, 367) });
    assert_eq!(bench.phase(), Phase::Draining, "the order came first");
    let ended = Ending { order: Some(StopReason::Stale), ..ending(LOST) };
    assert_eq!(acts(&bench.ended(attempt(1), ended)), [ask(attempt(1), RESUMED)]);
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

// sidekiq/sidekiq#4633
#[test]
fn c069_a_job_that_kills_its_agent_is_started_a_limited_number_of_times_over_all_lives() {
    let settings = limited(100, 3);
    let mut bench = Bench::found(settings, Found::default());
    let mut started = 1;
    for life in 1..=10 {
        let dead = found(started, FoundState::Unattended { process: Life::Gone });
        bench = Bench::found(settings, Found { pickups: started - 1, ..dead });
        bench.ended(attempt(started), ending(LOST));
        bench.pass(seconds(1000));
        if launches(&bench.answered(attempt(started), Proposal::Launch)) == 0 {
            assert_eq!(life, 3);
            break;
        }
        started += 1;
    }
    let because = Reason::PickupsSpent { pickups: 3, max_pickups: 3 };
    assert_eq!((started, bench.phase(), bench.view().phase_because), (3, Phase::Stuck, because));
}

// sidekiq/sidekiq#4859, taskforcesh/bullmq#3282
#[test]
fn c070_c076_giving_up_is_recorded_after_the_ending_that_caused_it() {
    let mut bench = Bench::running(limited(5, 1));
    assert_eq!(
        bench.ended(attempt(1), ending(LOST)),
        [
            record_verdict(attempt(1), Verdict::Alive, Verdict::Ended, Reason::AttemptEnded { class: LOST }),
            record_phase(attempt(1), Phase::Stuck, Reason::PickupsSpent { pickups: 1, max_pickups: 1 }),
        ]
    );
}

// apache/airflow#51969
#[test]
fn c072_one_death_found_again_and_again_is_one_pickup() {
    let mut bench = Bench::running(settings());
    let mut actions = bench.gone(attempt(1), Life::Gone);
    for _ in 0..10 {
        actions.extend(bench.gone(attempt(1), Life::Gone));
        actions.extend(bench.pass(seconds(1)));
    }
    for _ in 0..10 {
        actions.extend(bench.ended(attempt(1), ending(LOST)));
    }
    let lost = actions.iter().filter(|action| matches!(action, Action::RecordLost { .. })).count();
    let asked = actions.iter().filter(|action| matches!(action, Action::AskStrategy { .. })).count();
    assert_eq!((lost, asked, bench.view().pickups), (1, 1, 1));
}

// apache/airflow#27657
#[test]
fn c073_whenever_the_agent_restarts_a_lost_job_gets_its_second_attempt() {
    let settings = limited(2, 9);
    for state in [
        FoundState::Unattended { process: Life::Gone },
        FoundState::Unattended { process: Life::Alive },
        FoundState::Running { supervisor: supervisor(attempt(1)), process: None, heard: beat(0, 5) },
        FoundState::Launching,
        FoundState::Ended(ending(LOST)),
    ] {
        let mut bench = Bench::found(settings, found(1, state));
        bench.gone(attempt(1), Life::Gone);
        bench.orphan_ended(attempt(1), 0);
        bench.ended(attempt(1), ending(LOST));
        let launched = acts(&bench.answered(attempt(1), Proposal::Launch));
        assert_eq!(launched, [launch(attempt(2), RESUMED)], "found as {state:?}");
    }
}

// taskforcesh/bullmq#3555
#[test]
fn c075_a_resume_by_hand_begins_a_new_series() {
    let mut bench = Bench::running(limited(2, 9));
    assert_eq!(attempts_until_rest(&mut bench, |_| ending(LOST)), 2);
    assert_eq!(bench.phase(), Phase::Stuck);
    assert_eq!(acts(&bench.want(Want::Resume)), [ask(attempt(2), Reason::ResumedByHand)]);
    assert_eq!(acts(&bench.answered(attempt(2), Proposal::Launch)), [launch(attempt(3), Reason::ResumedByHand)]);
    bench.started(attempt(3));
    assert_eq!(attempts_until_rest(&mut bench, |_| ending(LOST)), 4, "two more");
    let because = Reason::AttemptsSpent { attempts: 2, max_attempts: 2 };
    assert_eq!(bench.view().phase_because, because);
}

// Unitech/pm2#839
#[test]
fn c078_all_reasons_for_another_attempt_share_one_limit() {
    let mut bench = Bench::running(limited(5, 9));
    let classes = [Class::Failed, LOST, Class::Limit];
    let attempts = attempts_until_rest(&mut bench, |number| ending(classes[number as usize % 3]));
    assert_eq!((attempts, bench.phase()), (5, Phase::Stuck));
}

// Unitech/pm2#1496
#[test]
fn c079_a_job_that_dies_after_some_seconds_is_given_up_as_well() {
    let mut bench = Bench::running(limited(5, 9));
    let dies = Ending { ran_for: seconds(3), ..ending(Class::Failed) };
    assert_eq!((attempts_until_rest(&mut bench, |_| dies), bench.phase()), (5, Phase::Stuck));
}

// circus-tent/circus#965
#[test]
fn c081_a_commanded_stop_is_no_crash() {
    let mut bench = Bench::running(eager());
    bench.want(Want::Stop);
    bench.ended(attempt(1), ending(LOST));
    assert_eq!((acts(&bench.pass(seconds(60))), bench.phase()), (vec![], Phase::Ended));

    let mut settings = eager();
    settings.resume.backoff_first = seconds(30);
    let mut bench = Bench::running(settings);
    bench.ended(attempt(1), ending(LOST));
    bench.pass(seconds(5));
    bench.want(Want::Stop);
    assert_eq!((acts(&bench.pass(seconds(1000))), bench.phase()), (vec![], Phase::Ended));
    assert_eq!(acts(&bench.answered(attempt(1), Proposal::Launch)), []);
}

// home-assistant/supervisor PR #4635
#[test]
fn c082_nothing_is_revived_during_maintenance_and_its_end_is_recorded() {
    let mut bench = Bench::running(eager());
    bench.want(Want::Pause(Some(seconds(3600))));
    bench.ended(attempt(1), ending(LOST));
    for _ in 0..20 {
        assert_eq!(bench.pass(seconds(100)), []);
    }
    let resumed = bench.pass(seconds(1600));
    assert!(matches!(resumed[0], Action::RecordPhase { phase: Phase::BackingOff, .. }), "{resumed:?}");
    assert_eq!(acts(&resumed), [ask(attempt(1), RESUMED)]);
}

// reddb-io/red-skills#2527
#[test]
fn c084_three_identical_deaths_at_the_start_open_the_breaker() {
    let dies =
        |outcome| Ending { outcome: Fingerprint(outcome), ran_for: Duration::from_millis(20), ..ending(Class::Failed) };
    let mut bench = Bench::running(limited(10, 10));
    assert_eq!(attempts_until_rest(&mut bench, |_| dies(1)), 3);
    let because = Reason::IdenticalDeaths { deaths: 3, ran_for: Duration::from_millis(20) };
    assert_eq!((bench.phase(), bench.view().phase_because), (Phase::Stuck, because));
    let mut bench = Bench::running(limited(10, 10));
    assert_eq!(
        attempts_until_rest(&mut bench, |number| dies(u64::from(number) / 2)),
        10,
        "another signature resets it"
    );
}

// dstackai/dstack PR #4277
#[test]
fn c085_chatter_is_no_progress() {
    let mut settings = limited(4, 9);
    settings.resume.backoff_first = seconds(10);
    let mut bench = Bench::running(settings);
    let mut waits = Vec::new();
    for number in 1..=3 {
        bench.heard(attempt(number), Heard { progress: Some(Fingerprint(u64::from(number))), ..beat(1, 1) });
        bench.ended(attempt(number), ending(Class::Failed));
        let (_, at) = bench.view().next.unwrap();
        waits.push(at.since(bench.now));
        bench.pass(at.since(bench.now));
        bench.answered(attempt(number), Proposal::Launch);
        bench.started(attempt(number + 1));
    }
    assert!(waits[1] > waits[0] * 3 / 2 && waits[2] > waits[1] * 3 / 2, "{waits:?}");
    bench.ended(attempt(4), ending(Class::Failed));
    assert_eq!(bench.phase(), Phase::Stuck);
}

// healthchecks/healthchecks#664
#[test]
fn c086_time_in_which_the_agent_was_down_makes_nobody_stale() {
    let mut bench = Bench::empty();
    for number in 0..50 {
        let found = found_running(1, Heard { silence: seconds(5), ..beat(900, 5000) });
        bench.tell(Event::JobAdded { subject: SubjectId(number), settings: eager(), found });
    }
    bench.tell(Event::GapFound { length: seconds(900) });
    assert!(bench.policy.subjects().all(|view| view.verdict == Verdict::Alive));
    let passed = bench.pass(seconds(180) - Duration::from_nanos(1));
    assert_eq!(acts(&passed), []);
    let passed = bench.pass(Duration::from_nanos(1));
    assert_eq!(acts(&passed).len(), 50, "but who is silent from then on is, after its whole ttl");
}

// bborn/taskyou PR #552
#[test]
fn c087_after_everything_was_killed_a_job_is_dead_with_a_reason_and_can_be_resumed() {
    let mut settings = settings();
    settings.resume.on = ResumeOn::default();
    let mut bench = Bench::found(settings, found(3, FoundState::Unattended { process: Life::Gone }));
    assert_eq!((bench.verdict(), bench.view().because), (Verdict::Dead, Reason::ProvenGone));
    bench.ended(attempt(3), ending(LOST));
    assert_eq!(bench.view().phase_because, Reason::NotResumed { class: LOST });
    assert_eq!(acts(&bench.want(Want::Resume)), [ask(attempt(3), Reason::ResumedByHand)]);
}

// treeverse/dvc#8702
#[test]
fn c090_an_attempt_of_another_boot_is_dead_at_once_and_stopping_it_does_nothing() {
    let mut bench = Bench::empty();
    let gone = found(2, FoundState::Unattended { process: Life::Gone });
    let actions = acts(&bench.add(eager(), gone));
    assert!(matches!(actions[..], [Action::RecordLost { pickups: 1, .. }]), "{actions:?}");
    assert_eq!(bench.verdict(), Verdict::Dead);
    assert_eq!(bench.want(Want::Stop), []);
    assert_eq!(acts(&bench.ended(attempt(2), ending(LOST))), []);
    assert_eq!((bench.phase(), bench.want(Want::Stop)), (Phase::Ended, vec![]));
}

// sidekiq/sidekiq#3196
#[test]
fn c092_what_cannot_be_told_at_the_start_is_recovered_when_its_death_is_proven() {
    let mut bench = Bench::found(settings(), found(1, FoundState::Unattended { process: Life::Unknown }));
    assert_eq!(acts(&bench.pass(seconds(10))), []);
    bench.gone(attempt(1), Life::Gone);
    assert_eq!(acts(&bench.ended(attempt(1), ending(LOST))), [ask(attempt(1), RESUMED)]);
}

// dagster-io/dagster#13155
#[test]
fn c098_a_stop_goes_on_after_a_restart_of_the_agent() {
    let stopping = |stopping| {
        let found = found_running(1, Heard { stopping, ..beat(5, 100) });
        Found { want: Want::Stop, ..found }
    };
    let mut told = Bench::empty();
    assert_eq!(acts(&told.add(eager(), stopping(true))), [], "its supervisor keeps the deadline");
    let mut untold = Bench::empty();
    assert_eq!(acts(&untold.add(eager(), stopping(false))), [end_attempt(attempt(1), Reason::Commanded)]);
    for bench in [&mut told, &mut untold] {
        assert_eq!(bench.phase(), Phase::Draining);
        assert_eq!(acts(&bench.ended(attempt(1), ending(LOST))), []);
        assert_eq!((bench.phase(), acts(&bench.pass(seconds(1000)))), (Phase::Ended, vec![]));
    }
}

// dagster-io/dagster PR #33309
#[test]
fn c099_a_limit_and_a_stop_at_the_same_moment_end_it_once() {
    let mut settings = eager();
    settings.lease.run_for = Limit::At(seconds(100));
    for stop_first in [true, false] {
        let mut bench = Bench::running(settings);
        bench.pass(seconds(99));
        let mut actions = Vec::new();
        if stop_first {
            actions.extend(bench.want(Want::Stop));
        }
        actions.extend(bench.pass(seconds(1)));
        actions.extend(bench.want(Want::Stop));
        assert!(matches!(acts(&actions)[..], [Action::EndAttempt { .. }]), "{actions:?}");
        assert_eq!(bench.phase(), Phase::Draining, "until its end is recorded");
        bench.ended(attempt(1), ending(Class::Limit));
        assert_eq!((bench.phase(), acts(&bench.pass(seconds(1000)))), (Phase::Ended, vec![]));
    }
}

// ever-works/ever-works PR #2434
#[test]
fn c100_twenty_resumes_make_one_attempt() {
    let mut bench = Bench::found(settings(), found(1, FoundState::Ended(ending(Class::Failed))));
    let mut actions = Vec::new();
    for _ in 0..20 {
        actions.extend(bench.want(Want::Resume));
    }
    actions.extend(bench.answered(attempt(1), Proposal::Launch));
    for _ in 0..20 {
        actions.extend(bench.want(Want::Resume));
    }
    bench.started(attempt(2));
    for _ in 0..20 {
        actions.extend(bench.want(Want::Resume));
    }
    assert_eq!(acts(&actions), [ask(attempt(1), Reason::ResumedByHand), launch(attempt(2), Reason::ResumedByHand)]);
    bench.want(Want::Run);
    assert_eq!(acts(&bench.ended(attempt(2), ending(Class::Failed))), [], "no request is left over");
}

// eltmon/overdeck#3556
#[test]
fn c101_a_resume_by_hand_and_one_by_policy_make_one_attempt() {
    let mut bench = Bench::running(settings());
    let mut actions = bench.ended(attempt(1), ending(LOST));
    actions.extend(bench.want(Want::Resume));
    actions.extend(bench.answered(attempt(1), Proposal::Launch));
    actions.extend(bench.want(Want::Resume));
    actions.extend(bench.answered(attempt(1), Proposal::Launch));
    actions.extend(bench.started(attempt(2)));
    assert_eq!(launches(&actions), 1);
}

// Loulen/prompt-driven-orchestrator#592
#[test]
fn c104_the_loser_of_a_race_does_not_touch_the_winner() {
    let mut bench = Bench::running(settings());
    bench.ended(attempt(1), ending(LOST));
    bench.answered(attempt(1), Proposal::Launch);
    bench.started(with_epoch(2, 3));
    let winner = bench.view();
    let failed = Ending { launch_failed: true, ..ending(Class::Failed) };
    assert_eq!(bench.ended(attempt(2), failed), []);
    let refused = Event::LaunchRefused { subject: JOB, attempt: attempt(2), failure: LaunchFailure::Failed };
    assert_eq!(bench.tell(refused), []);
    assert_eq!(bench.view(), winner);
}
