//! Faults that people have met elsewhere: how one job is resumed, given up and stopped. Each names where it was reported.

use core::time::Duration;

use latido_policy::{
    Action, Class, Ending, Event, Fingerprint, Found, FoundState, Heard, JobSettings, LaunchFailure, Life, Limit,
    Phase, Proposal, Reason, ResumeOn, SubjectId, Verdict, Want,
};

use crate::field_cases::{LOST, RESUMED, acts, eager, launches};
use crate::harness::{
    Bench, JOB, ask, attempt, beat, end_attempt, ending, found, found_running, launch, record_phase, record_verdict,
    seconds, settings, supervisor, with_epoch,
};

fn limited(max_attempts: u32, max_pickups: u32) -> JobSettings {
    let mut settings = eager();
    settings.resume.max_attempts = Limit::At(max_attempts);
    settings.resume.max_pickups = max_pickups;
    settings
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
            record_verdict(
                attempt(1),
                Verdict::Alive,
                Verdict::Ended,
                Reason::AttemptEnded { class: LOST, order: None }
            ),
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

// Supervisor/supervisor#798
#[test]
fn c186_a_good_end_is_the_end_of_what_runs_once_and_a_quick_exit_of_what_is_to_run_on() {
    let quick = Ending { ran_for: Duration::from_millis(50), ..ending(Class::Completed) };
    let mut settings = limited(5, 9);
    settings.resume.max_identical_deaths = Limit::None;
    let mut once = Bench::running(settings);
    assert_eq!((attempts_until_rest(&mut once, |_| quick), once.phase()), (1, Phase::Ended));
    settings.resume.on.completed = true;
    settings.resume.backoff_first = seconds(5);
    let mut on = Bench::running(settings);
    on.ended(attempt(1), quick);
    assert_eq!(on.phase(), Phase::BackingOff);
    assert_eq!((attempts_until_rest(&mut on, |_| quick), on.phase()), (5, Phase::Stuck));
    settings.resume.max_identical_deaths = Limit::At(3);
    let mut broken = Bench::running(settings);
    assert_eq!(attempts_until_rest(&mut broken, |_| quick), 3);
    assert!(matches!(broken.view().phase_because, Reason::IdenticalDeaths { deaths: 3, .. }));
}

// circus-tent/circus#1157
#[test]
fn c183_without_limits_a_launch_that_always_fails_is_tried_with_a_growing_delay() {
    let mut settings = eager();
    (settings.resume.max_attempts, settings.resume.max_identical_deaths) = (Limit::None, Limit::None);
    (settings.resume.backoff_first, settings.resume.backoff_longest) = (seconds(1), seconds(60));
    let mut bench = Bench::running(settings);
    let mut delays = Vec::new();
    for number in 1..30 {
        let actions = bench.ended(attempt(number), Ending { launch_failed: true, ..ending(Class::Failed) });
        delays.extend(actions.iter().filter_map(|action| {
            let Action::RecordPhase { because: Reason::BackoffBegun { delay, .. }, .. } = action else { return None };
            Some(*delay)
        }));
        bench.pass(seconds(61));
        bench.answered(attempt(number), Proposal::Launch);
        bench.started(attempt(number + 1));
    }
    assert_eq!(delays.len(), 29);
    assert!(delays.windows(2).take(5).all(|pair| pair[0] < pair[1]), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= seconds(60)), "{delays:?}");
}
