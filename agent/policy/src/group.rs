//! The workers of one executor: how many claims they may hold, and which of them has room.

use alloc::collections::{BTreeMap, VecDeque};
use core::num::NonZeroU32;

use crate::{Epoch, WorkerId, WorkerLease};

/// Names a group densely; the driver owns the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// What was decided for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// claims that its workers may hold together; `None` is no limit
    pub capacity: Option<NonZeroU32>,
    /// claims that one worker may hold
    pub claims_max: NonZeroU32,
    /// holders that a target may lose: at so many it is stuck, and is given to nobody until a person says so
    pub max_pickups: NonZeroU32,
    /// the lease of a worker that asks for none of its own
    pub lease: WorkerLease,
}

/// Why nothing more can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimLimit {
    /// The group's claims have reached its capacity.
    Capacity(NonZeroU32),
    /// The worker holds as many as one may.
    ClaimsMax(NonZeroU32),
    /// No active worker of the group has room.
    NoFreeWorker,
}

/// Rows of dead workers that a group keeps for whoever looks into them, beside those of its live ones: a day's crash
/// loop of a fleet stays in sight in about a megabyte. The oldest go first, and opening the group removes them all.
pub(crate) const DEAD_KEPT_MAX: usize = 10_000;

/// A group with what is counted of it.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) settings: GroupSettings,
    /// the life of the executor; 0 while nobody has opened the group
    pub(crate) instance: Epoch,
    pub(crate) claims_count: u32,
    /// active workers with room for a claim
    free: WorkerSet,
    /// who was assigned last: the next one comes after it, so that work goes round
    turn: WorkerId,
    /// dead workers in the order of their deaths; a name that registered again meanwhile has another epoch
    dead: VecDeque<(WorkerId, Epoch)>,
}

impl Group {
    pub(crate) fn new(settings: GroupSettings, instance: Epoch) -> Self {
        let (free, dead) = (WorkerSet::default(), VecDeque::new());
        Self { settings, instance, claims_count: 0, free, turn: WorkerId(u32::MAX), dead }
    }

    /// Says whether the worker has room for a claim.
    pub(crate) fn offer(&mut self, worker: WorkerId, has_room: bool) {
        if has_room {
            self.free.insert(worker);
        } else {
            self.free.remove(worker);
        }
    }

    /// Answers why the group can take no more claims.
    pub(crate) fn is_full(&self) -> Option<ClaimLimit> {
        let capacity = self.settings.capacity?;
        (self.claims_count >= capacity.get()).then_some(ClaimLimit::Capacity(capacity))
    }

    /// Chooses the next worker with room, in turn.
    pub(crate) fn choose(&mut self) -> Option<WorkerId> {
        let after = self.turn.0.checked_add(1).and_then(|after| self.free.first_from(WorkerId(after)));
        self.turn = after.or_else(|| self.free.first_from(WorkerId(0)))?;
        Some(self.turn)
    }

    /// Remembers a death, and answers whose row is one too many.
    pub(crate) fn bury(&mut self, worker: WorkerId, epoch: Epoch) -> Option<(WorkerId, Epoch)> {
        self.free.remove(worker);
        self.dead.push_back((worker, epoch));
        if self.dead.len() > DEAD_KEPT_MAX { self.dead.pop_front() } else { None }
    }
}

/// Dense numbers, 64 to a word: a million of them stay in the processor's cache, where a tree of numbers would not.
#[derive(Debug, Default)]
struct WorkerSet(BTreeMap<u32, u64>);

impl WorkerSet {
    fn insert(&mut self, worker: WorkerId) {
        *self.0.entry(worker.0 / u64::BITS).or_default() |= 1 << (worker.0 % u64::BITS);
    }

    fn remove(&mut self, worker: WorkerId) {
        let key = worker.0 / u64::BITS;
        let Some(word) = self.0.get_mut(&key) else { return };
        *word &= !(1 << (worker.0 % u64::BITS));
        if *word == 0 {
            self.0.remove(&key);
        }
    }

    fn first_from(&self, worker: WorkerId) -> Option<WorkerId> {
        let key = worker.0 / u64::BITS;
        let ahead = self.0.get(&key).map_or(0, |word| word & (u64::MAX << (worker.0 % u64::BITS)));
        let later = || self.0.range(key + 1..).next().map(|(key, word)| (*key, *word));
        let (key, word) = if ahead == 0 { later()? } else { (key, ahead) };
        Some(WorkerId(key * u64::BITS + word.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_finds_the_next_number_over_gaps() {
        let mut set = WorkerSet::default();
        [0, 63, 64, 1000].map(WorkerId).into_iter().for_each(|worker| set.insert(worker));
        let found = [0, 1, 63, 64, 65, 1000, 1001].map(|from| set.first_from(WorkerId(from)).map(|worker| worker.0));
        assert_eq!(found, [Some(0), Some(63), Some(63), Some(64), Some(1000), Some(1000), None]);
        [0, 1000].map(WorkerId).into_iter().for_each(|worker| set.remove(worker));
        assert_eq!(set.first_from(WorkerId(0)), Some(WorkerId(63)));
        assert_eq!(set.first_from(WorkerId(65)), None);
    }
}
