//! Who gets a target: claim, assign, release.

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
        let group = self.groups.get_mut(&id).ok_or(Refusal::UnknownGroup)?;
        if let Some(limit) = group.is_full() {
            return Ok(RegistryAnswer::CapacityRejected(limit));
        }
        let Some(worker) = group.choose() else {
            return Ok(RegistryAnswer::CapacityRejected(ClaimLimit::NoFreeWorker));
        };
        Ok(self.grant(target, worker, None))
    }

    fn grant(&mut self, target: TargetId, holder: WorkerId, event: Option<Fingerprint>) -> RegistryAnswer {
        let epoch = self.next_epoch();
        let claim = Claim { holder, epoch, event };
        self.claims.grant(target, claim);
        self.count_claim(holder);
        self.actions.push_back(RegistryAction::RecordClaim { target, claim });
        RegistryAnswer::Claimed { holder, epoch }
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
