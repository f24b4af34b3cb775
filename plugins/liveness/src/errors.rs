//! Whether the errors that a subject counts grow.

use std::collections::BTreeMap;

/// Subjects whose errors are remembered. Beyond it all are forgotten, and counting begins anew: a rule that grows
/// without end would be ended for its memory.
const SUBJECTS_MAX: usize = 10_000;

/// When errors grow.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// so many more
    pub(crate) min: u64,
    /// within so many seconds
    pub(crate) for_s: u64,
}

impl Limits {
    pub(crate) const DEFAULT: Self = Self { min: 10, for_s: 600 };

    /// The limit that a setting names.
    pub(crate) fn limit_mut(&mut self, setting: &str) -> Option<&mut u64> {
        match setting {
            "errors_min" => Some(&mut self.min),
            "errors_for_s" => Some(&mut self.for_s),
            _ => None,
        }
    }
}

/// What subjects had counted at the beginning of the present span.
pub(crate) struct Counts {
    begun: BTreeMap<String, (u64, u64)>,
}

impl Counts {
    pub(crate) const fn new() -> Self {
        Self { begun: BTreeMap::new() }
    }

    /// By how much a count grew in the present span, if that is enough. `now` is in milliseconds.
    pub(crate) fn growth(&mut self, subject: &str, count: u64, now: u64, limits: Limits) -> Option<u64> {
        if count == 0 {
            self.begun.remove(subject);
            return None;
        }
        if self.begun.len() >= SUBJECTS_MAX && !self.begun.contains_key(subject) {
            self.begun.clear();
        }
        // What is first seen with errors had none when it began to count; a lower count is another attempt's.
        let begun = self.begun.entry(subject.to_owned()).or_insert((now, 0));
        if count < begun.1 {
            *begun = (now, 0);
        }
        let grown = count - begun.1;
        if now.saturating_sub(begun.0) >= limits.for_s.saturating_mul(1000) {
            *begun = (now, count);
        }
        (grown >= limits.min).then_some(grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { min: 5, for_s: 60 };

    #[test]
    fn a_count_that_grows_within_the_span_is_found_and_one_that_stays_is_not() {
        let mut counts = Counts::new();
        assert_eq!(counts.growth("a", 4, 1_000, LIMITS), None);
        assert_eq!(counts.growth("a", 6, 2_000, LIMITS), Some(6));
        assert_eq!(counts.growth("a", 6, 61_000, LIMITS), Some(6));
        assert_eq!(counts.growth("a", 6, 70_000, LIMITS), None, "the span begins anew");
        assert_eq!(counts.growth("a", 10, 71_000, LIMITS), None);
        assert_eq!(counts.growth("a", 3, 72_000, LIMITS), None, "another attempt counts from its own beginning");
        assert_eq!(counts.growth("a", 8, 73_000, LIMITS), Some(8));
    }
}
