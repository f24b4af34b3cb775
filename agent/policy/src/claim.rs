//! Who holds what: at most one holder of a target, by construction of the table.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::{Epoch, Fingerprint, WorkerId};

/// Names a target densely; the driver owns the names, and gives a number again after the target's row was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(pub u32);

/// Targets without a holder that are remembered for their pickups; the oldest are forgotten first, the stuck among them.
/// Nothing else is kept of a target without a holder: its epochs need no row, since all epochs come from one counter.
pub(crate) const UNASSIGNED_MAX: usize = 10_000;

/// One holder's exclusive right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// who holds it
    pub holder: WorkerId,
    /// its fencing number
    pub epoch: Epoch,
    /// stands for what it was claimed for; `None` while the target is only assigned
    pub event: Option<Fingerprint>,
}

/// A target that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// what is the case
    pub state: TargetState,
    /// holders that it lost; counted when they are reaped, forgotten when one releases it
    pub pickups: u32,
}

/// Whether a target has a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// It has one.
    Held(Claim),
    /// Its holder was lost, and nobody has claimed it since.
    Unassigned {
        /// the claim that was fenced off
        fenced: Epoch,
    },
}

/// A claim that was taken from its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasedClaim {
    /// of what
    pub target: TargetId,
    /// the epoch that is refused from now on
    pub epoch: Epoch,
    /// what follows for the target
    pub after: AfterRelease,
}

/// What follows for a target whose claim was taken from its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRelease {
    /// The holder was lost: the target is unassigned, with this many pickups.
    Unassigned {
        /// holders that it lost, this one counted
        pickups: u32,
        /// those are as many as it may lose
        is_stuck: bool,
    },
    /// The holder ended by its own will: the target is forgotten.
    Forgotten,
}

/// All targets that are known.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    targets: BTreeMap<TargetId, Target>,
    held: BTreeSet<(WorkerId, TargetId)>,
    /// by the epoch of the lost claim: the oldest first
    unassigned: BTreeSet<(Epoch, TargetId)>,
}

impl Claims {
    /// The target, if it is known.
    pub(crate) fn target(&self, target: TargetId) -> Option<&Target> {
        self.targets.get(&target)
    }

    /// All targets in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TargetId, &Target)> {
        self.targets.iter().map(|(id, target)| (*id, target))
    }

    /// The claim of a target that has a holder.
    pub(crate) fn held(&self, target: TargetId) -> Option<Claim> {
        match self.targets.get(&target)?.state {
            TargetState::Held(claim) => Some(claim),
            TargetState::Unassigned { .. } => None,
        }
    }

    /// The target, if it has no holder and lost as many as it may.
    pub(crate) fn stuck(&self, target: TargetId, max_pickups: NonZeroU32) -> Option<(Epoch, u32)> {
        let Target { state, pickups } = *self.targets.get(&target)?;
        match state {
            TargetState::Unassigned { fenced } if pickups >= max_pickups.get() => Some((fenced, pickups)),
            TargetState::Unassigned { .. } | TargetState::Held(_) => None,
        }
    }

    /// Gives the target to a holder. The caller has seen that nobody holds it.
    pub(crate) fn grant(&mut self, target: TargetId, claim: Claim) {
        debug_assert!(self.held(target).is_none_or(|held| held.holder == claim.holder), "one holder at a time");
        let pickups = self.targets.get(&target).map_or(0, |known| known.pickups);
        self.restore(target, Target { state: TargetState::Held(claim), pickups });
    }

    /// Puts a target in as it is, and answers which one is too many to be remembered.
    pub(crate) fn restore(&mut self, target: TargetId, known: Target) -> Option<TargetId> {
        self.forget(target);
        self.targets.insert(target, known);
        match known.state {
            TargetState::Held(claim) => {
                self.held.insert((claim.holder, target));
            }
            TargetState::Unassigned { fenced } => {
                self.unassigned.insert((fenced, target));
            }
        }
        let excess = if self.unassigned.len() > UNASSIGNED_MAX { self.unassigned.first().copied() } else { None };
        excess.map(|(_, oldest)| {
            self.forget(oldest);
            oldest
        })
    }

    /// Forgets a target, with the claim on it.
    pub(crate) fn forget(&mut self, target: TargetId) -> Option<Target> {
        let known = self.targets.remove(&target)?;
        match known.state {
            TargetState::Held(claim) => self.held.remove(&(claim.holder, target)),
            TargetState::Unassigned { fenced } => self.unassigned.remove(&(fenced, target)),
        };
        Some(known)
    }

    /// What a worker holds.
    pub(crate) fn of(&self, holder: WorkerId) -> Vec<TargetId> {
        let from = (holder, TargetId(0))..=(holder, TargetId(u32::MAX));
        self.held.range(from).map(|&(_, target)| target).collect()
    }
}
