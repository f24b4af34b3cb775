//! Dense numbers for names; a number is given again when its name has gone.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Names<N> {
    numbers: BTreeMap<N, u32>,
    names: Vec<Option<N>>,
    free: BTreeSet<u32>,
}

impl<N> Default for Names<N> {
    fn default() -> Self {
        Self { numbers: BTreeMap::new(), names: Vec::new(), free: BTreeSet::new() }
    }
}

impl<N: Clone + Ord> Names<N> {
    pub(super) fn number(&self, name: &N) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(super) fn name(&self, number: u32) -> Option<&N> {
        self.names.get(number as usize)?.as_ref()
    }

    /// The name's number, the lowest free one for a name that has none.
    pub(super) fn add(&mut self, name: &N) -> u32 {
        if let Some(number) = self.number(name) {
            return number;
        }
        let number = self.free.pop_first().unwrap_or_else(|| {
            self.names.push(None);
            // Four thousand million names do not fit into memory.
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        });
        self.names[number as usize] = Some(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Some(name) = self.names.get_mut(number as usize).and_then(Option::take) else { return };
        self.numbers.remove(&name);
        self.free.insert(number);
    }

    /// All numbers that were given are below this.
    pub(super) fn numbers_end(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// In the order of the names.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&N, u32)> {
        self.numbers.iter().map(|(name, number)| (name, *number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_again_when_its_name_has_gone() {
        let mut names = Names::default();
        assert_eq!(["a", "b", "a", "c"].map(|name| names.add(&name)), [0, 1, 0, 2]);
        names.remove(1);
        names.remove(1);
        assert_eq!((names.number(&"b"), names.name(1)), (None, None));
        assert_eq!(names.add(&"d"), 1);
        assert_eq!(names.iter().collect::<Vec<_>>(), [(&"a", 0), (&"c", 2), (&"d", 1)]);
    }
}
