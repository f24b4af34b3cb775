//! When the agent may be at fault: mass staleness, gaps, and a store that is away.

use latido_policy::{
    Action, BlackoutCause, BlackoutChange, BlackoutSettings, Event, Found, Heard, JobSettings, Limit, Pacing, Reason,
    ResumeOn, SubjectId, Verdict, Want,
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
