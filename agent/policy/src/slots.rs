//! Named limits of how many run at once.

use alloc::collections::BTreeMap;

use crate::{Limit, SubjectId};

/// Slots that one job may count against. More than a few make it hard to see what it waits for.
pub const SLOTS_MAX: usize = 4;

/// Names a slot densely; the driver owns the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u16);

/// The slots that a job counts against, each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotSet([Option<SlotId>; SLOTS_MAX]);

impl SlotSet {
    /// The set of these slots; those beyond [`SLOTS_MAX`] are left out.
    #[must_use]
    pub fn of(slots: &[SlotId]) -> Self {
        let mut set = Self::default();
        for slot in slots {
            if !set.contains(*slot)
                && let Some(place) = set.0.iter_mut().find(|place| place.is_none())
            {
                *place = Some(*slot);
            }
        }
        set
    }

    fn contains(&self, slot: SlotId) -> bool {
        self.0.contains(&Some(slot))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = SlotId> + use<> {
        self.0.into_iter().flatten()
    }
}

/// Who holds which slot, and how many each has. A slot is held from the order to launch until nothing of the attempt
/// can live any more.
#[derive(Debug)]
pub(crate) struct Slots {
    /// everybody who may hold one has been told of; until then no limited one has room
    pub(crate) are_known: bool,
    limits: BTreeMap<SlotId, u32>,
    held: BTreeMap<SlotId, u32>,
    holders: BTreeMap<SubjectId, SlotSet>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { are_known: true, limits: BTreeMap::new(), held: BTreeMap::new(), holders: BTreeMap::new() }
    }
}

impl Slots {
    /// Changes how many may run at once. What runs above that runs on.
    pub(crate) fn set(&mut self, slot: SlotId, running_max: Limit<u32>) {
        match running_max {
            Limit::None => _ = self.limits.remove(&slot),
            Limit::At(max) => _ = self.limits.insert(slot, max),
        }
    }

    /// Whether every slot of the set has room.
    pub(crate) fn have_room(&self, slots: &SlotSet) -> bool {
        let held = |slot| self.held.get(&slot).copied().unwrap_or(0);
        slots.iter().all(|slot| self.limits.get(&slot).is_none_or(|max| self.are_known && held(slot) < *max))
    }

    /// The slots that a subject holds.
    pub(crate) fn held_by(&self, subject: SubjectId) -> SlotSet {
        self.holders.get(&subject).copied().unwrap_or_default()
    }

    /// Gives a subject its slots, whether there is room or not: what runs holds them.
    pub(crate) fn hold(&mut self, subject: SubjectId, slots: SlotSet) {
        if self.holders.get(&subject) == Some(&slots) {
            return;
        }
        self.release(subject);
        if slots == SlotSet::default() {
            return;
        }
        for slot in slots.iter() {
            *self.held.entry(slot).or_insert(0) += 1;
        }
        self.holders.insert(subject, slots);
    }

    /// Takes a subject's slots back.
    pub(crate) fn release(&mut self, subject: SubjectId) {
        for slot in self.holders.remove(&subject).unwrap_or_default().iter() {
            if let Some(count) = self.held.get_mut(&slot) {
                *count -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: SlotId = SlotId(1);
    const DISK: SlotId = SlotId(2);

    #[test]
    fn a_slot_is_held_once_by_each_and_given_back() {
        let mut slots = Slots::default();
        slots.set(GPU, Limit::At(2));
        let gpu = SlotSet::of(&[GPU, GPU]);
        slots.hold(SubjectId(1), gpu);
        slots.hold(SubjectId(1), gpu);
        assert!(slots.have_room(&gpu));
        slots.hold(SubjectId(2), gpu);
        assert!(!slots.have_room(&gpu));
        slots.release(SubjectId(1));
        slots.release(SubjectId(1));
        assert!(slots.have_room(&gpu));
    }

    #[test]
    fn all_slots_of_a_set_need_room_and_an_unnamed_one_always_has_it() {
        let mut slots = Slots::default();
        slots.set(GPU, Limit::At(0));
        assert!(slots.have_room(&SlotSet::of(&[DISK])));
        assert!(!slots.have_room(&SlotSet::of(&[DISK, GPU])));
        slots.set(GPU, Limit::None);
        assert!(slots.have_room(&SlotSet::of(&[DISK, GPU])));
    }

    #[test]
    fn what_runs_above_the_limit_runs_on_and_lets_nobody_in() {
        let mut slots = Slots::default();
        slots.set(GPU, Limit::At(1));
        let gpu = SlotSet::of(&[GPU]);
        slots.hold(SubjectId(1), gpu);
        slots.hold(SubjectId(2), gpu);
        slots.release(SubjectId(1));
        assert!(!slots.have_room(&gpu));
    }
}
