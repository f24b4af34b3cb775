//! All workers and targets, with their names, at one moment.

use std::collections::BTreeMap;

use latido_policy::{self as policy, Registry, TargetState, WorkerId, WorkerView};
use latido_protocol::files::{Budget, Spent};
use latido_protocol::registry::{RegistryStatus, TargetName, TargetStatus, WorkerStanding, WorkerStatus};
use latido_protocol::status::{Next, Phase, SubjectKind, SubjectStatus};
use latido_protocol::{Span, SubjectName, WallTime};

use super::Registrar;
use crate::translate;

impl Registrar {
    pub(crate) fn status(&self, registry: &Registry) -> RegistryStatus {
        let (mut held, mut targets) = (BTreeMap::<WorkerId, Vec<TargetName>>::new(), Vec::new());
        for (target, id) in self.targets.iter() {
            let id = latido_policy::TargetId(id);
            let Some(known) = registry.target(id) else { continue };
            let (holder, epoch) = match known.state {
                TargetState::Held(claim) => {
                    held.entry(claim.holder).or_default().push(target.clone());
                    (self.workers.name(claim.holder.0).cloned(), claim.epoch)
                }
                TargetState::Unassigned { fenced } => (None, fenced),
            };
            targets.push(TargetStatus {
                target: target.clone(),
                holder,
                epoch: epoch.0,
                event: self.events.get(&id).cloned(),
                pickups: known.pickups,
            });
        }
        let workers = self.workers.iter().filter_map(|(name, id)| {
            let view = registry.worker(WorkerId(id))?;
            self.worker_status(name, &view, held.remove(&view.worker).unwrap_or_default())
        });
        RegistryStatus { workers: workers.collect(), targets }
    }

    /// One worker of this name, with what it holds.
    pub(crate) fn worker_named(&self, name: &SubjectName, registry: &Registry) -> Option<WorkerStatus> {
        let view = registry.worker(self.worker(name)?)?;
        let held = registry.held_by(view.worker);
        let targets = held.filter_map(|(target, _)| self.targets.name(target.0).cloned()).collect();
        self.worker_status(name, &view, targets)
    }

    fn worker_status(&self, name: &SubjectName, view: &WorkerView, targets: Vec<TargetName>) -> Option<WorkerStatus> {
        let note = self.notes.of(view.worker)?;
        Some(WorkerStatus {
            name: name.clone(),
            group: self.groups.name(view.group.0)?.clone(),
            instance: view.instance.0,
            epoch: view.epoch.0,
            status: standing(view.standing),
            verdict: translate::verdict(view.verdict),
            reason: match view.baseline {
                Some(_) => format!("{}; it counts since the agent began to hear again", view.because),
                None => view.because.to_string(),
            },
            host: note.host.clone(),
            pid: note.pid,
            registered: note.registered_at,
            last_beat: note.beat_at,
            silence_s: Span(view.silence),
            state: note.state.clone(),
            active_job: note.active_job.clone(),
            errors: view.errors.into(),
            targets,
            next_s: view.next.map(|next| Span(next.since(view.at))),
        })
    }
}

fn standing(standing: policy::WorkerStanding) -> WorkerStanding {
    match standing {
        policy::WorkerStanding::Active => WorkerStanding::Active,
        policy::WorkerStanding::Draining | policy::WorkerStanding::Stopping => WorkerStanding::Draining,
        policy::WorkerStanding::Dead(_) => WorkerStanding::Dead,
    }
}

/// A worker among all subjects.
pub(crate) fn subject(worker: WorkerStatus, at: WallTime) -> SubjectStatus {
    let silence = u64::try_from(worker.silence_s.0.as_millis()).unwrap_or(u64::MAX);
    let heard = WallTime::from_millis(at.as_millis().saturating_sub(silence));
    SubjectStatus {
        name: worker.name,
        kind: SubjectKind::Worker,
        verdict: worker.verdict,
        reason: worker.reason,
        since: heard,
        phase: match worker.status {
            WorkerStanding::Active => Phase::Running,
            WorkerStanding::Draining => Phase::Draining,
            WorkerStanding::Dead => Phase::Ended,
        },
        host: worker.host.unwrap_or_default(),
        policy: worker.group.to_string(),
        last_beat: worker.last_beat,
        silence_s: Some(worker.silence_s),
        progress: None,
        progress_changed: None,
        attempt: 0,
        epoch: worker.epoch,
        pickups: 0,
        pid: worker.pid,
        state: worker.state,
        errors: worker.errors,
        outcome: None,
        trouble: None,
        place: None,
        slots: Vec::new(),
        spent: Spent::default(),
        budget: Budget::default(),
        next: worker.next_s.map(|in_s| Next { what: "it is judged again".to_owned(), in_s: Some(in_s) }),
    }
}
