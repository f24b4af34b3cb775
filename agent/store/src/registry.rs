//! Rows of groups, workers and targets, and what one transaction does to them.

use std::collections::BTreeMap;

use crate::beats::{Beat, BeatBatch};
use serde::{Deserialize, Serialize};

/// A group's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRow {
    /// its name; the row's key
    pub name: String,
    /// the latest life of its executor; 0 while nobody has opened it
    pub instance: u64,
}

/// A worker's row; one each, replaced in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// its name; the row's key
    pub name: String,
    /// its group's name
    pub group: String,
    /// the life of the executor that it belongs to
    pub instance: u64,
    /// its registration's fencing number
    pub epoch: u64,
    /// where it stands
    pub standing: String,
    /// the verdict that was recorded last
    pub verdict: String,
    /// how often beats are expected, in milliseconds
    pub interval_ms: u64,
    /// silence after which its lease has run out, in milliseconds
    pub ttl_ms: u64,
    /// time for its first beat, in milliseconds
    pub start_ms: u64,
    /// the host it says it is on
    pub host: Option<String>,
    /// the pid it says it has there
    pub pid: Option<u32>,
    /// wall time of its registration, in milliseconds since 1970
    pub registered_ms: u64,
    /// its latest beat
    pub beat: BeatRow,
}

/// The part of a worker's row that every beat changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeatRow {
    /// wall time of the latest beat, in milliseconds since 1970; `None` before the first
    pub at_ms: Option<u64>,
    /// when it was last heard, or registered, in milliseconds of listening time
    pub heard_ms: u64,
    /// the beat's number; 0 before the first
    pub sequence: u64,
    /// its loop state
    pub state: Option<String>,
    /// what it works on
    pub active_job: Option<String>,
    /// errors it has counted
    pub errors: u64,
}

impl BeatRow {
    /// Takes in a beat, unless a newer one is there.
    pub(crate) fn replace(&mut self, beat: &Beat<'_>) {
        if beat.sequence <= self.sequence {
            return;
        }
        let Beat { name: _, epoch: _, at_ms, heard_ms, sequence, state, active_job, errors } = *beat;
        (self.at_ms, self.heard_ms, self.sequence, self.errors) = (at_ms, heard_ms, sequence, errors);
        // Most beats say what the one before said.
        for (known, said) in [(&mut self.state, state), (&mut self.active_job, active_job)] {
            if known.as_deref() != said {
                *known = said.map(str::to_owned);
            }
        }
    }
}

/// A target's row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetRow {
    /// its name; the row's key
    pub name: String,
    /// who holds it; `None` after its holder was lost
    pub holder: Option<String>,
    /// the claim's fencing number; without a holder the one that was fenced off
    pub epoch: u64,
    /// what it was claimed for
    pub event: Option<String>,
    /// holders that it lost
    pub pickups: u32,
}

/// One change, as part of a batch. Each stands behind those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryWrite {
    /// Replaces the group's row.
    Group(GroupRow),
    /// Replaces the worker's row, unless the stored one has a higher epoch: then it is refused.
    Worker(WorkerRow),
    /// Writes that the worker is dead, with its last beat, and that every target it holds is unassigned with one pickup
    /// more. It is refused, whole, unless the row is still this registration of this instance, not dead, and not heard
    /// later.
    Reap {
        /// the worker
        name: String,
        /// its instance
        instance: u64,
        /// its registration
        epoch: u64,
        /// its last beat, or when it registered
        beat: BeatRow,
        /// the verdict that it is dead by
        verdict: String,
    },
    /// Removes the row of this registration; what it still holds is unassigned with one pickup more.
    RemoveWorker {
        /// the worker
        name: String,
        /// its registration
        epoch: u64,
    },
    /// Replaces the target's row, unless the stored one has a higher epoch: then it is refused.
    Target(TargetRow),
    /// Removes the target's row.
    RemoveTarget(String),
    /// Keeps the highest epoch ever given; a lower one than the stored changes nothing.
    Epoch(u64),
    /// Keeps how far the listening time line has come, and since when silence counts on it.
    Listened {
        /// how far, in milliseconds
        listened_ms: u64,
        /// no silence from before counts, in milliseconds; 0 where all does
        baseline_ms: u64,
    },
}

/// How a dead worker's standing is stored.
pub const DEAD_SILENT: &str = "dead-silent";

/// Begins every standing that is dead.
pub(crate) const DEAD: &str = "dead";

/// All rows of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryRows {
    /// the highest epoch ever given
    pub epoch: u64,
    /// how far the listening time line had come, in milliseconds
    pub listened_ms: u64,
    /// no silence from before this place on it counts, in milliseconds; 0 where all does
    #[serde(default)]
    pub baseline_ms: u64,
    /// by name
    pub groups: Vec<GroupRow>,
    /// by name
    pub workers: Vec<WorkerRow>,
    /// by name
    pub targets: Vec<TargetRow>,
    /// beats that were kept and cannot be read, in words: how long workers were silent is not known
    pub beats_lost: Option<String>,
}

/// The rows in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryRegistry {
    epoch: u64,
    listened_ms: u64,
    baseline_ms: u64,
    groups: BTreeMap<String, GroupRow>,
    workers: BTreeMap<String, WorkerRow>,
    targets: BTreeMap<String, TargetRow>,
}

impl MemoryRegistry {
    /// Makes one change, and answers whether it was made.
    pub(crate) fn write(&mut self, write: &RegistryWrite) -> bool {
        match write {
            RegistryWrite::Group(row) => _ = self.groups.insert(row.name.clone(), row.clone()),
            RegistryWrite::Worker(row) => {
                if self.workers.get(&row.name).is_some_and(|stored| stored.epoch > row.epoch) {
                    return false;
                }
                self.workers.insert(row.name.clone(), row.clone());
            }
            RegistryWrite::Reap { name, instance, epoch, beat, verdict } => {
                let is_still = |row: &&mut WorkerRow| {
                    (row.instance, row.epoch) == (*instance, *epoch)
                        && row.beat.heard_ms <= beat.heard_ms
                        && !row.standing.starts_with(DEAD)
                };
                let Some(row) = self.workers.get_mut(name).filter(is_still) else { return false };
                DEAD_SILENT.clone_into(&mut row.standing);
                row.verdict.clone_from(verdict);
                row.beat.clone_from(beat);
                self.unassign(name);
            }
            RegistryWrite::RemoveWorker { name, epoch } => {
                if self.workers.get(name).is_some_and(|row| row.epoch == *epoch) {
                    self.workers.remove(name);
                    self.unassign(name);
                }
            }
            RegistryWrite::Target(row) => {
                if self.targets.get(&row.name).is_some_and(|stored| stored.epoch > row.epoch) {
                    return false;
                }
                self.targets.insert(row.name.clone(), row.clone());
            }
            RegistryWrite::RemoveTarget(name) => _ = self.targets.remove(name),
            RegistryWrite::Epoch(epoch) => self.epoch = self.epoch.max(*epoch),
            RegistryWrite::Listened { listened_ms, baseline_ms } => {
                (self.listened_ms, self.baseline_ms) = (*listened_ms, *baseline_ms);
            }
        }
        true
    }

    /// Keeps beats of registrations that have rows, unless a newer one is there.
    pub(crate) fn keep(&mut self, batch: &BeatBatch<'_>) {
        for beat in &batch.beats {
            let row = self.workers.get_mut(beat.name).filter(|row| row.epoch == beat.epoch);
            if let Some(row) = row {
                row.beat.replace(beat);
            }
        }
    }

    fn unassign(&mut self, holder: &str) {
        for target in self.targets.values_mut().filter(|target| target.holder.as_deref() == Some(holder)) {
            (target.holder, target.event) = (None, None);
            target.pickups += 1;
        }
    }

    pub(crate) fn of(rows: RegistryRows) -> Self {
        Self {
            epoch: rows.epoch,
            listened_ms: rows.listened_ms,
            baseline_ms: rows.baseline_ms,
            groups: rows.groups.into_iter().map(|row| (row.name.clone(), row)).collect(),
            workers: rows.workers.into_iter().map(|row| (row.name.clone(), row)).collect(),
            targets: rows.targets.into_iter().map(|row| (row.name.clone(), row)).collect(),
        }
    }

    pub(crate) fn rows(&self) -> RegistryRows {
        RegistryRows {
            epoch: self.epoch,
            listened_ms: self.listened_ms,
            baseline_ms: self.baseline_ms,
            groups: self.groups.values().cloned().collect(),
            workers: self.workers.values().cloned().collect(),
            targets: self.targets.values().cloned().collect(),
            beats_lost: None,
        }
    }
}

/// The name that a change is refused under.
pub(crate) fn refused_name(write: &RegistryWrite) -> Option<String> {
    match write {
        RegistryWrite::Worker(row) => Some(row.name.clone()),
        RegistryWrite::Reap { name, .. } => Some(name.clone()),
        RegistryWrite::Target(row) => Some(row.name.clone()),
        RegistryWrite::Group(_)
        | RegistryWrite::RemoveWorker { .. }
        | RegistryWrite::RemoveTarget(_)
        | RegistryWrite::Epoch(_)
        | RegistryWrite::Listened { .. } => None,
    }
}
