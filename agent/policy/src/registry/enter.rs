//! Who is there: groups and their instances, registrations, beats, orders, endings, and rows found at the start.

use alloc::vec::Vec;

use crate::claim::{AfterRelease, ReleasedClaim};
use crate::group::Group;
use crate::worker::{Registration, Turn, Worker};
use crate::{
    Advice, Class, Epoch, GroupId, GroupSettings, Moment, Reason, Target, TargetId, TargetState, Ticket, Verdict,
    WorkerId, WorkerLease, WorkerReport, WorkerStanding,
};

use super::{
    ClaimList, FoundWorker, GROUPS_MAX, Refusal, Registry, RegistryAction, RegistryAnswer, Speaker, WORKERS_MAX,
};

/// What becomes of the targets that a worker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// It was lost: they are unassigned, one pickup more.
    Lost,
    /// It ended by its own will: they are forgotten.
    Willing,
}

impl Registry {
    pub(super) fn add_group(&mut self, id: GroupId, settings: GroupSettings, instance: Epoch) {
        self.epoch = self.epoch.max(instance);
        let has_room = self.groups.len() < GROUPS_MAX;
        match self.groups.get_mut(&id) {
            Some(group) => group.settings = settings,
            None if has_room => _ = self.groups.insert(id, Group::new(settings, instance)),
            None => {}
        }
        let members: Vec<WorkerId> = self.members(id).collect();
        members.into_iter().for_each(|worker| self.offer(worker));
    }

    pub(super) fn open_group(&mut self, ticket: Ticket, group: GroupId) {
        if self.groups.contains_key(&group) {
            self.actions.push_back(RegistryAction::TakeGroupLock { ticket, group });
        } else {
            let refusal = self.unknown_group();
            self.answer(ticket, RegistryAnswer::Refused(refusal));
        }
    }

    /// A life of the executor begins: rows of older ones go, and what they held is fenced off.
    pub(super) fn begin_instance(&mut self, id: GroupId) -> RegistryAnswer {
        if !self.groups.contains_key(&id) {
            return RegistryAnswer::Refused(Refusal::UnknownGroup);
        }
        let instance = self.next_epoch();
        if let Some(group) = self.groups.get_mut(&id) {
            group.instance = instance;
        }
        self.actions.push_back(RegistryAction::RecordInstance { group: id, instance });
        let older: Vec<WorkerId> = self.members(id).collect();
        for worker in older {
            self.remove_worker(worker, Some(Reason::Fenced { by: instance }));
        }
        RegistryAnswer::Opened { instance }
    }

    /// Why a group is not known, although whoever asked told of it.
    fn unknown_group(&self) -> Refusal {
        if self.groups.len() >= GROUPS_MAX { Refusal::GroupsFull } else { Refusal::UnknownGroup }
    }

    fn members(&self, group: GroupId) -> impl Iterator<Item = WorkerId> + '_ {
        let members = self.workers.iter().filter(move |(_, record, _)| record.group == group);
        members.map(|(worker, _, _)| worker)
    }

    pub(super) fn register(
        &mut self,
        worker: WorkerId,
        id: GroupId,
        instance: Option<Epoch>,
        lease: Option<WorkerLease>,
        now: Moment,
    ) -> RegistryAnswer {
        let Some(group) = self.groups.get(&id) else { return RegistryAnswer::Refused(self.unknown_group()) };
        let (current, lease) = (group.instance, lease.unwrap_or(group.settings.lease));
        if instance.is_some_and(|instance| instance != current) {
            return RegistryAnswer::Refused(Refusal::OldInstance { instance: current });
        }
        if worker.0 >= WORKERS_MAX {
            return RegistryAnswer::Refused(Refusal::WorkersFull);
        }
        let epoch = self.next_epoch();
        if let Some(old) = self.record(worker).copied() {
            let claims = self.take_claims(worker, Release::Lost);
            let because = Reason::Fenced { by: epoch };
            self.withdraw(worker, old.group);
            self.actions.push_back(RegistryAction::FenceWorker { worker, epoch: old.epoch, claims, because });
        }
        let record = Worker::registered(id, epoch, lease, now);
        self.put(worker, record, Registration::new(current, lease, now));
        self.actions.push_back(RegistryAction::RecordWorker { worker, epoch });
        RegistryAnswer::Registered { epoch, instance: current }
    }

    pub(super) fn beat(&mut self, from: Speaker, report: WorkerReport, now: Moment) -> Advice {
        let Ok(record) = self.speaker(from) else { return Advice::Superseded };
        record.hear(report, now);
        let (advice, recorded, epoch) = (record.advice(), record.recorded, record.epoch);
        if recorded != Verdict::Alive {
            self.revive(from.worker, epoch, now);
        }
        advice
    }

    /// Records that a worker which was waited for or missed is alive.
    fn revive(&mut self, worker: WorkerId, epoch: Epoch, now: Moment) {
        let baseline = self.baseline;
        let Some((record, registration)) = self.workers.whole(worker) else { return };
        let judged = record.judge(registration, baseline, now);
        if judged.verdict != Verdict::Alive {
            return;
        }
        let Some(record) = self.record_mut(worker) else { return };
        let previous = core::mem::replace(&mut record.recorded, judged.verdict);
        let deadline = record.deadline(baseline);
        let (current, because) = (judged.verdict, judged.because);
        self.actions.push_back(RegistryAction::RecordVerdict { worker, epoch, previous, current, because });
        self.file(worker, deadline);
        self.offer(worker);
    }

    /// Gives a worker an order, which it hears with its next beat.
    pub(super) fn order(&mut self, ticket: Ticket, worker: WorkerId, turn: Turn) {
        let answer = match self.speaker(Speaker { worker, epoch: None }) {
            Err(refusal) => RegistryAnswer::Refused(refusal),
            Ok(record) => {
                let (before, epoch) = (record.standing, record.epoch);
                record.standing = before.after(turn);
                if record.standing != before {
                    self.actions.push_back(RegistryAction::RecordWorker { worker, epoch });
                    self.offer(worker);
                }
                RegistryAnswer::Done
            }
        };
        self.answer(ticket, answer);
    }

    pub(super) fn leave(&mut self, from: Speaker) -> Result<RegistryAnswer, Refusal> {
        let worker = from.worker;
        let record = self.speaker(from)?;
        record.standing = record.standing.after(Turn::Leave);
        record.recorded = Verdict::Ended;
        let epoch = record.epoch;
        let claims = self.take_claims(worker, Release::Willing);
        let because = Reason::AttemptEnded { class: Class::Stopped, order: None };
        self.actions.push_back(RegistryAction::RecordLeft { worker, epoch, claims, because });
        self.bury(worker);
        Ok(RegistryAnswer::Done)
    }

    /// Takes all claims from a worker, and names them.
    pub(super) fn take_claims(&mut self, worker: WorkerId, release: Release) -> ClaimList {
        let first = self.released.len() as u32;
        let group = self.record(worker).and_then(|record| self.groups.get(&record.group));
        let max_pickups = group.map_or(u32::MAX, |group| group.settings.max_pickups.get());
        for target in self.claims.of(worker) {
            let Some(known) = self.claims.forget(target) else { continue };
            let TargetState::Held(claim) = known.state else { continue };
            let (mut after, pickups) = (AfterRelease::Forgotten, known.pickups.saturating_add(1));
            if release == Release::Lost {
                after = AfterRelease::Unassigned { pickups, is_stuck: pickups >= max_pickups };
                let state = TargetState::Unassigned { fenced: claim.epoch };
                self.restore_target(target, Target { state, pickups });
            }
            self.released.push(ReleasedClaim { target, epoch: claim.epoch, after });
        }
        let count = self.released.len() as u32 - first;
        let group = self.record_mut(worker).map(|record| {
            record.claims_count = 0;
            record.group
        });
        if let Some(group) = group.and_then(|group| self.groups.get_mut(&group)) {
            group.claims_count -= count;
        }
        ClaimList { first, count }
    }

    /// Takes a dead worker out of what is due and offered; its row stays, up to a number of them.
    pub(super) fn bury(&mut self, worker: WorkerId) {
        self.wheel.remove(worker.0);
        let Some(record) = self.record(worker).copied() else { return };
        let Some(group) = self.groups.get_mut(&record.group) else { return };
        let Some((oldest, epoch)) = group.bury(worker, record.epoch) else { return };
        if self.record(oldest).is_some_and(|record| record.epoch == epoch) {
            self.remove_worker(oldest, None);
        }
    }

    fn remove_worker(&mut self, worker: WorkerId, because: Option<Reason>) {
        let claims = self.take_claims(worker, Release::Lost);
        let Some(record) = self.workers.take(worker) else { return };
        self.withdraw(worker, record.group);
        self.actions.push_back(RegistryAction::RemoveWorker { worker, epoch: record.epoch, claims, because });
    }

    fn withdraw(&mut self, worker: WorkerId, group: GroupId) {
        self.wheel.remove(worker.0);
        if let Some(group) = self.groups.get_mut(&group) {
            group.offer(worker, false);
        }
    }

    fn put(&mut self, worker: WorkerId, record: Worker, registration: Registration) {
        self.workers.put(worker, record, registration);
        self.file(worker, record.deadline(self.baseline));
        self.offer(worker);
    }

    pub(super) fn file(&mut self, worker: WorkerId, deadline: Option<Moment>) {
        if let Some(deadline) = deadline {
            self.wheel.file(worker.0, deadline, self.now);
        }
    }

    pub(super) fn restore_worker(&mut self, worker: WorkerId, found: FoundWorker) {
        if worker.0 >= WORKERS_MAX || self.record(worker).is_some() {
            return;
        }
        let FoundWorker { group, instance, epoch, lease, registered_at, heard_at, standing, recorded, report } = found;
        self.epoch = self.epoch.max(epoch);
        let record = Worker::registered(group, epoch, lease, heard_at).restored(standing, recorded, report);
        self.put(worker, record, Registration::new(instance, lease, registered_at));
        match standing {
            WorkerStanding::Active | WorkerStanding::Draining | WorkerStanding::Stopping => {}
            WorkerStanding::Dead(_) => self.bury(worker),
        }
    }

    /// Puts a target's row in. One whose holder has no row, or a dead one, would be held for ever: it is unassigned.
    pub(super) fn find_target(&mut self, target: TargetId, found: Target) {
        let TargetState::Held(claim) = found.state else { return self.restore_target(target, found) };
        self.epoch = self.epoch.max(claim.epoch);
        if self.record(claim.holder).is_some_and(|holder| !holder.standing.is_dead()) {
            self.restore_target(target, found);
            self.count_claim(claim.holder);
        } else {
            let state = TargetState::Unassigned { fenced: claim.epoch };
            self.restore_target(target, Target { state, ..found });
        }
    }

    fn restore_target(&mut self, target: TargetId, known: Target) {
        if let Some(target) = self.claims.restore(target, known) {
            self.actions.push_back(RegistryAction::RemoveTarget { target });
        }
    }

    /// Counts one more claim of the worker, and of its group.
    pub(super) fn count_claim(&mut self, worker: WorkerId) {
        let group = self.record_mut(worker).map(|record| {
            record.claims_count += 1;
            record.group
        });
        if let Some(group) = group.and_then(|group| self.groups.get_mut(&group)) {
            group.claims_count += 1;
        }
        self.offer(worker);
    }
}
