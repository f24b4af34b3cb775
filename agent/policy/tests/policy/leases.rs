//! Lease and facts in, verdict and reason out: the pure question that the command line asks too.

use core::time::Duration;

use latido_policy::{
    BeatSource, Class, Existence, Facts, Judgement, Lease, Limit, Reason, Verdict, judge, next_change,
};
use proptest::prelude::*;

use crate::harness::{seconds, settings};

fn lease(beats: BeatSource) -> Lease {
    Lease { beats, ..settings().lease }
}

fn present(sequence: u64, silence: u64) -> Facts {
    Facts { sequence, silence: seconds(silence), running: seconds(1000), ..Facts::bare(Existence::Present) }
}

fn verdict(lease: &Lease, facts: &Facts) -> Verdict {
    judge(lease, facts).verdict
}

#[test]
fn what_exists_decides_before_any_lease() {
    let lease = lease(BeatSource::Own);
    for (existence, verdict, because) in [
        (Existence::NotStarted, Verdict::Waiting, Reason::NotStarted),
        (Existence::Orphaned, Verdict::Orphaned, Reason::SupervisorGone),
        (Existence::Gone, Verdict::Dead, Reason::ProvenGone),
        (Existence::Unknown, Verdict::Unknown, Reason::CannotTell),
        (Existence::Ended(Class::Lost), Verdict::Ended, Reason::AttemptEnded { class: Class::Lost, order: None }),
    ] {
        let facts = Facts { existence, ..present(5, 999) };
        assert_eq!(judge(&lease, &facts), Judgement { verdict, because });
        assert_eq!(next_change(&lease, &facts), None);
    }
}

#[test]
fn a_launch_that_takes_too_long_is_missing() {
    let lease = lease(BeatSource::Auto);
    let facts = Facts::bare(Existence::Launching);
    assert_eq!(verdict(&lease, &facts.later(seconds(59))), Verdict::Waiting);
    assert_eq!(verdict(&lease, &facts.later(seconds(60))), Verdict::Missing);
    assert_eq!(next_change(&lease, &facts), Some(seconds(60)));
}

#[test]
fn silence_walks_from_alive_over_late_to_stale() {
    let lease = lease(BeatSource::Own);
    let tenth_over = seconds(33);
    for (silence, expected) in [
        (Duration::ZERO, Verdict::Alive),
        (seconds(30), Verdict::Alive),
        (tenth_over, Verdict::Alive),
        (tenth_over + Duration::from_nanos(1), Verdict::Late),
        (seconds(180) - Duration::from_nanos(1), Verdict::Late),
        (seconds(180), Verdict::Stale),
        (seconds(9999), Verdict::Stale),
    ] {
        assert_eq!(verdict(&lease, &Facts { silence, ..present(1, 0) }), expected, "at {silence:?}");
    }
    assert_eq!(judge(&lease, &present(1, 181)).because.to_string(), "silence 181s reached the ttl of 180s");
}

#[test]
fn auto_is_alive_by_presence_until_the_first_beat_arms_the_lease() {
    let lease = lease(BeatSource::Auto);
    assert_eq!(judge(&lease, &present(0, 9999)), Judgement { verdict: Verdict::Alive, because: Reason::Present });
    assert_eq!(next_change(&lease, &present(0, 9999)), None);
    assert_eq!(verdict(&lease, &present(1, 9999)), Verdict::Stale);
}

#[test]
fn own_waits_for_the_first_beat_and_then_misses_it() {
    let lease = lease(BeatSource::Own);
    assert_eq!(verdict(&lease, &present(0, 59)), Verdict::Waiting);
    assert_eq!(verdict(&lease, &present(0, 60)), Verdict::Missing);
    assert_eq!(verdict(&lease, &present(0, 9999)), Verdict::Missing, "never stale without a beat");
    assert_eq!(verdict(&lease, &present(1, 60)), Verdict::Late);
}

#[test]
fn presence_never_asks_for_beats() {
    let lease = lease(BeatSource::Presence);
    assert_eq!(verdict(&lease, &present(0, 9999)), Verdict::Alive);
    assert_eq!(verdict(&lease, &present(3, 9999)), Verdict::Alive);
}

#[test]
fn standing_still_is_hung_however_fresh_the_beats_are() {
    let lease = Lease { hung_after: Limit::At(seconds(900)), ..lease(BeatSource::Auto) };
    let facts = |sequence, still| Facts { still: seconds(still), ..present(sequence, 0) };
    assert_eq!(verdict(&lease, &facts(0, 899)), Verdict::Alive);
    assert_eq!(verdict(&lease, &facts(0, 900)), Verdict::Hung);
    assert_eq!(verdict(&lease, &facts(5, 900)), Verdict::Hung);
    assert_eq!(verdict(&lease, &Facts { silence: seconds(180), ..facts(5, 900) }), Verdict::Stale, "silence says more");
}

#[test]
fn its_own_word_comes_first() {
    let lease = Lease { hung_after: Limit::At(seconds(900)), ..lease(BeatSource::Own) };
    let failing = Facts { failing: true, ..present(2, 10) };
    assert_eq!(judge(&lease, &failing).because, Reason::SaysFailing { silence: seconds(10) });
    let silent = failing.later(seconds(200));
    assert_eq!(verdict(&lease, &silent), Verdict::Failing);
    assert_eq!(judge(&lease, &silent).because, Reason::FailingAndSilent { silence: seconds(210), ttl: seconds(180) });
    assert_eq!(
        judge(&lease, &Facts { broken: true, ..silent }),
        Judgement { verdict: Verdict::Hung, because: Reason::SaysBroken }
    );
}

#[test]
fn the_next_change_is_the_nearest_limit() {
    let full =
        Lease { hung_after: Limit::At(seconds(900)), run_for: Limit::At(seconds(1100)), ..lease(BeatSource::Own) };
    assert_eq!(next_change(&full, &present(1, 0)), Some(seconds(33) + Duration::from_nanos(1)));
    assert_eq!(next_change(&full, &present(1, 100)), Some(seconds(80)));
    assert_eq!(next_change(&full, &present(1, 180)), Some(seconds(100)), "the limit of its time");
    assert_eq!(next_change(&full, &present(0, 10)), Some(seconds(50)), "its first beat");
}

fn any_facts() -> impl Strategy<Value = (Lease, Facts)> {
    let beats = prop_oneof![Just(BeatSource::Auto), Just(BeatSource::Own), Just(BeatSource::Presence)];
    let existence = prop_oneof![4 => Just(Existence::Present), 1 => Just(Existence::Launching)];
    let span = || (0_u64..400).prop_map(seconds);
    let limit = || prop_oneof![Just(Limit::None), (0_u64..400).prop_map(|count| Limit::At(seconds(count)))];
    let limits = (span(), span(), span(), limit(), limit());
    let ages = (span(), span(), span(), proptest::option::of(span()));
    (beats, existence, limits, ages, 0_u64..3, any::<(bool, bool, bool)>(), 0_u32..6).prop_map(
        |(beats, existence, limits, ages, sequence, (failing, broken, needs_person), repeated)| {
            let (interval, ttl, start_within, hung_after, run_for) = limits;
            let (silence, still, running, excused) = ages;
            let limits = Lease { hung_after, looping_after: Limit::At(5), run_for, ..settings().lease };
            let lease = Lease { beats, interval, ttl, start_within, ..limits };
            let excused = excused.filter(|left| !left.is_zero());
            let words = Facts { failing, broken, needs_person, repeated, excused, ..Facts::bare(existence) };
            (lease, Facts { sequence, silence, still, running, ..words })
        },
    )
}

proptest! {
    #[test]
    fn no_verdict_changes_by_itself_before_the_next_change((lease, facts) in any_facts(), part in 0.0_f64..1.0) {
        let before = next_change(&lease, &facts).map_or(seconds(9999), |next| {
            assert!(next > Duration::ZERO);
            next.mul_f64(part).min(next - Duration::from_nanos(1))
        });
        prop_assert_eq!(verdict(&lease, &facts), verdict(&lease, &facts.later(before)));
    }

    #[test]
    fn a_verdict_walks_through_a_handful_of_changes_and_then_rests((lease, mut facts) in any_facts()) {
        for _ in 0..7 {
            match next_change(&lease, &facts) {
                Some(next) => facts = facts.later(next),
                None => return Ok(()),
            }
        }
        prop_assert_eq!(next_change(&lease, &facts), None);
    }
}
