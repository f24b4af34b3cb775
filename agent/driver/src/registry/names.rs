//! Dense numbers for names; a number is given again when its name has gone.
//!
//! A name is kept once, under its number, and its number is found through an index of numbers alone. To find one of a
//! million names costs two waits for the memory, where a tree of names waits at every level. The index is in no order, and
//! nobody sees one: who asks for all names gets them sorted.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::num::NonZeroU32;

use crate::translate::fingerprint;

/// Places of the index for each name at least: with half of them empty a search meets another name now and then.
const PLACES_EACH: usize = 2;

/// Places to begin with.
const PLACES_MIN: usize = 16;

#[derive(Debug)]
pub(super) struct Names<N> {
    names: Vec<Option<N>>,
    free: BTreeSet<u32>,
    index: Vec<Option<Place>>,
}

/// Where a name is found: at the place that its hash names, or behind it without a gap.
#[derive(Clone, Copy, Debug)]
struct Place {
    hash: NonZeroU32,
    number: u32,
}

impl<N> Default for Names<N> {
    fn default() -> Self {
        Self { names: Vec::new(), free: BTreeSet::new(), index: Vec::new() }
    }
}

impl<N: Clone + Ord + Hash> Names<N> {
    /// Makes room for so many more names.
    pub(super) fn reserve(&mut self, count: usize) {
        self.names.reserve(count);
        self.grow_index(self.names.len() + count);
    }

    pub(super) fn number(&self, name: &N) -> Option<u32> {
        self.find(name).map(|(_, number)| number)
    }

    pub(super) fn name(&self, number: u32) -> Option<&N> {
        self.names.get(number as usize)?.as_ref()
    }

    /// The name's number, the lowest free one for a name that has none.
    pub(super) fn add(&mut self, name: N) -> u32 {
        if let Some(number) = self.number(&name) {
            return number;
        }
        let number = self.free.pop_first().unwrap_or_else(|| {
            self.names.push(None);
            // Four thousand million names do not fit into memory.
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        });
        self.grow_index(self.names.len());
        self.enter(Place { hash: hash(&name), number });
        self.names[number as usize] = Some(name);
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Some((place, _)) = self.name(number).and_then(|name| self.find(name)) else { return };
        self.vacate(place);
        self.names[number as usize] = None;
        self.free.insert(number);
    }

    /// All numbers that were given are below this.
    pub(super) fn numbers_end(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// In the order of the names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&N, u32)> {
        let mut all: Vec<(&N, u32)> =
            (0..).zip(&self.names).filter_map(|(number, name)| Some((name.as_ref()?, number))).collect();
        all.sort_unstable();
        all.into_iter()
    }

    fn find(&self, name: &N) -> Option<(usize, u32)> {
        let hash = hash(name);
        let mut at = self.first(hash);
        while let Some(place) = *self.index.get(at)? {
            if place.hash == hash && self.name(place.number) == Some(name) {
                return Some((at, place.number));
            }
            at = self.behind(at);
        }
        None
    }

    fn grow_index(&mut self, count: usize) {
        let wanted = (count * PLACES_EACH).next_power_of_two().max(PLACES_MIN);
        if wanted > self.index.len() {
            let places = std::mem::replace(&mut self.index, vec![None; wanted]);
            places.into_iter().flatten().for_each(|place| self.enter(place));
        }
    }

    fn enter(&mut self, place: Place) {
        let mut at = self.first(place.hash);
        while self.index[at].is_some() {
            at = self.behind(at);
        }
        self.index[at] = Some(place);
    }

    /// Empties a place, and moves those behind it up, so that no gap keeps them from being found.
    fn vacate(&mut self, mut gap: usize) {
        self.index[gap] = None;
        let mut at = self.behind(gap);
        while let Some(place) = self.index[at] {
            let behind = |from: usize| at.wrapping_sub(from) & (self.index.len() - 1);
            if behind(self.first(place.hash)) >= behind(gap) {
                self.index.swap(gap, at);
                gap = at;
            }
            at = self.behind(at);
        }
    }

    fn first(&self, hash: NonZeroU32) -> usize {
        // The lowest bit is always set.
        (hash.get() >> 1) as usize & self.index.len().saturating_sub(1)
    }

    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.index.len() - 1)
    }
}

fn hash(name: &impl Hash) -> NonZeroU32 {
    let wide = fingerprint(name).0;
    NonZeroU32::MIN | (wide ^ (wide >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_number_is_given_again_when_its_name_has_gone() {
        let mut names = Names::default();
        assert_eq!(["a", "b", "a", "c"].map(|name| names.add(name)), [0, 1, 0, 2]);
        names.remove(1);
        names.remove(1);
        assert_eq!((names.number(&"b"), names.name(1)), (None, None));
        assert_eq!(names.add("d"), 1);
        assert_eq!(names.iter().collect::<Vec<_>>(), [(&"a", 0), (&"c", 2), (&"d", 1)]);
    }

    #[test]
    fn every_name_is_found_however_many_come_and_go() {
        let (mut names, mut known) = (Names::default(), BTreeMap::new());
        for step in 0..20_000_u32 {
            let name = step.wrapping_mul(2_654_435_761) % 700;
            match known.remove(&name) {
                Some(number) if step % 3 > 0 => names.remove(number),
                Some(_) | None => drop(known.insert(name, names.add(name))),
            }
            if step % 97 == 0 {
                assert!((0..700).all(|name| names.number(&name) == known.get(&name).copied()), "step {step}");
            }
        }
        assert!(known.len() > 100 && names.numbers_end() <= 700);
        assert!(names.iter().map(|(name, number)| (*name, number)).eq(known));
    }
}
