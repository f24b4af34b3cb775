//! When the agent may be at fault: mass staleness, gaps, and a store that is away.

use core::time::Duration;

use latido_policy::{
    Action, BlackoutCause, BlackoutChange, BlackoutSettings, Event, Found, Heard, JobSettings, Limit, Pacing, Phase,
    Reason, Recorded, ResumeOn, SubjectId, Verdict, Want,
};

use crate::harness::{Bench, attempt, beat, end_attempt, found_running, seconds, settings};

/// Ended as soon as its lease runs out: what a wrong verdict costs most.
fn strict() -> JobSettings {
    let mut settings = settings();
    settings.resume.on = ResumeOn { stale: true, ..ResumeOn::default() };
    settings
}

/// `count` jobs that beat just now, under an agent that doubts itself when half of at least five fall silent.
fn many(count: u32) -> Bench {
    let mut bench = Bench::empty();
    let blackout = BlackoutSettings { share_percent: Limit::At(50), count_min: 5 };
    bench.tell(Event::Configured { pacing: Pacing::default(), blackout });
    for number in 0..count {
        let found = Found { ..found_running(1, beat(1, 100)) };
        bench.tell(Event::JobAdded { subject: SubjectId(number), settings: strict(), found });
    }
    bench
}

fn ended(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::EndAttempt { .. })).count()
}

fn blackouts(actions: &[Action]) -> Vec<BlackoutChange> {
    let change = |action: &Action| if let Action::RecordBlackout { change } = action { Some(*change) } else { None };
    actions.iter().filter_map(change).collect()
}

fn beats(bench: &mut Bench, numbers: core::ops::Range<u32>, sequence: u64) {
    for number in numbers {
        let (subject, heard) = (SubjectId(number), beat(sequence, 100 + sequence));
        bench.tell(Event::Heard { subject, attempt: attempt(1), heard });
    }
}

#[test]
fn when_half_of_all_fall_silent_together_the_agent_doubts_itself_and_ends_nobody() {
    let mut bench = many(10);
    let passed = bench.pass(seconds(180));
    let cause = BlackoutCause::MassStaleness { stale: 10, watched: 10 };
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![BlackoutChange::Began(cause)]));
    assert!(bench.policy.subjects().all(|view| view.verdict != Verdict::Stale));
    assert!(bench.policy.subjects().all(|view| view.baseline == Some(bench.now)), "silence counts from here");
    beats(&mut bench, 0..10, 2);
    let passed = bench.pass(seconds(170));
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![BlackoutChange::Ended]));
}

#[test]
fn many_that_fall_silent_one_after_another_are_doubted_before_the_first_is_ended() {
    let mut bench = many(6);
    for number in 0..6 {
        bench.pass(Duration::from_millis(100));
        beats(&mut bench, number..number + 1, 2);
    }
    let passed = bench.pass(seconds(181));
    let cause = BlackoutCause::MassStaleness { stale: 6, watched: 6 };
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![BlackoutChange::Began(cause)]));
    assert!(bench.policy.subjects().all(|view| view.verdict != Verdict::Stale));
}

#[test]
fn who_is_late_by_less_than_all_but_one_interval_falls_silent_with_nobody() {
    let mut bench = many(6);
    bench.pass(seconds(60));
    beats(&mut bench, 1..6, 2);
    let passed = bench.pass(seconds(121));
    assert_eq!((ended(&passed), blackouts(&passed)), (1, vec![]));
}

/// An agent starts and is told of `count` jobs that are silent longer than they may be.
fn found_silent(count: u32, recorded: Option<Recorded>) -> (Bench, Vec<Action>) {
    let mut bench = many(0);
    let mut actions = bench.tell(Event::RecoveryBegan);
    for number in 0..count {
        let heard = Heard { silence: seconds(200), ..beat(7, 1000) };
        let found = Found { recorded, ..found_running(1, heard) };
        actions.extend(bench.tell(Event::JobAdded { subject: SubjectId(number), settings: strict(), found }));
        actions.extend(bench.pass(Duration::from_millis(20)));
    }
    actions.extend(bench.tell(Event::RecoveryEnded));
    (bench, actions)
}

#[test]
fn a_mass_that_is_found_silent_at_a_start_is_doubted_and_nobody_is_ended() {
    for verdict in [Verdict::Alive, Verdict::Stale] {
        let (mut bench, mut actions) = found_silent(6, Some(Recorded { verdict, phase: Phase::Running }));
        actions.extend(bench.pass(Duration::ZERO));
        let cause = BlackoutCause::MassStaleness { stale: 6, watched: 6 };
        assert_eq!((ended(&actions), blackouts(&actions)[0]), (0, BlackoutChange::Began(cause)), "{verdict}");
        assert!(bench.policy.subjects().all(|view| view.verdict == verdict), "{verdict}");
        assert_eq!(ended(&bench.pass(seconds(179))), 0);
        assert_eq!(ended(&bench.pass(seconds(2))), 6, "who stays silent for a whole ttl is believed");
    }
}

#[test]
fn who_is_found_silent_alone_is_ended_as_soon_as_all_jobs_were_told_of() {
    let (mut bench, told) = found_silent(1, None);
    assert_eq!((ended(&told), bench.policy.subjects().next().unwrap().verdict), (0, Verdict::Alive));
    let passed = bench.pass(Duration::ZERO);
    assert_eq!((ended(&passed), blackouts(&passed)), (1, vec![]));
}

#[test]
fn what_is_heard_to_be_silent_is_ended_by_the_next_sweep_and_not_before() {
    let mut bench = Bench::running(strict());
    bench.heard(attempt(1), beat(1, 5));
    let silent = Heard { silence: seconds(200), ..beat(1, 205) };
    assert_eq!(ended(&bench.heard(attempt(1), silent)), 0);
    assert_eq!(ended(&bench.pass(Duration::ZERO)), 1);
}

#[test]
fn no_silence_counts_from_before_the_baseline_that_the_agent_before_knew() {
    let mut bench = many(0);
    bench.tell(Event::RecoveryBegan);
    bench.tell(Event::BaselineRemembered { moment: bench.now.before(seconds(30)) });
    let heard = Heard { silence: seconds(200), ..beat(7, 1000) };
    bench.tell(Event::JobAdded { subject: SubjectId(0), settings: strict(), found: found_running(1, heard) });
    bench.tell(Event::RecoveryEnded);
    assert_eq!(ended(&bench.pass(seconds(149))), 0);
    assert_eq!(ended(&bench.pass(seconds(1))), 1);
}

#[test]
fn a_baseline_that_is_remembered_lies_in_the_future_for_nobody() {
    let mut bench = many(1);
    bench.tell(Event::BaselineRemembered { moment: bench.now.after(seconds(1000)) });
    assert_eq!(ended(&bench.pass(seconds(180))), 1);
}

#[test]
fn who_stays_silent_after_the_doubt_is_believed_and_ended() {
    let mut bench = many(10);
    bench.pass(seconds(180));
    bench.pass(seconds(5));
    beats(&mut bench, 0..3, 2);
    assert_eq!(ended(&bench.pass(seconds(174))), 0);
    let passed = bench.pass(seconds(1));
    assert_eq!((ended(&passed), blackouts(&passed)), (7, vec![]), "doubted once, and not for ever");
}

#[test]
fn a_few_of_many_are_believed_at_once() {
    let mut bench = many(10);
    bench.pass(seconds(100));
    beats(&mut bench, 4..10, 2);
    let passed = bench.pass(seconds(80));
    assert_eq!((ended(&passed), blackouts(&passed)), (4, vec![]));
}

#[test]
fn a_second_outage_of_those_that_beat_again_is_doubted_again() {
    let mut bench = many(10);
    bench.pass(seconds(180));
    bench.pass(seconds(70));
    beats(&mut bench, 0..10, 2);
    let passed = bench.pass(seconds(180));
    assert_eq!((ended(&passed), blackouts(&passed).len()), (0, 1));
}

#[test]
fn nobody_is_stale_while_the_store_is_away_nor_before_a_whole_ttl_after_it() {
    let mut bench = many(4);
    bench.pass(seconds(170));
    assert_eq!(
        bench.tell(Event::StoreFailed),
        [Action::RecordBlackout { change: BlackoutChange::Began(BlackoutCause::StoreFailed) }]
    );
    assert_eq!(bench.tell(Event::StoreFailed), []);
    assert_eq!(ended(&bench.pass(seconds(10_000))), 0);
    assert_eq!(bench.tell(Event::StoreRecovered), []);
    let passed = bench.pass(seconds(179));
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![BlackoutChange::Ended]));
    assert_eq!(ended(&bench.pass(seconds(1))), 4);
}

// systemd/systemd#20284
#[test]
fn c001_after_a_long_gap_the_verdict_comes_a_whole_ttl_later() {
    let mut settings = strict();
    settings.lease.interval = seconds(3);
    settings.lease.ttl = seconds(10);
    let mut bench = Bench::running(settings);
    bench.heard(attempt(1), beat(1, 5));
    bench.pass(seconds(2));
    bench.tell(Event::GapFound { length: seconds(60) });
    let frozen = Heard { silence: seconds(62), still: seconds(62), ..beat(1, 67) };
    assert_eq!(bench.heard(attempt(1), frozen), [], "its supervisor counted the gap, and it does not matter");
    assert_eq!(ended(&bench.pass(seconds(9))), 0);
    let because = Reason::LeaseRanOut { silence: seconds(10), ttl: seconds(10) };
    assert_eq!(bench.pass(seconds(1)).last(), Some(&end_attempt(attempt(1), because)));
}

// google/fleetspeak PR #123
#[test]
fn c008_ten_jobs_frozen_with_the_agent_are_all_alive_when_it_thaws() {
    let mut bench = many(10);
    bench.pass(seconds(100));
    bench.tell(Event::GapFound { length: seconds(900) });
    bench.pass(seconds(20));
    beats(&mut bench, 0..10, 2);
    let passed = bench.pass(seconds(120));
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![]));
    assert!(bench.policy.subjects().all(|view| view.attempt == attempt(1)));
}

#[test]
fn many_short_gaps_put_off_no_verdict_for_good() {
    let mut bench = many(1);
    let mut passed = Vec::new();
    for _ in 0..60 {
        bench.tell(Event::GapFound { length: seconds(2) });
        passed.extend(bench.pass(seconds(3)));
    }
    assert_eq!(ended(&passed), 1);
}

#[test]
fn nobody_is_stale_while_the_store_is_away_however_short_the_ttl() {
    for failing in [false, true] {
        let mut settings = strict();
        settings.lease.ttl = Duration::ZERO;
        let mut bench = Bench::empty();
        bench.tell(Event::StoreFailed);
        bench.add(settings, found_running(1, Heard { failing, ..beat(1, 100) }));
        let because = bench.view().because;
        let is_silent = matches!(because, Reason::LeaseRanOut { .. } | Reason::FailingAndSilent { .. });
        assert_eq!((is_silent, bench.phase()), (false, Phase::Running), "{because}");
    }
}

#[test]
fn a_gap_makes_nobody_alive_again_who_was_stale_before() {
    let mut settings = settings();
    settings.lease.hung_after = Limit::At(seconds(900));
    for (silence, still, verdict) in [(200, 10, Verdict::Stale), (10, 1000, Verdict::Hung)] {
        let heard = Heard { silence: seconds(silence), still: seconds(still), ..beat(1, 2000) };
        let mut bench = Bench::found(settings, found_running(1, heard));
        assert_eq!(bench.verdict(), verdict);
        bench.tell(Event::GapFound { length: seconds(3600) });
        let later = Heard { silence: seconds(silence + 5), still: seconds(still + 5), ..beat(1, 2005) };
        assert_eq!(bench.heard(attempt(1), later), [], "{verdict} without a new record");
        assert_eq!(bench.verdict(), verdict);
    }
}

#[test]
fn a_store_that_never_failed_recovers_from_nothing() {
    let mut bench = many(1);
    bench.pass(seconds(100));
    assert_eq!(bench.tell(Event::StoreRecovered), []);
    let passed = bench.pass(seconds(80));
    assert_eq!((ended(&passed), blackouts(&passed)), (1, vec![]), "and puts off no verdict");
}

#[test]
fn the_end_of_a_pause_of_many_is_no_sign_against_the_agent() {
    let mut bench = many(10);
    for number in 0..10 {
        let want = Want::Pause(Some(seconds(600)));
        bench.tell(Event::WantChanged { subject: SubjectId(number), want });
    }
    let passed = bench.pass(seconds(600));
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![]));
}

#[test]
fn jobs_that_were_removed_are_not_counted_among_those_that_are_heard() {
    let mut bench = many(14);
    for number in 10..14 {
        bench.tell(Event::JobRemoved { subject: SubjectId(number) });
    }
    bench.pass(seconds(100));
    beats(&mut bench, 5..10, 2);
    let passed = bench.pass(seconds(80));
    let cause = BlackoutCause::MassStaleness { stale: 5, watched: 10 };
    assert_eq!((ended(&passed), blackouts(&passed)), (0, vec![BlackoutChange::Began(cause)]));
}

#[test]
fn a_job_that_is_heard_as_listening_begins_again_shows_its_whole_silence() {
    let mut bench = Bench::running(settings());
    bench.tell(Event::GapFound { length: seconds(60) });
    bench.heard(attempt(1), beat(1, 5));
    assert_eq!(bench.view().baseline, None);
    bench.pass(seconds(20));
    bench.tell(Event::GapFound { length: seconds(60) });
    assert_eq!(bench.view().baseline, Some(bench.now), "what was silent before shows since when it counts");
}

/// Beats every 5 s, a lease of 10 s, and half a minute to get on.
fn hasty() -> JobSettings {
    let mut settings = settings();
    settings.lease.interval = seconds(5);
    settings.lease.ttl = seconds(10);
    settings.lease.hung_after = Limit::At(seconds(30));
    settings
}

#[test]
fn one_job_that_falls_silent_again_and_again_is_one_of_those_that_are_counted() {
    let mut bench = many(0);
    let blackout = BlackoutSettings { share_percent: Limit::At(50), count_min: 2 };
    bench.tell(Event::Configured { pacing: Pacing::default(), blackout });
    for subject in [SubjectId(0), SubjectId(1)] {
        bench.tell(Event::JobAdded { subject, settings: hasty(), found: found_running(1, beat(1, 100)) });
    }
    let mut actions = Vec::new();
    for round in 1..20 {
        for step in 0..3 {
            beats(&mut bench, 1..2, 3 * round + step);
            actions.extend(bench.pass(seconds(4)));
        }
        let heard = Heard { still: seconds(12 * round), ..beat(round + 1, 12 * round) };
        actions.extend(bench.tell(Event::Heard { subject: SubjectId(0), attempt: attempt(1), heard }));
        assert_eq!(bench.policy.verdict(SubjectId(0)), Some(if round < 3 { Verdict::Alive } else { Verdict::Hung }));
    }
    let is_stale = |action: &&Action| matches!(action, Action::RecordVerdict { current: Verdict::Stale, .. });
    assert_eq!((actions.iter().filter(is_stale).count(), blackouts(&actions)), (19, vec![]));
}

#[test]
fn who_was_believed_to_be_silent_is_counted_again_with_those_that_fall_silent_later() {
    let mut bench = many(6);
    beats(&mut bench, 0..6, 2);
    bench.pass(seconds(100));
    beats(&mut bench, 1..6, 3);
    assert_eq!(blackouts(&bench.pass(seconds(81))), vec![], "one of six is believed");
    beats(&mut bench, 0..6, 4);
    let passed = bench.pass(seconds(181));
    let cause = BlackoutCause::MassStaleness { stale: 6, watched: 6 };
    assert_eq!(blackouts(&passed)[..1], [BlackoutChange::Began(cause)]);
}

#[test]
fn a_beat_after_a_gap_is_no_progress_of_what_stood_still_and_was_silent_before_it() {
    let mut bench = Bench::found(hasty(), found_running(1, beat(1, 100)));
    bench.pass(seconds(31));
    assert_eq!(bench.verdict(), Verdict::Stale);
    bench.tell(Event::GapFound { length: seconds(60) });
    bench.pass(seconds(5));
    bench.heard(attempt(1), Heard { still: seconds(36), ..beat(2, 136) });
    let because = Reason::ProgressStill { still: seconds(36), hung_after: seconds(30), idle: None };
    assert_eq!((bench.verdict(), bench.view().because), (Verdict::Hung, because));
    bench.heard(attempt(1), beat(3, 137));
    assert_eq!(bench.verdict(), Verdict::Alive, "and progress is");
}
