//! The registry's actions become rows, entries and replies with names.

use std::time::Duration;

use latido_policy::{
    Advice, AfterRelease, Claim, ClaimLimit, ClaimList, Death, Epoch, Moment, Reason, Refusal, Registry,
    RegistryAction, RegistryAnswer, ReleasedClaim, Sweep, TargetId, TargetState, Verdict, WorkerId, WorkerStanding,
    WorkerView,
};
use latido_protocol::attempt;
use latido_protocol::journal::Body;
use latido_protocol::registry::Reply;
use latido_protocol::status::SubjectKind;
use latido_protocol::{Span, SubjectName};
use latido_store::{BeatRow, DEAD_SILENT, GroupRow, RegistryWrite, TargetRow, WorkerRow};

use super::{Asked, BASELINE_KEPT_FOR, Carried, Leaving, Registrar, WRITE_EVERY, refused};
use crate::translate;

/// How the standings are stored.
pub(super) const STANDINGS: [(WorkerStanding, &str); 5] = [
    (WorkerStanding::Active, "active"),
    (WorkerStanding::Draining, "draining"),
    (WorkerStanding::Stopping, "stopping"),
    (WorkerStanding::Dead(Death::Silent), DEAD_SILENT),
    (WorkerStanding::Dead(Death::Left), "dead-left"),
];

fn standing(standing: WorkerStanding) -> String {
    let found = STANDINGS.iter().find(|(known, _)| *known == standing);
    found.map(|(_, text)| (*text).to_owned()).unwrap_or_default()
}

impl Registrar {
    pub(crate) fn carry(&mut self, action: RegistryAction, registry: &Registry, carried: &mut Carried) {
        match action {
            RegistryAction::TakeGroupLock { ticket, group } => {
                let name = self.groups.name(group.0).cloned();
                carried.locks.extend(name.map(|name| (ticket.0, name)));
            }
            RegistryAction::RecordInstance { group, instance } => {
                let name = self.groups.name(group.0).map(ToString::to_string);
                let row = name.map(|name| GroupRow { name, instance: instance.0 });
                carried.writes.extend(row.map(RegistryWrite::Group));
            }
            RegistryAction::RecordWorker { worker, epoch: _ } => self.write_worker(worker, registry, carried),
            RegistryAction::RecordVerdict { worker, epoch, previous, current, because } => {
                self.tell(worker, epoch, (previous, current), &because, carried);
                // Of a death the reap writes the verdict, with its condition.
                if registry.worker(worker).is_some_and(|view| !view.standing.is_dead()) {
                    self.write_worker(worker, registry, carried);
                }
            }
            RegistryAction::ReapWorker { worker, instance, epoch, heard_at, claims, group: _, because: _ } => {
                let view = registry.worker(worker);
                let beat = view.as_ref().map(|view| self.beat_row(view)).unwrap_or_default();
                let name = self.workers.name(worker.0).map(ToString::to_string);
                carried.writes.extend(name.map(|name| RegistryWrite::Reap {
                    name,
                    instance: instance.0,
                    epoch: epoch.0,
                    beat: BeatRow { heard_ms: self.line.millis(heard_at), ..beat },
                    verdict: view.map_or(Verdict::Stale, |view| view.recorded).to_string(),
                }));
                self.expired(worker, claims, registry, carried);
            }
            RegistryAction::RecordLeft { worker, epoch, claims, because } => {
                self.tell(worker, epoch, (Verdict::Alive, Verdict::Ended), &because, carried);
                self.release(claims, registry, carried);
                self.write_worker(worker, registry, carried);
            }
            RegistryAction::FenceWorker { worker, claims, epoch: _, because: _ } => {
                self.release(claims, registry, carried);
                self.expired(worker, claims, registry, carried);
            }
            RegistryAction::RemoveWorker { worker, epoch, claims, because: _ } => {
                self.remove(worker, epoch, claims, registry, carried);
            }
            RegistryAction::RecordClaim { target, claim } => self.write_claim(target, claim, registry, carried),
            RegistryAction::RemoveTarget { target } => {
                let name = self.targets.name(target.0).map(ToString::to_string);
                carried.writes.extend(name.map(RegistryWrite::RemoveTarget));
                self.leaving.push(Leaving::Target(target));
            }
            RegistryAction::ReportSweep(sweep) => self.report(sweep, registry, carried),
            RegistryAction::Answer { ticket, answer } => {
                self.keep(ticket.0, answer, registry, carried);
                let reply = self.reply(answer);
                carried.replies.push((ticket.0, reply));
            }
        }
    }

    fn remove(
        &mut self,
        worker: WorkerId,
        epoch: Epoch,
        claims: ClaimList,
        registry: &Registry,
        carried: &mut Carried,
    ) {
        self.expired(worker, claims, registry, carried);
        self.release(claims, registry, carried);
        let name = self.workers.name(worker.0).map(ToString::to_string);
        carried.writes.extend(name.map(|name| RegistryWrite::RemoveWorker { name, epoch: epoch.0 }));
        self.leaving.push(Leaving::Worker(worker));
    }

    /// Tells the journal of a change of verdict.
    fn tell(
        &self,
        worker: WorkerId,
        epoch: Epoch,
        (previous, current): (Verdict, Verdict),
        because: &Reason,
        carried: &mut Carried,
    ) {
        let Some(subject) = self.workers.name(worker.0).cloned() else { return };
        carried.changed.push(subject.clone());
        carried.entries.push(Body::Transition {
            subject,
            kind: SubjectKind::Worker,
            attempt: 0,
            epoch: epoch.0,
            previous: translate::verdict(previous),
            current: translate::verdict(current),
            reason: because.to_string(),
        });
    }

    /// Writes the newest row of a worker, which may have changed again since the action.
    fn write_worker(&mut self, worker: WorkerId, registry: &Registry, carried: &mut Carried) {
        let (Some(view), Some(name)) = (registry.worker(worker), self.workers.name(worker.0)) else { return };
        // The answer to its first registration writes it, with what it said of itself.
        let Some(note) = self.notes.of(worker) else { return };
        let Some(group) = self.groups.name(view.group.0) else { return };
        carried.writes.push(RegistryWrite::Worker(WorkerRow {
            name: name.to_string(),
            group: group.to_string(),
            instance: view.instance.0,
            epoch: view.epoch.0,
            standing: standing(view.standing),
            verdict: view.recorded.to_string(),
            interval_ms: millis(view.lease.interval()),
            ttl_ms: millis(view.lease.ttl()),
            start_ms: millis(view.lease.start_within()),
            host: note.host.clone(),
            pid: note.pid,
            registered_ms: note.registered_at.as_millis(),
            beat: self.beat_row(&view),
        }));
    }

    fn beat_row(&self, view: &WorkerView) -> BeatRow {
        let note = self.notes.of(view.worker);
        BeatRow {
            at_ms: note.and_then(|note| note.beat_at).filter(|_| view.sequence > 0).map(|at| at.as_millis()),
            heard_ms: self.line.millis(view.heard_at.unwrap_or(view.registered_at)),
            sequence: view.sequence,
            state: note.and_then(|note| note.state.clone()),
            active_job: note.and_then(|note| note.active_job.clone()),
            errors: view.errors.into(),
        }
    }

    fn write_claim(&mut self, target: TargetId, claim: Claim, registry: &Registry, carried: &mut Carried) {
        let asked = self.asked.values().find_map(|asked| match asked {
            Asked::Claim(asked, event) if *asked == target && claim.event == Some(translate::fingerprint(event)) => {
                Some(event.clone())
            }
            Asked::Claim(..) | Asked::Registration(..) | Asked::Beat { .. } => None,
        });
        match asked {
            Some(event) => _ = self.events.insert(target, event),
            None if claim.event.is_none() => _ = self.events.remove(&target),
            None => {}
        }
        let (Some(name), Some(holder)) = (self.targets.name(target.0), self.workers.name(claim.holder.0)) else {
            return;
        };
        carried.writes.push(RegistryWrite::Target(TargetRow {
            name: name.to_string(),
            holder: Some(holder.to_string()),
            epoch: claim.epoch.0,
            event: claim.event.and_then(|_| self.events.get(&target).cloned()),
            pickups: registry.target(target).map_or(0, |known| known.pickups),
        }));
    }

    /// Writes what became of the targets that a worker held.
    fn release(&mut self, claims: ClaimList, registry: &Registry, carried: &mut Carried) {
        for ReleasedClaim { target, epoch, after } in registry.released(claims) {
            let Some(name) = self.targets.name(target.0).map(ToString::to_string) else { continue };
            carried.writes.push(match after {
                AfterRelease::Unassigned { pickups, is_stuck: _ } => RegistryWrite::Target(TargetRow {
                    name,
                    holder: None,
                    epoch: epoch.0,
                    event: None,
                    pickups: *pickups,
                }),
                AfterRelease::Forgotten => RegistryWrite::RemoveTarget(name),
            });
            self.events.remove(target);
            self.leaving.push(Leaving::Target(*target));
        }
    }

    /// Tells the journal of every claim that its holder lost.
    fn expired(&self, worker: WorkerId, claims: ClaimList, registry: &Registry, carried: &mut Carried) {
        let Some(subject) = self.workers.name(worker.0) else { return };
        // Whoever was fenced off had not been silent for too long.
        let dead = registry.worker(worker).filter(|view| view.standing.is_dead());
        let silence = dead.map_or(Duration::ZERO, |view| view.silence);
        for claim in registry.released(claims) {
            let Some(target) = self.targets.name(claim.target.0) else { continue };
            let AfterRelease::Unassigned { pickups, is_stuck } = claim.after else { continue };
            carried.entries.push(Body::LeaseExpired {
                subject: subject.clone(),
                attempt: 0,
                epoch: claim.epoch.0,
                previous_holder: Some(self.holder(worker, subject)),
                target: Some(target.clone()),
                silence_s: Span(silence),
                pickups,
            });
            if is_stuck {
                let detail = format!("target {target} lost {pickups} holders: `latido release {target} --stuck`");
                carried.entries.push(Body::Agent { what: "target-stuck".to_owned(), detail });
            }
        }
    }

    /// Who a worker is, as it is told beside what it held.
    fn holder(&self, worker: WorkerId, name: &SubjectName) -> String {
        let note = self.notes.of(worker);
        let host = note.and_then(|note| note.host.as_ref()).map(|host| format!(" on {host}"));
        let pid = note.and_then(|note| note.pid).map(|pid| format!(", pid {pid}"));
        format!("worker {name}{}{}", host.unwrap_or_default(), pid.unwrap_or_default())
    }

    fn report(&self, sweep: Sweep, registry: &Registry, carried: &mut Carried) {
        let Sweep { missing_count, dead_count, released_count, stuck_count } = sweep;
        let names: Vec<&str> =
            registry.swept().iter().filter_map(|worker| Some(self.workers.name(worker.0)?.as_str())).collect();
        let names = names.join(", ");
        tracing::warn!(
            missing_count,
            dead_count,
            released_count,
            stuck_count,
            workers = names,
            "a sweep found silent workers"
        );
        let detail = format!(
            "{missing_count} workers missing, {dead_count} declared dead, {released_count} claims released, \
             {stuck_count} targets stuck: {names}"
        );
        carried.entries.push(Body::Agent { what: "sweep".to_owned(), detail });
    }

    /// Keeps the texts of a question that the policy took.
    fn keep(&mut self, ticket: u64, answer: RegistryAnswer, registry: &Registry, carried: &mut Carried) {
        match (self.asked.remove(&ticket), answer) {
            (Some(Asked::Registration(worker, note)), RegistryAnswer::Registered { .. }) => {
                self.notes.put(worker, note);
                self.write_worker(worker, registry, carried);
            }
            (Some(Asked::Beat { worker, at, state, active_job }), RegistryAnswer::Advised(_)) => {
                let told =
                    (state.as_ref().map(translate::fingerprint), active_job.as_ref().map(translate::fingerprint));
                let is_newest =
                    |view: WorkerView| view.heard_at == Some(view.at) && (view.state, view.active_job) == told;
                if registry.worker(worker).is_some_and(is_newest) {
                    self.notes.heard(worker, at, state, active_job);
                }
            }
            _ => {}
        }
    }

    fn reply(&self, answer: RegistryAnswer) -> Reply {
        match answer {
            RegistryAnswer::Opened { instance } => Reply::Opened { instance: instance.0 },
            RegistryAnswer::Registered { epoch, instance } => {
                Reply::Registered { epoch: epoch.0, instance: instance.0 }
            }
            RegistryAnswer::Advised(advice) => Reply::Advised { advice: self::advice(advice) },
            RegistryAnswer::Claimed { holder, epoch } => {
                self.held(holder, |holder| Reply::Claimed { holder, epoch: epoch.0 })
            }
            RegistryAnswer::AlreadyClaimed { holder, epoch } => {
                self.held(holder, |holder| Reply::AlreadyClaimed { holder, epoch: epoch.0 })
            }
            RegistryAnswer::CapacityRejected(limit) => Reply::CapacityRejected { because: self::limit(limit) },
            RegistryAnswer::Done => Reply::Done,
            RegistryAnswer::Refused(Refusal::NotClaimed) => Reply::NotClaimed,
            RegistryAnswer::Refused(Refusal::UnknownWorker) => Reply::UnknownWorker,
            RegistryAnswer::Refused(refusal) => refused(self::refusal(refusal)),
        }
    }

    fn held(&self, holder: WorkerId, reply: impl FnOnce(SubjectName) -> Reply) -> Reply {
        let name = self.workers.name(holder.0).cloned();
        name.map_or_else(|| refused("its holder was removed meanwhile".to_owned()), reply)
    }

    /// What is to be written because it changed without an action: the highest epoch, how long was listened. Beats go
    /// by themselves.
    pub(crate) fn flush(&mut self, registry: &Registry, now: Moment) -> Vec<RegistryWrite> {
        let mut writes = Vec::new();
        if registry.epoch() > self.written_epoch {
            self.written_epoch = registry.epoch();
            writes.push(RegistryWrite::Epoch(self.written_epoch.0));
        }
        self.note_due_beats(now);
        let waited = self.written_at.map_or(Duration::MAX, |written| now.since(written));
        let baseline = registry.baseline();
        let counts = baseline > Moment::ORIGIN && now.since(baseline) < BASELINE_KEPT_FOR;
        let is_due = (self.waits(registry) || counts) && waited >= WRITE_EVERY;
        if !is_due && writes.is_empty() && self.written_baseline == baseline {
            return writes;
        }
        (self.written_at, self.written_baseline) = (Some(now), baseline);
        let (listened_ms, baseline_ms) = (self.line.millis(now), self.line.millis(baseline));
        writes.push(RegistryWrite::Listened { listened_ms, baseline_ms });
        writes
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn advice(advice: Advice) -> attempt::Advice {
    match advice {
        Advice::GoOn => attempt::Advice::GoOn,
        Advice::Drain => attempt::Advice::Drain,
        Advice::Stop => attempt::Advice::Stop,
        Advice::Superseded => attempt::Advice::Superseded,
    }
}

fn limit(limit: ClaimLimit) -> String {
    match limit {
        ClaimLimit::Capacity(capacity) => format!("the group's workers hold {capacity} claims, which is its capacity"),
        ClaimLimit::ClaimsMax(claims) => format!("the worker holds {claims}, which is as many as one may"),
        ClaimLimit::NoFreeWorker => "no active worker of the group has room".to_owned(),
    }
}

fn refusal(refusal: Refusal) -> String {
    match refusal {
        Refusal::UnknownGroup => "no such group is known".to_owned(),
        Refusal::UnknownWorker => "no such worker is registered".to_owned(),
        Refusal::WorkersFull => {
            format!("{} workers are registered, and more are not taken", latido_policy::WORKERS_MAX)
        }
        Refusal::GroupLocked => "another executor holds the group's lock, or nobody does".to_owned(),
        Refusal::OldInstance { instance } => format!("instance {} of the group has begun since", instance.0),
        Refusal::Superseded => "the worker is dead to the agent, or another process has its name".to_owned(),
        Refusal::Draining => "the worker drains and takes nothing more".to_owned(),
        Refusal::GroupsFull => format!("{} groups are known, and more are not taken", latido_policy::GROUPS_MAX),
        Refusal::Stuck { pickups, fenced: _ } => {
            format!(
                "it is stuck: it lost {pickups} holders, and is given to nobody until `latido release TARGET --stuck`"
            )
        }
        Refusal::NotClaimed => "nobody holds the target".to_owned(),
        Refusal::OldEpoch { epoch } => format!("the target was claimed again since, with epoch {}", epoch.0),
    }
}

/// The state of a target that a row tells of.
pub(super) fn target_state(row: &TargetRow, holder: Option<WorkerId>) -> TargetState {
    let epoch = Epoch(row.epoch);
    match holder {
        Some(holder) => {
            let event = row.event.as_ref().map(translate::fingerprint);
            TargetState::Held(Claim { holder, epoch, event })
        }
        None => TargetState::Unassigned { fenced: epoch },
    }
}
