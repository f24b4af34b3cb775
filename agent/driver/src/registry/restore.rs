//! What the store remembers of groups, workers and targets, when the agent starts.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_policy::{
    Death, Epoch, FoundWorker, GroupId, Moment, RegistryEvent, TargetId, WorkerId, WorkerLease, WorkerReport,
    WorkerStanding,
};
use latido_protocol::{SubjectName, WallTime};
use latido_store::{RegistryRows, TargetRow, WorkerRow};

use super::notes::Note;
use super::rows::{STANDINGS, target_state};
use super::{Line, Registrar, default_group};
use crate::translate::{self, fingerprint};

impl Registrar {
    /// Takes in all rows, and tells the policy of each. Silence goes on from where it was when the agent before was last
    /// heard of, so that its absence counts against nobody. Where beats were lost, nobody was silent.
    pub(crate) fn restore(&mut self, rows: RegistryRows, now: Moment, mut tell: impl FnMut(RegistryEvent)) {
        self.line = Line { began_at: now, listened: Duration::from_millis(rows.listened_ms) };
        if rows.baseline_ms > 0 {
            self.written_baseline = self.line.moment(rows.baseline_ms).min(now);
        }
        self.written_epoch = Epoch(rows.epoch);
        tell(RegistryEvent::EpochRestored { epoch: Epoch(rows.epoch) });
        for row in &rows.groups {
            let Ok(name) = row.name.parse() else { continue };
            let (group, instance) = (GroupId(self.groups.add(name)), Epoch(row.instance));
            tell(RegistryEvent::GroupAdded { group, settings: default_group(), instance });
        }
        let silence_is_known = rows.beats_lost.is_none();
        self.workers.reserve(rows.workers.len());
        self.notes.reserve(rows.workers.len());
        let mut groups = BTreeMap::new();
        for row in rows.workers {
            let known = groups.get(&row.group).copied();
            let Some(group) = known.or_else(|| self.restore_group(&row.group, &mut tell)) else { continue };
            if known.is_none() {
                groups.insert(row.group.clone(), group);
            }
            self.restore_worker(group, row, silence_is_known, &mut tell);
        }
        for row in rows.targets {
            self.restore_target(&row, &mut tell);
        }
    }

    /// No silence from before this moment counts, as it was written last.
    pub(crate) fn written_baseline(&self) -> Moment {
        self.written_baseline
    }

    fn restore_group(&mut self, name: &str, tell: &mut impl FnMut(RegistryEvent)) -> Option<GroupId> {
        let mut events = Vec::new();
        let group = self.group(&name.parse().ok()?, &mut events);
        events.into_iter().for_each(tell);
        Some(group)
    }

    fn restore_worker(
        &mut self,
        group: GroupId,
        row: WorkerRow,
        silence_is_known: bool,
        tell: &mut impl FnMut(RegistryEvent),
    ) {
        let Ok(name) = SubjectName::try_from(row.name) else { return };
        let worker = WorkerId(self.workers.add(name));
        let standing = STANDINGS.iter().find(|(_, text)| *text == row.standing).map(|(standing, _)| *standing);
        // A row that cannot be read holds nothing and renews nothing.
        let standing = standing.unwrap_or(WorkerStanding::Dead(Death::Silent));
        let silence_is_known = silence_is_known || standing.is_dead();
        let heard_at = if silence_is_known { self.line.moment(row.beat.heard_ms) } else { self.line.began_at };
        let length = Duration::from_millis;
        let lease = WorkerLease::new(length(row.interval_ms), length(row.ttl_ms), length(row.start_ms));
        let found = FoundWorker {
            group,
            instance: Epoch(row.instance),
            epoch: Epoch(row.epoch),
            lease: lease.unwrap_or(default_group().lease),
            registered_at: heard_at,
            heard_at,
            standing,
            recorded: translate::recorded_verdict(&row.verdict).unwrap_or(latido_policy::Verdict::Waiting),
            report: WorkerReport {
                sequence: Some(row.beat.sequence),
                state: row.beat.state.as_ref().map(fingerprint),
                active_job: row.beat.active_job.as_ref().map(fingerprint),
                errors: u32::try_from(row.beat.errors).unwrap_or(u32::MAX),
            },
        };
        tell(RegistryEvent::WorkerRestored { worker, found });
        let note = Note {
            registered_at: WallTime::from_millis(row.registered_ms),
            beat_at: row.beat.at_ms.map(WallTime::from_millis),
            host: row.host,
            pid: row.pid,
            state: row.beat.state,
            active_job: row.beat.active_job,
        };
        self.notes.put(worker, note);
    }

    fn restore_target(&mut self, row: &TargetRow, tell: &mut impl FnMut(RegistryEvent)) {
        let Ok(name) = row.name.parse() else { return };
        let target = TargetId(self.targets.add(name));
        let holder = row.holder.as_ref().and_then(|holder| holder.parse().ok());
        let holder = holder.and_then(|holder| self.workers.number(&holder)).map(WorkerId);
        if let Some(event) = &row.event {
            self.events.insert(target, event.clone());
        }
        let (state, pickups) = (target_state(row, holder), row.pickups);
        tell(RegistryEvent::TargetRestored { target, state, pickups });
    }
}
