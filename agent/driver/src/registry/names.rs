//! Dense numbers for names; a number is given again when its name has gone.
//!
//! A name is kept once, under its number, and its number is found through an index of numbers alone. To find one of a
//! million names costs two waits for the memory, where a tree of names waits at every level. The index is in no order, and
//! nobody sees one: who asks for all names gets them sorted.

use std::collections::BTreeSet;
use std::hash::Hash;

use hashbrown::HashTable;

use crate::translate::fingerprint;

#[derive(Debug)]
pub(super) struct Names<N> {
    names: Vec<Option<N>>,
    free: BTreeSet<u32>,
    index: HashTable<u32>,
}

impl<N> Default for Names<N> {
    fn default() -> Self {
        Self { names: Vec::new(), free: BTreeSet::new(), index: HashTable::new() }
    }
}

impl<N: Clone + Ord + Hash> Names<N> {
    /// Makes room for so many more names.
    pub(super) fn reserve(&mut self, count: usize) {
        self.names.reserve(count);
        self.index.reserve(count, hash_in(&self.names));
    }

    pub(super) fn number(&self, name: &N) -> Option<u32> {
        self.find(hash(name), name)
    }

    fn find(&self, hash: u64, name: &N) -> Option<u32> {
        self.index.find(hash, |number| self.name(*number) == Some(name)).copied()
    }

    pub(super) fn name(&self, number: u32) -> Option<&N> {
        self.names.get(number as usize)?.as_ref()
    }

    /// The name's number, the lowest free one for a name that has none.
    pub(super) fn add(&mut self, name: N) -> u32 {
        let hash = hash(&name);
        if let Some(number) = self.find(hash, &name) {
            return number;
        }
        let number = self.free.pop_first().unwrap_or_else(|| {
            self.names.push(None);
            // Four thousand million names do not fit into memory.
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        });
        self.index.insert_unique(hash, number, hash_in(&self.names));
        self.names[number as usize] = Some(name);
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Some(name) = self.names.get_mut(number as usize).and_then(Option::take) else { return };
        if let Ok(entry) = self.index.find_entry(hash(&name), |found| *found == number) {
            entry.remove();
        }
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
}

/// The same on every machine and in every run.
fn hash(name: &impl Hash) -> u64 {
    fingerprint(name).0
}

/// The hash of the name behind a number, for the index when it grows.
fn hash_in<N: Hash>(names: &[Option<N>]) -> impl Fn(&u32) -> u64 {
    |number| names.get(*number as usize).and_then(Option::as_ref).map_or(0, hash)
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
                assert_eq!(names.index.len(), known.len(), "who has gone leaves nothing behind");
            }
        }
        assert!(known.len() > 100 && names.numbers_end() <= 700);
        assert!(names.iter().map(|(name, number)| (*name, number)).eq(known));
    }
}
