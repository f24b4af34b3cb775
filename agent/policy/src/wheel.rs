//! Deadlines that move with every beat: a lazy timing wheel.
//!
//! A beat does not touch the wheel. An entry stays where it was filed, and when that slot comes due the caller looks
//! at it: either its deadline has come, or it is filed again at the one it has by then. So a lease that is renewed all
//! the time costs one look for each of its ttls, and a sweep costs what comes due, not what is watched.
//!
//! One ring of slots is enough, since an entry may always be looked at early: what lies beyond the ring is filed
//! somewhere inside it. That also spreads the looks, where a second ring would be emptied into the first all at once.

use alloc::vec;
use alloc::vec::Vec;

use crate::Moment;

/// A slot is 2^23 ns, 8.4 ms: an entry is given out at most this late, a third of the 25 ms that a verdict may be, and a
/// busy wheel wakes its caller 120 times a second.
const TICK_SHIFT: u32 = 23;

/// Nanoseconds of a slot.
const TICK: u64 = 1 << TICK_SHIFT;

/// The ring is 275 s long: the usual ttl of 180 s fits. Its heads are 128 KiB, made when the first entry is filed.
const SLOTS: usize = 1 << 15;

/// Slots of one word of the map of occupied slots.
const WORD: usize = 64;

/// Marks a [`Link::before`] that names a slot, with the slot's number in the bits below.
const HEAD: u32 = 1 << 31;

/// No entry, and for [`Link::before`]: not filed.
const NONE: u32 = u32::MAX;

/// Entries have numbers below this.
pub(crate) const ENTRIES_MAX: u32 = HEAD;

/// The place of one entry in the list of its slot; eight bytes, since there are a million.
#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    /// the entry before it, the slot whose first it is, or [`NONE`]
    before: u32,
}

const UNFILED: Link = Link { next: NONE, before: NONE };

/// Files dense entry numbers by moment.
///
/// Every filed entry lies in a slot from `hand` to `hand + SLOTS - 1`, so that a slot stands for one tick alone.
#[derive(Debug, Default)]
pub(crate) struct Wheel {
    links: Vec<Link>,
    heads: Vec<u32>,
    occupied: Vec<u64>,
    /// the tick whose slot is being emptied; all before it are empty
    hand: u64,
    filed_count: u32,
}

impl Wheel {
    /// Files the entry to be looked at when `due` has come, at the latest; it moves if it is filed elsewhere.
    ///
    /// What is due already is given out with the next tick, so that nobody who files again at once turns in a circle.
    pub(crate) fn file(&mut self, entry: u32, due: Moment, now: Moment) {
        assert!(entry < ENTRIES_MAX, "entries are dense");
        self.remove(entry);
        if self.filed_count == 0 {
            // Nothing lies between: the hand need not walk there, which from the start of the line would take years.
            self.hand = self.hand.max(now.nanos() >> TICK_SHIFT);
        }
        self.filed_count += 1;
        let index = entry as usize;
        if index >= self.links.len() {
            self.links.resize(index + 1, UNFILED);
        }
        if self.heads.is_empty() {
            self.heads = vec![NONE; SLOTS];
            self.occupied = vec![0; SLOTS / WORD];
        }
        let slot = slot(self.tick(entry, due));
        let first = self.heads[slot];
        if first != NONE {
            self.links[first as usize].before = entry;
        }
        self.links[index] = Link { next: first, before: HEAD | slot as u32 };
        self.heads[slot] = entry;
        self.occupied[slot / WORD] |= 1 << (slot % WORD);
    }

    /// Entries that are filed.
    pub(crate) fn filed_count(&self) -> u32 {
        self.filed_count
    }

    /// Takes the entry out; one that is not filed is no error.
    pub(crate) fn remove(&mut self, entry: u32) {
        let Some(link) = self.links.get_mut(entry as usize) else { return };
        let Link { next, before } = core::mem::replace(link, UNFILED);
        if before == NONE {
            return;
        }
        self.filed_count -= 1;
        if next != NONE {
            self.links[next as usize].before = before;
        }
        if before & HEAD == 0 {
            self.links[before as usize].next = next;
            return;
        }
        let slot = (before & !HEAD) as usize;
        self.heads[slot] = next;
        if next == NONE {
            self.occupied[slot / WORD] &= !(1 << (slot % WORD));
        }
    }

    /// Takes out one entry whose slot has come. The caller looks at its deadline and files it again where that has
    /// moved.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<u32> {
        let last = now.nanos() >> TICK_SHIFT;
        match self.first_tick().filter(|&tick| tick <= last) {
            Some(tick) => {
                self.hand = self.hand.max(tick);
                let entry = self.heads[slot(tick)];
                self.remove(entry);
                Some(entry)
            }
            None => {
                self.hand = self.hand.max(last);
                None
            }
        }
    }

    /// The entries that are looked at until `until`, the first ones first. They stay filed.
    pub(crate) fn filed(&self, until: Moment) -> impl Iterator<Item = u32> + '_ {
        let last = (until.nanos() >> TICK_SHIFT).min(self.hand + SLOTS as u64 - 1);
        let ticks = if self.filed_count == 0 { 0..0 } else { self.hand..last + 1 };
        let heads = ticks.map(|tick| self.heads[slot(tick)]);
        heads.flat_map(|head| {
            let link = |entry: &u32| self.links.get(*entry as usize).map(|link| link.next);
            core::iter::successors(Some(head), link).take_while(|entry| *entry != NONE)
        })
    }

    /// When the next slot comes due; after everything that is due was taken out, later than that.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.first_tick().map(|tick| Moment::at_nanos(tick << TICK_SHIFT))
    }

    /// The tick at which the entry is looked at.
    fn tick(&self, entry: u32, due: Moment) -> u64 {
        let ring = SLOTS as u64;
        let tick = due.nanos().div_ceil(TICK).max(self.hand + 1);
        if tick < self.hand + ring {
            return tick;
        }
        // Somewhere in the second half of the ring; the golden ratio spreads numbers that follow each other.
        let spread = (u64::from(entry.wrapping_mul(0x9e37_79b9)) * (ring / 2)) >> u32::BITS;
        self.hand + ring / 2 + spread
    }

    /// The first tick from the hand on whose slot holds something.
    fn first_tick(&self) -> Option<u64> {
        let start = slot(self.hand);
        let words = self.occupied.len();
        let first = *self.occupied.get(start / WORD)?;
        let ahead = first & (u64::MAX << (start % WORD));
        let found = if ahead != 0 {
            (start / WORD, ahead)
        } else {
            // All around the ring; the first word once more for what lies before the hand in it.
            let others = (1..=words).map(|step| (start / WORD + step) % words);
            others.map(|word| (word, self.occupied[word])).find(|&(_, bits)| bits != 0)?
        };
        let found = found.0 * WORD + found.1.trailing_zeros() as usize;
        Some(self.hand + ((found + SLOTS - start) % SLOTS) as u64)
    }
}

fn slot(tick: u64) -> usize {
    (tick % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use core::time::Duration;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_millis(millis))
    }

    fn taken(wheel: &mut Wheel, now: Moment) -> Vec<u32> {
        core::iter::from_fn(|| wheel.take_due(now)).collect()
    }

    /// Lets the wheel run to `end` and answers when each entry was given out.
    fn run(wheel: &mut Wheel, end: Moment) -> Vec<(Moment, u32)> {
        let mut seen = Vec::new();
        while let Some(now) = wheel.next().filter(|&next| next <= end) {
            seen.extend(taken(wheel, now).into_iter().map(|entry| (now, entry)));
            assert!(wheel.next().is_none_or(|next| next > now), "nothing stays due");
        }
        seen
    }

    #[test]
    fn an_entry_is_given_out_within_a_tick_and_once() {
        let mut wheel = Wheel::default();
        let due = at(180_000);
        wheel.file(3, due, at(0));
        let seen = run(&mut wheel, at(1_000_000));
        assert_eq!(seen.len(), 1);
        let (given_at, entry) = seen[0];
        assert_eq!(entry, 3);
        assert!(given_at >= due && given_at.since(due) < Duration::from_nanos(TICK));
    }

    #[test]
    fn what_lies_beyond_the_ring_is_looked_at_early_and_spread() {
        let mut wheel = Wheel::default();
        (0..1000).for_each(|entry| wheel.file(entry, at(3_600_000), at(0)));
        let seen = run(&mut wheel, at(275_000));
        assert_eq!(seen.len(), 1000);
        let mut slots: BTreeMap<Moment, usize> = BTreeMap::new();
        seen.iter().for_each(|&(given_at, _)| *slots.entry(given_at).or_default() += 1);
        assert!(slots.len() > 900, "{} slots hold a thousand entries", slots.len());
        assert!(seen.iter().all(|&(given_at, _)| given_at > at(137_000)), "in the second half of the ring");
    }

    #[test]
    fn an_entry_that_is_filed_again_leaves_its_old_slot() {
        let mut wheel = Wheel::default();
        (0..3).for_each(|entry| wheel.file(entry, at(1000), at(0)));
        wheel.file(1, at(100), at(0));
        assert_eq!(taken(&mut wheel, at(120)), [1]);
        wheel.remove(2);
        wheel.remove(2);
        assert_eq!(taken(&mut wheel, at(2000)), [0]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn a_wheel_that_was_not_asked_for_hours_gives_out_everything() {
        let mut wheel = Wheel::default();
        (0..100_u32).for_each(|entry| wheel.file(entry, at(u64::from(entry) * 7000), at(0)));
        assert_eq!(taken(&mut wheel, at(100_000_000)).len(), 100);
    }

    #[test]
    fn the_first_entry_of_all_is_filed_from_where_the_line_is() {
        let mut wheel = Wheel::default();
        let years_in = at(10 * 365 * 24 * 3_600_000);
        wheel.file(0, years_in.after(Duration::from_secs(180)), years_in);
        assert!(wheel.next().is_some_and(|next| next.since(years_in) > Duration::from_secs(179)));
    }

    /// Whoever files again what was just given out would turn in a circle.
    #[test]
    fn what_is_filed_waits_for_the_next_tick_at_least() {
        for due in [at(0), Moment::at_nanos(SLOTS as u64 * TICK)] {
            let mut wheel = Wheel::default();
            wheel.file(3, due, at(0));
            assert_eq!(wheel.take_due(at(0)), None, "{due:?}");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        File(u32, u64),
        Remove(u32),
        Pass(u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_u32, 0..400_000_u64).prop_map(|(entry, ahead)| Step::File(entry, ahead)),
            (0..20_u32).prop_map(Step::Remove),
            (0..300_000_u64).prop_map(Step::Pass),
            (0..30_u64).prop_map(Step::Pass),
        ]
    }

    proptest! {
        #[test]
        fn every_entry_is_given_out_when_its_deadline_has_come(steps in vec(any_step(), 0..60)) {
            let mut wheel = Wheel::default();
            let mut due: BTreeMap<u32, Moment> = BTreeMap::new();
            let mut now = at(0);
            for step in steps {
                match step {
                    Step::File(entry, ahead) => {
                        due.insert(entry, now.after(Duration::from_millis(ahead)));
                        wheel.file(entry, due[&entry], now);
                    }
                    Step::Remove(entry) => {
                        due.remove(&entry);
                        wheel.remove(entry);
                    }
                    Step::Pass(millis) => {
                        now = now.after(Duration::from_millis(millis));
                        while let Some(entry) = wheel.take_due(now) {
                            let deadline = *due.get(&entry).expect("what was removed is never given out");
                            if deadline > now {
                                wheel.file(entry, deadline, now);
                            } else {
                                due.remove(&entry);
                            }
                        }
                        prop_assert!(wheel.next().is_none_or(|next| next > now));
                        for deadline in due.values() {
                            prop_assert!(deadline.after(Duration::from_nanos(TICK)) > now, "more than a tick late");
                        }
                    }
                }
                prop_assert_eq!(wheel.next().is_some(), !due.is_empty());
            }
        }
    }
}
