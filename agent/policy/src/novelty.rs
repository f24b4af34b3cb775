//! Whether work that moves gets anywhere: it says something new, or it goes round in a circle.

use crate::Fingerprint;

/// What was said last is remembered this far, so a circle of at most so many steps is seen. A longer one is taken for
/// progress.
const REMEMBERED_MAX: usize = 16;

/// What an attempt said of its progress lately, and for how many beats nothing of it has been new.
///
/// It counts the beats that were heard: several that come together count as one, so that nobody loops because the agent
/// did not listen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Novelty {
    said: [Option<Fingerprint>; REMEMBERED_MAX],
    oldest: usize,
    sequence: u64,
    repeated: u32,
}

impl Novelty {
    /// Takes in the progress of a beat; whoever says nothing of progress repeats nothing.
    pub(crate) fn hear(&mut self, sequence: u64, progress: Option<Fingerprint>) {
        let is_beat = sequence > core::mem::replace(&mut self.sequence, sequence);
        if progress.is_none() || !self.said.contains(&progress) {
            self.repeated = 0;
        } else if is_beat {
            self.repeated = self.repeated.saturating_add(1);
        }
        if progress.is_some() && !self.said.contains(&progress) {
            self.said[self.oldest] = progress;
            self.oldest = (self.oldest + 1) % REMEMBERED_MAX;
        }
    }

    /// Beats in a row that said nothing new.
    pub(crate) const fn repeated(&self) -> u32 {
        self.repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(said: &[u64]) -> u32 {
        let mut novelty = Novelty::default();
        for (index, progress) in said.iter().enumerate() {
            novelty.hear(index as u64 + 1, Some(Fingerprint(*progress)));
        }
        novelty.repeated()
    }

    #[test]
    fn a_circle_is_seen_and_something_new_ends_it() {
        assert_eq!(after(&[1, 2, 3]), 0);
        assert_eq!(after(&[1, 2, 1, 2, 1]), 3);
        assert_eq!(after(&[1, 2, 1, 2, 3]), 0);
        assert_eq!(after(&[1, 1, 1]), 2);
    }

    #[test]
    fn a_circle_as_long_as_the_memory_is_seen_and_a_longer_one_is_not() {
        let round = |length: u64| (0..3 * length).map(|step| step % length).collect::<Vec<_>>();
        assert_eq!(after(&round(16)), 32);
        assert_eq!(after(&round(17)), 0);
    }

    #[test]
    fn only_beats_count_and_only_those_that_speak_of_progress() {
        let mut novelty = Novelty::default();
        for _ in 0..9 {
            novelty.hear(5, Some(Fingerprint(1)));
        }
        assert_eq!(novelty.repeated(), 0, "one beat told again and again");
        novelty.hear(500, Some(Fingerprint(1)));
        assert_eq!(novelty.repeated(), 1, "many beats that were not heard one by one");
        novelty.hear(501, None);
        assert_eq!(novelty.repeated(), 0);
    }

    #[test]
    fn what_is_said_again_pushes_nothing_out_of_the_memory() {
        let said: Vec<u64> = (0..16).chain([15; 16]).chain([0]).collect();
        assert_eq!(after(&said), 17);
    }
}
