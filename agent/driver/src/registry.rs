//! Workers and claims with their names: questions become the policy's events, its actions become rows and replies.
//!
//! It decides nothing, and it does not know where the rows go: the driver puts them into the store, and
//! [`MemoryRegistry`] drops them.

mod beats;
pub mod conformance;
mod embed;
mod names;
mod notes;
mod restore;
mod rows;
mod status;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_policy::{
    Epoch, GroupId, GroupSettings, Moment, Registry, RegistryEvent, Speaker, TargetId, Ticket, WorkerId, WorkerLease,
    WorkerReport,
};
use latido_protocol::journal::Body;
use latido_protocol::registry::{Question, Registration, Reply, TargetName, WorkerBeat};
use latido_protocol::{SubjectName, WallTime};
use latido_store::RegistryWrite;

pub use embed::{MemoryRegistry, StoredRegistry, WorkerRegistry};
pub(crate) use status::subject;

use crate::translate::fingerprint;
use names::Names;
use notes::{Note, Notes};

/// A beat every 30 s where nobody says otherwise.
pub const INTERVAL: Duration = Duration::from_secs(30);
/// Six missed intervals, 180 s: a worker that waits for a slow disk or a long collection of garbage is not dead yet.
pub const MISSED: NonZeroU32 = NonZeroU32::MIN.saturating_add(5);
/// Holders that a target may lose, as many as a job may: what ended five of them ends the sixth as well.
pub const MAX_PICKUPS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);
/// Time for the first beat: a program that loads for longer says so.
pub const START_WITHIN: Duration = Duration::from_secs(60);

/// The settings of a group that the config does not name.
///
/// # Panics
/// Never: the interval is shorter than six of it.
pub fn default_group() -> GroupSettings {
    match WorkerLease::after_missed(INTERVAL, MISSED, START_WITHIN) {
        Some(lease) => GroupSettings { capacity: None, claims_max: NonZeroU32::MIN, max_pickups: MAX_PICKUPS, lease },
        None => unreachable!("an interval is shorter than six of it"),
    }
}

/// What came of the registry's actions.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// for the store, in this order
    pub(crate) writes: Vec<RegistryWrite>,
    /// for the journal
    pub(crate) entries: Vec<Body>,
    /// for whoever asked
    pub(crate) replies: Vec<(u64, Reply)>,
    /// groups whose lock is to be looked at
    pub(crate) locks: Vec<(u64, SubjectName)>,
    /// workers whose verdict changed
    pub(crate) changed: Vec<SubjectName>,
}

/// Names on one side, the policy's numbers on the other, and the texts between.
#[derive(Debug)]
pub(crate) struct Registrar {
    groups: Names<SubjectName>,
    workers: Names<SubjectName>,
    targets: Names<TargetName>,
    settings: BTreeMap<SubjectName, GroupSettings>,
    notes: Notes,
    /// what targets were claimed for
    events: BTreeMap<TargetId, String>,
    /// the texts of questions, until they are answered: only what the policy took is kept
    asked: BTreeMap<u64, Asked>,
    /// beats are due to be kept; they stay so while the store is away
    beats_are_due: bool,
    beats_given_at: Option<Moment>,
    /// the first whose beat is still to be given in this round, in which everybody's is
    round: Option<WorkerId>,
    /// workers of the round that the next batch has room for
    round_step: u32,
    /// numbers that may be free when all actions are carried
    leaving: Vec<Leaving>,
    written_epoch: Epoch,
    written_at: Option<Moment>,
    /// no silence from before this moment counts, as it was written last
    written_baseline: Moment,
    line: Line,
}

#[derive(Debug)]
enum Asked {
    Registration(WorkerId, Note),
    Beat { worker: WorkerId, at: WallTime, state: Option<String>, active_job: Option<String> },
    Claim(TargetId, String),
}

#[derive(Clone, Copy, Debug)]
enum Leaving {
    Worker(WorkerId),
    Target(TargetId),
    Group(GroupId),
}

/// The listening time line over all lives of the agent: where this life's began on it.
#[derive(Clone, Copy, Debug)]
struct Line {
    began_at: Moment,
    listened: Duration,
}

impl Line {
    fn millis(self, moment: Moment) -> u64 {
        let listened = (self.listened + moment.since(self.began_at)).saturating_sub(self.began_at.since(moment));
        u64::try_from(listened.as_millis()).unwrap_or(u64::MAX)
    }

    fn moment(self, millis: u64) -> Moment {
        let at = Duration::from_millis(millis);
        self.began_at.after(at.saturating_sub(self.listened)).before(self.listened.saturating_sub(at))
    }
}

/// A restart has to know for so long how long ago silence began to count: longer than ordinary ttls. Whoever has a longer one
/// gets the time of a later restart as a present.
const BASELINE_KEPT_FOR: Duration = Duration::from_secs(3600);

/// How long a beat may wait for the disk, and how much listening time a restart may lose.
pub(crate) const WRITE_EVERY: Duration = Duration::from_secs(1);

impl Registrar {
    /// Knows nobody; `now` is where this life's line begins.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            groups: Names::default(),
            workers: Names::default(),
            targets: Names::default(),
            settings: BTreeMap::new(),
            notes: Notes::default(),
            events: BTreeMap::new(),
            asked: BTreeMap::new(),
            beats_are_due: false,
            beats_given_at: None,
            round: None,
            round_step: 0,
            leaving: Vec::new(),
            written_epoch: Epoch(0),
            written_at: None,
            written_baseline: Moment::ORIGIN,
            line: Line { began_at: now, listened: Duration::ZERO },
        }
    }

    /// Takes in the settings of the config's groups.
    pub(crate) fn set_groups(&mut self, settings: BTreeMap<SubjectName, GroupSettings>) -> Vec<RegistryEvent> {
        self.settings = settings;
        let names: Vec<SubjectName> = self.settings.keys().cloned().collect();
        names.into_iter().map(|name| self.group_added(&name)).collect()
    }

    fn group_added(&mut self, name: &SubjectName) -> RegistryEvent {
        let settings = self.settings.get(name).copied().unwrap_or_else(default_group);
        RegistryEvent::GroupAdded { group: GroupId(self.groups.add(name.clone())), settings, instance: Epoch(0) }
    }

    /// The group's number, with the event that makes it known where it is not.
    fn group(&mut self, name: &SubjectName, events: &mut Vec<RegistryEvent>) -> GroupId {
        if self.groups.number(name).is_none() {
            events.push(self.group_added(name));
            self.leaving.push(Leaving::Group(GroupId(self.groups.add(name.clone()))));
        }
        GroupId(self.groups.add(name.clone()))
    }

    /// Turns a question into events, or answers it where nobody of that name is known.
    pub(crate) fn ask(&mut self, ticket: u64, question: Question, wall: WallTime) -> Result<Vec<RegistryEvent>, Reply> {
        let mut events = Vec::new();
        let number = Ticket(ticket);
        let event = match question {
            Question::OpenGroup { group } => {
                RegistryEvent::GroupOpenAsked { ticket: number, group: self.group(&group, &mut events) }
            }
            Question::Register(registration) => self.register(ticket, registration, wall, &mut events)?,
            Question::Beat(beat) => self.beat(number, beat, wall)?,
            Question::Claim { target, event, worker, epoch } => {
                let from = self.speaker(&worker, epoch)?;
                let target = TargetId(self.targets.add(target));
                self.leaving.push(Leaving::Target(target));
                let event = String::from(event);
                let fingerprint = fingerprint(&event);
                self.asked.insert(ticket, Asked::Claim(target, event));
                RegistryEvent::ClaimAsked { ticket: number, from, target, event: fingerprint }
            }
            Question::Assign { target, group } => {
                // An assignment to workers that nobody knows makes no group: its name is a slip.
                let group = self.groups.number(&group).map(GroupId).ok_or_else(|| unknown_group(&group))?;
                let target = TargetId(self.targets.add(target));
                self.leaving.push(Leaving::Target(target));
                RegistryEvent::AssignAsked { ticket: number, group, target }
            }
            Question::Release { target, epoch } => {
                let target = self.targets.number(&target).map(TargetId).ok_or(Reply::NotClaimed)?;
                RegistryEvent::ReleaseAsked { ticket: number, target, epoch: Epoch(epoch) }
            }
            Question::Revive { target } => {
                let target = self.targets.number(&target).map(TargetId).ok_or(Reply::NotClaimed)?;
                RegistryEvent::ReviveAsked { ticket: number, target }
            }
            Question::Drain { worker } => {
                RegistryEvent::DrainAsked { ticket: number, worker: self.speaker(&worker, None)?.worker }
            }
            Question::Stop { worker } => {
                RegistryEvent::StopAsked { ticket: number, worker: self.speaker(&worker, None)?.worker }
            }
            Question::Leave { worker, epoch } => {
                RegistryEvent::WorkerLeft { ticket: number, from: self.speaker(&worker, epoch)? }
            }
        };
        events.push(event);
        Ok(events)
    }

    fn speaker(&self, worker: &SubjectName, epoch: Option<u64>) -> Result<Speaker, Reply> {
        let worker = self.worker(worker).ok_or(Reply::UnknownWorker)?;
        Ok(Speaker { worker, epoch: epoch.map(Epoch) })
    }

    fn register(
        &mut self,
        ticket: u64,
        asked: Registration,
        wall: WallTime,
        events: &mut Vec<RegistryEvent>,
    ) -> Result<RegistryEvent, Reply> {
        let settings = self.settings.get(&asked.group).copied().unwrap_or_else(default_group);
        let lease = lease(&asked, settings.lease)?;
        let Registration { worker, group, instance, host, pid, .. } = asked;
        let (group, worker) = (self.group(&group, events), WorkerId(self.workers.add(worker)));
        self.leaving.push(Leaving::Worker(worker));
        let note = Note { registered_at: wall, beat_at: None, host, pid, state: None, active_job: None };
        self.asked.insert(ticket, Asked::Registration(worker, note));
        let instance = instance.map(Epoch);
        Ok(RegistryEvent::WorkerRegistered { ticket: Ticket(ticket), worker, group, instance, lease: Some(lease) })
    }

    fn beat(&mut self, ticket: Ticket, beat: WorkerBeat, wall: WallTime) -> Result<RegistryEvent, Reply> {
        let WorkerBeat { worker, epoch, sequence, state, active_job, errors } = beat;
        let (state, active_job) = (state.map(String::from), active_job.map(String::from));
        // Whoever names an epoch was registered once, and its row has gone: another instance has begun.
        let superseded = epoch.map(|_| Reply::Advised { advice: latido_protocol::attempt::Advice::Superseded });
        let from = self.speaker(&worker, epoch).map_err(|unknown| superseded.unwrap_or(unknown))?;
        let report = WorkerReport {
            sequence,
            state: state.as_ref().map(fingerprint),
            active_job: active_job.as_ref().map(fingerprint),
            errors: u32::try_from(errors).unwrap_or(u32::MAX),
        };
        self.asked.insert(ticket.0, Asked::Beat { worker: from.worker, at: wall, state, active_job });
        Ok(RegistryEvent::BeatHeard { ticket, from, report })
    }

    /// The answer to whether the group's lock is held by whoever asked.
    pub(crate) fn lock_seen(&self, ticket: u64, group: &SubjectName, is_held: bool) -> Option<RegistryEvent> {
        let (ticket, group) = (Ticket(ticket), GroupId(self.groups.number(group)?));
        Some(if is_held {
            RegistryEvent::GroupLockTaken { ticket, group }
        } else {
            RegistryEvent::GroupLockRefused { ticket, group }
        })
    }

    /// The number of a worker's name.
    pub(crate) fn worker(&self, name: &SubjectName) -> Option<WorkerId> {
        self.workers.number(name).map(WorkerId)
    }

    /// The name of a worker's number.
    pub(crate) fn name(&self, worker: WorkerId) -> Option<&SubjectName> {
        self.workers.name(worker.0)
    }

    /// The host that a worker says it is on.
    pub(crate) fn host(&self, worker: WorkerId) -> Option<String> {
        self.notes.of(worker)?.host.clone()
    }

    /// Frees the numbers of whom nobody knows any more, and answers which workers those were. Called when every action
    /// has been carried.
    pub(crate) fn settle(&mut self, registry: &Registry) -> Vec<WorkerId> {
        let mut gone = Vec::new();
        for leaving in std::mem::take(&mut self.leaving) {
            match leaving {
                Leaving::Worker(worker) if registry.worker(worker).is_none() => {
                    self.workers.remove(worker.0);
                    self.notes.remove(worker);
                    gone.push(worker);
                }
                Leaving::Group(group) if registry.group(group).is_none() => self.groups.remove(group.0),
                Leaving::Target(target) if registry.target(target).is_none() => {
                    self.targets.remove(target.0);
                    self.events.remove(&target);
                }
                Leaving::Worker(_) | Leaving::Target(_) | Leaving::Group(_) => {}
            }
        }
        gone
    }

    /// When what changes by itself is to be written, as far as anything does.
    pub(crate) fn write_at(&self, registry: &Registry, now: Moment) -> Option<Moment> {
        let next = |last: Option<Moment>| last.map_or(now, |last| last.after(WRITE_EVERY));
        let beats = self.beats_wait().then(|| if self.beats_are_many() { now } else { next(self.beats_given_at) });
        self.waits(registry).then(|| next(self.written_at)).into_iter().chain(beats).min()
    }

    /// Answers whether beats wait for the disk, or a lease runs: how long was listened is a part of its silence, which
    /// has to add up over restarts.
    fn waits(&self, registry: &Registry) -> bool {
        self.beats_wait() || registry.poll_timeout().is_some()
    }
}

/// Answers whether the change is made again by itself: how long was listened replaces the last.
pub(crate) fn is_passing(write: &RegistryWrite) -> bool {
    match write {
        RegistryWrite::Listened { .. } => true,
        RegistryWrite::Group(_)
        | RegistryWrite::Worker(_)
        | RegistryWrite::Reap { .. }
        | RegistryWrite::RemoveWorker { .. }
        | RegistryWrite::Target(_)
        | RegistryWrite::RemoveTarget(_)
        | RegistryWrite::Epoch(_) => false,
    }
}

fn unknown_group(group: &SubjectName) -> Reply {
    refused(format!("no group {group} is known: nobody opened it, no worker registered in it, and the config has none"))
}

fn refused(because: String) -> Reply {
    Reply::Refused { because }
}

/// The lease that was asked for: what it does not say is the group's.
fn lease(asked: &Registration, group: WorkerLease) -> Result<WorkerLease, Reply> {
    let interval = asked.interval_s.map_or(group.interval(), |span| span.0);
    let start_within = asked.start_within_s.map_or(group.start_within(), |span| span.0);
    let missed = asked.missed.and_then(|missed| interval.checked_mul(missed.get()));
    let ttl = asked.ttl_s.map(|span| span.0).or(missed).unwrap_or_else(|| {
        // An interval of its own keeps the number of missed ones that the group allows.
        let kept = group.ttl().as_secs_f64() / group.interval().as_secs_f64();
        if asked.interval_s.is_some() && kept.is_finite() { interval.mul_f64(kept) } else { group.ttl() }
    });
    WorkerLease::new(interval, ttl, start_within).ok_or_else(|| {
        refused(format!(
            "a ttl of {} s leaves no room for a beat every {} s",
            ttl.as_secs_f64(),
            interval.as_secs_f64()
        ))
    })
}
