//! What is due: first beats that did not come, and leases that ran out.

use alloc::vec::Vec;

use crate::worker::Turn;
use crate::{Judgement, Moment, Reason, Verdict, WorkerId};

use super::enter::Release;
use super::{Registry, RegistryAction, Sweep};

/// Workers that the report of one sweep names; the counts tell of all. A screen or two for whoever reads the log, and
/// every one of them has a journal entry of its own.
const NAMED_MAX: usize = 100;

impl Registry {
    pub(super) fn sweep(&mut self, now: Moment) {
        let mut sweep = Sweep::default();
        let taken: Vec<WorkerId> = core::iter::from_fn(|| self.wheel.take_due(now)).map(WorkerId).collect();
        // A pass that only reads: the waits for records that lie in no cache overlap.
        let deadline = |worker| Some((worker, self.record(worker)?.deadline()?));
        let looked_at: Vec<(WorkerId, Moment)> = taken.into_iter().filter_map(deadline).collect();
        for (worker, deadline) in looked_at {
            // A beat may have moved it since the worker was filed.
            if deadline > now {
                self.file(worker, Some(deadline));
            } else {
                self.judge(worker, deadline, now, &mut sweep);
            }
        }
        if sweep != Sweep::default() {
            self.actions.push_back(RegistryAction::ReportSweep(sweep));
        }
    }

    /// Judges a worker whose deadline has come.
    fn judge(&mut self, worker: WorkerId, deadline: Moment, now: Moment, sweep: &mut Sweep) {
        let Some((record, registration)) = self.workers.whole(worker) else { return };
        let (judged, ttl_is_over) = (record.judge(registration, now), now.since(record.heard_at) >= record.ttl());
        match judged.verdict {
            Verdict::Stale => self.reap(worker, judged, sweep),
            Verdict::Missing if ttl_is_over => self.reap(worker, judged, sweep),
            Verdict::Missing => self.miss(worker, judged, sweep),
            Verdict::Waiting
            | Verdict::Alive
            | Verdict::Late
            | Verdict::Hung
            | Verdict::Failing
            | Verdict::Orphaned
            | Verdict::Dead
            | Verdict::Unknown
            | Verdict::Ended => self.file(worker, Some(deadline)),
        }
    }

    /// It should have beaten by now. It may still, until its ttl; meanwhile nothing is assigned to it.
    fn miss(&mut self, worker: WorkerId, judged: Judgement, sweep: &mut Sweep) {
        self.name(worker, sweep);
        sweep.missing_count += 1;
        self.record_verdict(worker, judged.verdict, judged.because);
        let deadline = self.record(worker).and_then(|record| record.deadline());
        self.file(worker, deadline);
        self.offer(worker);
    }

    /// Its lease ran out: it is declared dead, and what it holds is released with its epochs fenced, in one action.
    fn reap(&mut self, worker: WorkerId, judged: Judgement, sweep: &mut Sweep) {
        self.name(worker, sweep);
        self.record_verdict(worker, judged.verdict, judged.because);
        let Some(record) = self.record_mut(worker) else { return };
        record.standing = record.standing.after(Turn::RanOut);
        let Some((record, registration)) = self.workers.whole(worker) else { return };
        let (record, instance) = (*record, registration.instance);
        let claims = self.take_claims(worker, Release::Lost);
        sweep.dead_count += 1;
        sweep.released_count += claims.count;
        self.actions.push_back(RegistryAction::ReapWorker {
            worker,
            group: record.group,
            instance,
            epoch: record.epoch,
            heard_at: record.heard_at,
            claims,
            because: judged.because,
        });
        self.bury(worker);
    }

    fn record_verdict(&mut self, worker: WorkerId, current: Verdict, because: Reason) {
        let Some(record) = self.record_mut(worker) else { return };
        let (previous, epoch) = (core::mem::replace(&mut record.recorded, current), record.epoch);
        if previous != current {
            self.actions.push_back(RegistryAction::RecordVerdict { worker, epoch, previous, current, because });
        }
    }

    fn name(&mut self, worker: WorkerId, sweep: &Sweep) {
        if *sweep == Sweep::default() {
            self.swept.clear();
        }
        if self.swept.len() < NAMED_MAX {
            self.swept.push(worker);
        }
    }
}
