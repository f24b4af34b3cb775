//! Who gets a target: claim, assign, release.

use core::num::NonZeroU32;

use crate::{Claim, ClaimLimit, Fingerprint, GroupId, TargetId, TargetState, WorkerId, WorkerStanding};

use super::{Refusal, Registry, RegistryAction, RegistryAnswer, Speaker};

impl Registry {
    /// A worker asks for a target. What is held stays with its holder, for any event; the holder that repeats the event
    /// gets its own epoch again, and one that was assigned the target takes it up with its first.
    pub(super) fn claim(
        &mut self,
        from: Speaker,
        target: TargetId,
        event: Fingerprint,
    ) -> Result<RegistryAnswer, Refusal> {
        let record = *self.speaker(from)?;
        if let Some(held) = self.claims.held(target) {
            return Ok(self.claim_again(held, from.worker, target, event));
        }
        match record.standing {
            WorkerStanding::Active => {}
            WorkerStanding::Draining | WorkerStanding::Stopping => return Err(Refusal::Draining),
            WorkerStanding::Dead(_) => return Err(Refusal::Superseded),
        }
        let group = self.groups.get(&record.group).ok_or(Refusal::UnknownGroup)?;
        self.is_given_out(target, group.settings.max_pickups)?;
        if let Some(limit) = group.is_full() {
            return Ok(RegistryAnswer::CapacityRejected(limit));
        }
        let claims_max = group.settings.claims_max;
        if record.claims_count >= claims_max.get() {
            return Ok(RegistryAnswer::CapacityRejected(ClaimLimit::ClaimsMax(claims_max)));
        }
        Ok(self.grant(target, from.worker, Some(event)))
    }

    fn claim_again(&mut self, held: Claim, asker: WorkerId, target: TargetId, event: Fingerprint) -> RegistryAnswer {
        let Claim { holder, epoch, .. } = held;
        match held.event {
            Some(known) if holder == asker && known == event => RegistryAnswer::Claimed { holder, epoch },
            None if holder == asker => {
                let claim = Claim { event: Some(event), ..held };
                self.claims.grant(target, claim);
                self.actions.push_back(RegistryAction::RecordClaim { target, claim });
                RegistryAnswer::Claimed { holder, epoch }
            }
            Some(_) | None => RegistryAnswer::AlreadyClaimed { holder, epoch },
        }
    }

    /// Finds a worker for a target. One that is held stays where it is.
    pub(super) fn assign(&mut self, id: GroupId, target: TargetId) -> Result<RegistryAnswer, Refusal> {
        if let Some(Claim { holder, epoch, .. }) = self.claims.held(target) {
            return Ok(RegistryAnswer::Claimed { holder, epoch });
        }
        let max_pickups = self.groups.get(&id).ok_or(Refusal::UnknownGroup)?.settings.max_pickups;
        self.is_given_out(target, max_pickups)?;
        let group = self.groups.get_mut(&id).ok_or(Refusal::UnknownGroup)?;
        if let Some(limit) = group.is_full() {
            return Ok(RegistryAnswer::CapacityRejected(limit));
        }
        let Some(worker) = group.choose() else {
            return Ok(RegistryAnswer::CapacityRejected(ClaimLimit::NoFreeWorker));
        };
        Ok(self.grant(target, worker, None))
    }

    fn is_given_out(&self, target: TargetId, max_pickups: NonZeroU32) -> Result<(), Refusal> {
        let stuck = self.claims.stuck(target, max_pickups);
        stuck.map_or(Ok(()), |(fenced, pickups)| Err(Refusal::Stuck { pickups, fenced }))
    }

    fn grant(&mut self, target: TargetId, holder: WorkerId, event: Option<Fingerprint>) -> RegistryAnswer {
        let epoch = self.next_epoch();
        let claim = Claim { holder, epoch, event };
        self.claims.grant(target, claim);
        self.count_claim(holder);
        self.actions.push_back(RegistryAction::RecordClaim { target, claim });
        RegistryAnswer::Claimed { holder, epoch }
    }

    /// A person has looked into what became of the holders: the target is as if it had lost none.
    pub(super) fn revive_target(&mut self, target: TargetId) -> RegistryAnswer {
        if let Some(Claim { holder, epoch, .. }) = self.claims.held(target) {
            return RegistryAnswer::AlreadyClaimed { holder, epoch };
        }
        if self.claims.forget(target).is_none() {
            return RegistryAnswer::Refused(Refusal::NotClaimed);
        }
        self.actions.push_back(RegistryAction::RemoveTarget { target });
        RegistryAnswer::Done
    }

    pub(super) fn release(&mut self, target: TargetId, epoch: crate::Epoch) -> RegistryAnswer {
        let Some(claim) = self.claims.held(target) else { return RegistryAnswer::Refused(Refusal::NotClaimed) };
        if claim.epoch != epoch {
            return RegistryAnswer::Refused(Refusal::OldEpoch { epoch: claim.epoch });
        }
        debug_assert!(matches!(self.claims.target(target).map(|known| known.state), Some(TargetState::Held(_))));
        self.claims.forget(target);
        let group = self.record_mut(claim.holder).map(|record| {
            record.claims_count -= 1;
            record.group
        });
        if let Some(group) = group.and_then(|group| self.groups.get_mut(&group)) {
            group.claims_count -= 1;
        }
        self.offer(claim.holder);
        self.actions.push_back(RegistryAction::RemoveTarget { target });
        RegistryAnswer::Done
    }
}
