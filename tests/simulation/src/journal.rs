//! What the journal tells, entry by entry: everything once, and in order.

use std::collections::BTreeSet;

use latido_protocol::journal::{AlertState, AlertTold, Body, Telling};
use latido_protocol::status::{Phase, Verdict};
use latido_store::{EntryRow, Store};

use crate::world::World;

/// Entries of the journal that are looked at in one go.
const ENTRIES: usize = 1000;

/// What the journal told of a subject.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) phase: Option<Phase>,
    started: BTreeSet<u64>,
    pub(crate) ended: BTreeSet<u64>,
    expired: BTreeSet<u64>,
    pickups: u32,
}

impl World {
    pub(crate) fn check_journal(&mut self) {
        loop {
            let rows = self.store.with(|kept| kept.memory.entries_after(self.checked_sequence, &[], ENTRIES));
            let rows = rows.unwrap_or_default();
            let Some(last) = rows.last() else { return };
            self.checked_sequence = last.sequence;
            rows.iter().for_each(|row| self.check_entry(row));
        }
    }

    fn check_entry(&mut self, row: &EntryRow) {
        let Ok(body) = serde_json::from_str::<Body>(&row.body) else {
            return self.fail("the journal can be read", &row.body);
        };
        let Some(job) = row.subject.as_deref().and_then(|name| self.job_of(name)) else {
            if let Body::Agent { what, detail } = body
                && what == "removed"
            {
                let job = (0..self.specs.len()).find(|job| detail == format!("job {} was removed", self.name(*job)));
                job.into_iter().for_each(|job| self.seen[job].forget());
            }
            return;
        };
        let claim = if let Body::Alert(told) = body {
            let AlertTold { fingerprint, state, telling, .. } = *told;
            match state {
                AlertState::Firing if !self.firing.insert(fingerprint.clone()) && telling == Telling::Began => {
                    Err(format!("{fingerprint} begins twice"))
                }
                AlertState::Resolved if !self.firing.remove(&fingerprint) => {
                    Err(format!("{fingerprint} is resolved and did not fire"))
                }
                AlertState::Firing | AlertState::Resolved => Ok(()),
            }
        } else {
            self.seen[job].journal.take(body)
        };
        if !self.had_two_agents {
            self.expect("the journal tells everything once and in order", job, claim);
        }
    }
}

impl Journal {
    fn take(&mut self, body: Body) -> Result<(), String> {
        match body {
            Body::Transition { previous, current, .. } => {
                let before = self.verdict.replace(current);
                if before.is_some_and(|before| before != previous) {
                    return Err(format!("{previous} becomes {current}, and it was {before:?}"));
                }
            }
            Body::Phase { phase, .. } => self.phase = Some(phase),
            Body::AttemptStarted { epoch, .. } if !self.started.insert(epoch) => {
                return Err(format!("epoch {epoch} starts twice"));
            }
            Body::AttemptEnded { epoch, .. } if !self.ended.insert(epoch) => {
                return Err(format!("epoch {epoch} ends twice"));
            }
            Body::LeaseExpired { epoch, pickups, .. } => {
                if !self.expired.insert(epoch) || pickups <= self.pickups {
                    return Err(format!("epoch {epoch} expires with {pickups} pickups after {}", self.pickups));
                }
                self.pickups = pickups;
            }
            Body::AttemptStarted { .. }
            | Body::AttemptEnded { .. }
            | Body::Beat { .. }
            | Body::Alert { .. }
            | Body::Agent { .. } => {}
        }
        Ok(())
    }
}
