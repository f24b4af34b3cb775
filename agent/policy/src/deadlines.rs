//! What is due when, indexed: a sweep costs what is due, not what is watched.

use alloc::collections::BTreeSet;

use crate::{Moment, SubjectId};

/// At most one deadline for each subject. Callers keep the present one and hand it back to change it.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    due: BTreeSet<(Moment, SubjectId)>,
}

impl Deadlines {
    /// Moves the deadline of a subject.
    pub(crate) fn set(&mut self, subject: SubjectId, present: Option<Moment>, next: Option<Moment>) {
        if present == next {
            return;
        }
        if let Some(moment) = present {
            self.due.remove(&(moment, subject));
        }
        if let Some(moment) = next {
            self.due.insert((moment, subject));
        }
    }

    /// The first deadline of all.
    pub(crate) fn first(&self) -> Option<Moment> {
        self.due.first().map(|&(moment, _)| moment)
    }

    /// Whose deadlines come until `until`, the first one first.
    pub(crate) fn until(&self, until: Moment) -> impl Iterator<Item = SubjectId> + '_ {
        self.due.iter().take_while(move |(moment, _)| *moment <= until).map(|&(_, subject)| subject)
    }

    /// Takes out one subject whose deadline has come.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<SubjectId> {
        self.due.first().filter(|&&(moment, _)| moment <= now)?;
        self.due.pop_first().map(|(_, subject)| subject)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_secs(seconds))
    }

    #[test]
    fn what_is_due_comes_in_order_and_once() {
        let mut deadlines = Deadlines::default();
        deadlines.set(SubjectId(1), None, Some(at(3)));
        deadlines.set(SubjectId(2), None, Some(at(1)));
        deadlines.set(SubjectId(3), None, Some(at(2)));
        assert_eq!(deadlines.first(), Some(at(1)));
        assert_eq!(deadlines.take_due(at(2)), Some(SubjectId(2)));
        assert_eq!(deadlines.take_due(at(2)), Some(SubjectId(3)));
        assert_eq!(deadlines.take_due(at(2)), None);
        assert_eq!(deadlines.first(), Some(at(3)));
    }

    #[test]
    fn a_moved_deadline_leaves_nothing_behind() {
        let mut deadlines = Deadlines::default();
        deadlines.set(SubjectId(1), None, Some(at(3)));
        deadlines.set(SubjectId(1), Some(at(3)), Some(at(5)));
        assert_eq!(deadlines.take_due(at(4)), None);
        deadlines.set(SubjectId(1), Some(at(5)), None);
        assert_eq!(deadlines.first(), None);
    }
}
