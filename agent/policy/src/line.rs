//! Who waits for one thing, in the order in which they came.

use alloc::collections::VecDeque;

/// Tickets in their order. They grow, so one more is the last, and the first is the one that leaves.
#[derive(Debug, Default)]
pub(crate) struct Line {
    tickets: VecDeque<u64>,
}

impl Line {
    /// Takes in a ticket, where it belongs.
    pub(crate) fn enter(&mut self, ticket: u64) {
        if let Err(place) = self.tickets.binary_search(&ticket) {
            self.tickets.insert(place, ticket);
        }
    }

    /// Takes a ticket out.
    pub(crate) fn leave(&mut self, ticket: u64) {
        if let Ok(place) = self.tickets.binary_search(&ticket) {
            self.tickets.remove(place);
        }
    }

    /// Whose turn it is.
    pub(crate) fn first(&self) -> Option<u64> {
        self.tickets.front().copied()
    }

    /// Those before a ticket, which need not be in it.
    pub(crate) fn before(&self, ticket: u64) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.tickets.range(..self.tickets.partition_point(|other| *other < ticket)).copied()
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_line_keeps_its_order_whoever_leaves_and_comes_back() {
        let mut line = Line::default();
        [3, 5, 9].into_iter().for_each(|ticket| line.enter(ticket));
        line.leave(5);
        line.leave(4);
        assert_eq!((line.first(), line.before(9).collect::<Vec<_>>()), (Some(3), Vec::from([3])));
        [5, 5].into_iter().for_each(|ticket| line.enter(ticket));
        assert_eq!(line.before(10).collect::<Vec<_>>(), [3, 5, 9]);
        [3, 5, 9].into_iter().for_each(|ticket| line.leave(ticket));
        assert!(line.is_empty() && line.first().is_none());
    }
}
