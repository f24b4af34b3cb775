//! When many workers fall silent together, the agent doubts itself before it takes their claims.

use core::time::Duration;

use latido_policy::{BlackoutCause, BlackoutChange, BlackoutSettings, Event, Limit, Pacing, RegistryAnswer, Verdict};

use super::desk::{Desk, TICK, reaped, target, worker};
use crate::harness::seconds;

/// `count` workers that beat just now, under an agent that doubts itself when half of at least five fall silent.
fn many(count: u32) -> Desk {
    let mut desk = Desk::with_workers(count);
    let blackout = BlackoutSettings { share_percent: Limit::At(50), count_min: 5 };
    desk.policy.handle_event(Event::Configured { pacing: Pacing::default(), blackout }, desk.now);
    desk
}

fn beats(desk: &mut Desk, numbers: core::ops::RangeInclusive<u32>) {
    numbers.for_each(|number| _ = desk.beat(number));
}

#[test]
fn when_half_of_all_workers_fall_silent_together_nobody_loses_a_claim() {
    let mut desk = many(10);
    let epoch = desk.claimed(1, 7);
    assert_eq!(reaped(&desk.pass(seconds(90).saturating_add(TICK))), []);
    let cause = BlackoutCause::MassStaleness { stale: 10, watched: 10 };
    assert_eq!(desk.doubts, [BlackoutChange::Began(cause)]);
    for number in 1..=10 {
        assert_eq!((desk.verdict(number), desk.view(number).baseline.is_some()), (Verdict::Alive, true));
    }
    for round in 0..5 {
        assert_eq!(desk.pass(seconds(30)), [], "round {round}");
        beats(&mut desk, 1..=10);
    }
    assert_eq!(desk.doubts.last(), Some(&BlackoutChange::Ended));
    assert_eq!(desk.claim(2, 7, 1), RegistryAnswer::AlreadyClaimed { holder: worker(1), epoch });
}

#[test]
fn workers_that_fall_silent_one_after_another_are_doubted_before_the_first_is_declared_dead() {
    let mut desk = many(10);
    for number in 1..=10 {
        desk.pass(Duration::from_millis(2900));
        desk.beat(number);
    }
    assert_eq!(reaped(&desk.pass(seconds(90))), []);
    let cause = BlackoutCause::MassStaleness { stale: 10, watched: 10 };
    assert_eq!(desk.doubts, [BlackoutChange::Began(cause)]);
}

#[test]
fn one_worker_that_dies_among_some_that_are_late_is_declared_dead_at_once() {
    let mut desk = many(10);
    desk.pass(seconds(40));
    beats(&mut desk, 2..=10);
    let dead = reaped(&desk.pass(seconds(50).saturating_add(TICK)));
    assert_eq!((dead, desk.doubts.len()), (vec![worker(1)], 0));
}

#[test]
fn who_stays_silent_after_the_doubt_is_declared_dead_a_whole_ttl_later() {
    let mut desk = many(10);
    let epoch = desk.claimed(1, 7);
    desk.pass(seconds(91));
    beats(&mut desk, 6..=10);
    assert_eq!(reaped(&desk.pass(seconds(88))), []);
    let dead = reaped(&desk.pass(seconds(2)));
    assert_eq!(dead, (1..=5).map(worker).collect::<Vec<_>>(), "doubted once, and not for ever");
    assert_eq!(desk.released.iter().map(|claim| (claim.target, claim.epoch)).collect::<Vec<_>>(), [(target(7), epoch)]);
    assert_eq!(desk.doubts.len(), 2, "that doubt is over, and there was no other");
}

#[test]
fn a_dead_worker_stays_dead_whatever_the_agent_doubts_later() {
    let mut desk = many(10);
    desk.pass(seconds(60));
    beats(&mut desk, 2..=10);
    assert_eq!(reaped(&desk.pass(seconds(31))), [worker(1)]);
    assert_eq!(reaped(&desk.pass(seconds(60))), [], "now the others fall silent");
    assert_eq!((desk.doubts.len(), desk.verdict(1), desk.verdict(2)), (1, Verdict::Stale, Verdict::Alive));
}

#[test]
fn workers_that_never_beat_are_doubted_together_and_believed_one_by_one() {
    for (silent, doubted) in [(1, false), (10, true)] {
        let mut desk = many(0);
        (1..=10).for_each(|number| _ = desk.register(number));
        beats(&mut desk, silent + 1..=10);
        desk.pass(seconds(61));
        let verdict = if doubted { Verdict::Waiting } else { Verdict::Missing };
        assert_eq!((desk.verdict(1), desk.doubts.len()), (verdict, usize::from(doubted)));
    }
}

#[test]
fn no_worker_is_declared_dead_while_the_store_is_away_nor_before_a_whole_ttl_after_it() {
    let mut desk = Desk::with_workers(1);
    desk.pass(seconds(80));
    desk.policy.handle_event(Event::StoreFailed, desk.now);
    assert_eq!(reaped(&desk.pass(seconds(10_000))), []);
    desk.policy.handle_event(Event::StoreRecovered, desk.now);
    assert_eq!(reaped(&desk.pass(seconds(89))), []);
    assert_eq!(reaped(&desk.pass(seconds(2))), [worker(1)]);
}
