//! Workers, their groups, and who holds which target.
//!
//! All epochs (of instances, registrations and claims) come from one counter. So no epoch ever falls, whatever was
//! released, died or was forgotten, and the price of that promise is one number and not a row for each target for ever.

mod action;
mod enter;
mod event;
mod grant;
mod sweep;
mod view;
mod workers;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

pub use action::{ClaimList, Refusal, RegistryAction, RegistryAnswer, Sweep};
pub use event::{FoundWorker, RegistryEvent, Speaker, Ticket};
pub(crate) use sweep::LOOKED_AHEAD_MAX;
pub use view::{GroupView, WorkerView};
use workers::Workers;

use crate::claim::Claims;
use crate::group::Group;
use crate::wheel::Wheel;
use crate::worker::{Registration, Turn, Worker};
use crate::{
    Class, Death, Epoch, GroupId, Judgement, Moment, Reason, ReleasedClaim, Target, TargetId, Verdict, WorkerId,
    WorkerStanding,
};

/// Workers that may be registered: twice what the figures are measured with, in 256 MiB.
pub const WORKERS_MAX: u32 = 1 << 21;

/// Groups that may be known. A host has a handful; whoever makes up names fills no memory.
pub const GROUPS_MAX: usize = 10_000;

/// Decides about workers and claims. It is told events and the time, and gives out actions; it looks at nothing itself.
#[derive(Debug, Default)]
pub struct Registry {
    workers: Workers,
    groups: BTreeMap<GroupId, Group>,
    claims: Claims,
    wheel: Wheel,
    /// the highest epoch ever given
    epoch: Epoch,
    /// Bounded by its caller, who takes everything out after each call.
    actions: VecDeque<RegistryAction>,
    /// what the claim lists of `actions` name
    released: Vec<ReleasedClaim>,
    /// whose place among the deadlines has come, until they are looked at
    due: Vec<WorkerId>,
    /// what was found since nobody was due
    swept_so_far: Sweep,
    /// whom the latest sweep found something about
    swept: Vec<WorkerId>,
    /// no silence from before this moment counts
    baseline: Moment,
    now: Moment,
}

impl Registry {
    /// Takes in one event. Telling it twice does no harm.
    pub fn handle_event(&mut self, event: RegistryEvent, now: Moment) {
        self.begin(now);
        match event {
            RegistryEvent::GroupAdded { group, settings, instance } => self.add_group(group, settings, instance),
            RegistryEvent::GroupOpenAsked { ticket, group } => self.open_group(ticket, group),
            RegistryEvent::GroupLockTaken { ticket, group } => {
                let answer = self.begin_instance(group);
                self.answer(ticket, answer);
            }
            RegistryEvent::GroupLockRefused { ticket, group: _ } => {
                self.answer(ticket, RegistryAnswer::Refused(Refusal::GroupLocked));
            }
            RegistryEvent::WorkerRegistered { ticket, worker, group, instance, lease } => {
                let answer = self.register(worker, group, instance, lease, now);
                self.answer(ticket, answer);
            }
            RegistryEvent::BeatHeard { ticket, from, report } => {
                let advice = self.beat(from, report, now);
                self.answer(ticket, RegistryAnswer::Advised(advice));
            }
            RegistryEvent::ClaimAsked { ticket, from, target, event } => {
                let answer = self.claim(from, target, event).unwrap_or_else(RegistryAnswer::Refused);
                self.answer(ticket, answer);
            }
            RegistryEvent::AssignAsked { ticket, group, target } => {
                let answer = self.assign(group, target).unwrap_or_else(RegistryAnswer::Refused);
                self.answer(ticket, answer);
            }
            RegistryEvent::ReleaseAsked { ticket, target, epoch } => {
                let answer = self.release(target, epoch);
                self.answer(ticket, answer);
            }
            RegistryEvent::ReviveAsked { ticket, target } => {
                let answer = self.revive_target(target);
                self.answer(ticket, answer);
            }
            RegistryEvent::DrainAsked { ticket, worker } => self.order(ticket, worker, Turn::Drain),
            RegistryEvent::StopAsked { ticket, worker } => self.order(ticket, worker, Turn::Stop),
            RegistryEvent::WorkerLeft { ticket, from } => {
                let answer = self.leave(from).unwrap_or_else(RegistryAnswer::Refused);
                self.answer(ticket, answer);
            }
            RegistryEvent::EpochRestored { epoch } => self.epoch = self.epoch.max(epoch),
            RegistryEvent::WorkerRestored { worker, found } => self.restore_worker(worker, found),
            RegistryEvent::TargetRestored { target, state, pickups } => {
                self.find_target(target, Target { state, pickups });
            }
        }
    }

    /// Declares dead whose lease ran out. Early or repeated calls do nothing. Nobody doubts here that they are silent.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.gather_due(self.baseline, now);
        self.sweep(self.baseline, now);
    }

    /// Answers when to call [`handle_timeout`](Self::handle_timeout) next; `None` if nothing happens by itself.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        if self.due.is_empty() { self.wheel.next() } else { Some(self.now) }
    }

    /// Takes out the next action. They are to be carried out in this order.
    pub fn poll_action(&mut self) -> Option<RegistryAction> {
        self.actions.pop_front()
    }

    /// The claims that an action names. They are known until the first call after every action was taken out.
    #[must_use]
    pub fn released(&self, list: ClaimList) -> &[ReleasedClaim] {
        let first = list.first as usize;
        self.released.get(first..first + list.count as usize).unwrap_or_default()
    }

    /// Whom the latest sweep that found something was about, up to a limit.
    #[must_use]
    pub fn swept(&self) -> &[WorkerId] {
        &self.swept
    }

    /// Answers all that is known of one worker, as of the latest moment that was told.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<WorkerView> {
        let (record, registration) = self.workers.whole(worker)?;
        Some(view(worker, record, registration, self.baseline, self.now))
    }

    /// Reads the records that a batch of events is about, and answers how many there are.
    ///
    /// A million records lie in no cache, and one beat after the other waits for the memory each time. Read one behind
    /// the other, before the events are told, the waits overlap: measured, a beat costs a quarter.
    #[must_use]
    pub fn known_count(&self, workers: impl Iterator<Item = WorkerId>) -> usize {
        workers.filter(|worker| self.record(*worker).is_some()).count()
    }

    /// Answers all that is known of every worker, all of one moment, in the order of their ids.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView> + '_ {
        let whole = self.workers.iter();
        whole.map(|(worker, record, registration)| view(worker, record, registration, self.baseline, self.now))
    }

    /// Answers what is known of a target.
    #[must_use]
    pub fn target(&self, target: TargetId) -> Option<Target> {
        self.claims.target(target).copied()
    }

    /// Answers what a worker holds.
    pub fn held_by(&self, worker: WorkerId) -> impl Iterator<Item = (TargetId, Epoch)> + '_ {
        let held = self.claims.of(worker).into_iter();
        held.filter_map(|target| Some((target, self.claims.held(target)?.epoch)))
    }

    /// Answers every target that is known, in the order of their ids.
    pub fn targets(&self) -> impl Iterator<Item = (TargetId, Target)> + '_ {
        self.claims.iter().map(|(id, target)| (id, *target))
    }

    /// Answers what is known of a group.
    #[must_use]
    pub fn group(&self, group: GroupId) -> Option<GroupView> {
        let Group { settings, instance, claims_count, .. } = self.groups.get(&group)?;
        Some(GroupView { group, instance: *instance, settings: *settings, claims_count: *claims_count })
    }

    /// No silence from before this moment counts, as of the latest sweep.
    #[must_use]
    pub fn baseline(&self) -> Moment {
        self.baseline
    }

    /// The highest epoch ever given, which the store has to keep.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn begin(&mut self, now: Moment) {
        self.now = self.now.max(now);
        if self.actions.is_empty() {
            self.released.clear();
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: RegistryAnswer) {
        self.actions.push_back(RegistryAction::Answer { ticket, answer });
    }

    fn next_epoch(&mut self) -> Epoch {
        self.epoch = Epoch(self.epoch.0 + 1);
        self.epoch
    }

    fn record(&self, worker: WorkerId) -> Option<&Worker> {
        self.workers.record(worker)
    }

    fn record_mut(&mut self, worker: WorkerId) -> Option<&mut Worker> {
        self.workers.record_mut(worker)
    }

    /// The record of whoever speaks, unless it is dead or another registration has its name.
    fn speaker(&mut self, from: Speaker) -> Result<&mut Worker, Refusal> {
        let record = self.record_mut(from.worker).ok_or(Refusal::UnknownWorker)?;
        let is_present = from.epoch.is_none_or(|epoch| epoch == record.epoch);
        if is_present && !record.standing.is_dead() { Ok(record) } else { Err(Refusal::Superseded) }
    }

    /// Says in the worker's group whether it has room for a claim.
    fn offer(&mut self, worker: WorkerId) {
        let Some((record, registration)) = self.workers.whole(worker) else { return };
        let Some(group) = self.groups.get_mut(&record.group) else { return };
        let is_counted_on = match record.standing {
            WorkerStanding::Active => record.recorded != Verdict::Missing && registration.instance == group.instance,
            WorkerStanding::Draining | WorkerStanding::Stopping | WorkerStanding::Dead(_) => false,
        };
        group.offer(worker, is_counted_on && record.claims_count < group.settings.claims_max.get());
    }
}

fn view(worker: WorkerId, record: &Worker, registration: &Registration, baseline: Moment, now: Moment) -> WorkerView {
    let Judgement { verdict, because } = match record.standing {
        WorkerStanding::Active
        | WorkerStanding::Draining
        | WorkerStanding::Stopping
        | WorkerStanding::Dead(Death::Silent) => record.judge(registration, baseline, now),
        WorkerStanding::Dead(Death::Left) => {
            Judgement { verdict: Verdict::Ended, because: Reason::AttemptEnded { class: Class::Stopped, order: None } }
        }
    };
    WorkerView {
        worker,
        group: record.group,
        instance: registration.instance,
        epoch: record.epoch,
        standing: record.standing,
        verdict,
        because,
        recorded: record.recorded,
        lease: record.lease(registration),
        registered_at: registration.registered_at,
        heard_at: (record.sequence > 0).then_some(record.heard_at),
        silence: now.since(record.silent_since(baseline)),
        baseline: (record.silent_since(baseline) > record.heard_at).then_some(baseline),
        sequence: record.sequence,
        state: record.state(),
        active_job: record.active_job(),
        errors: record.errors,
        claims_count: record.claims_count,
        next: record.deadline(baseline),
        at: now,
    }
}
