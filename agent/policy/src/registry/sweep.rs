//! What is due: first beats that did not come, and leases that ran out.

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
        while let Some(entry) = self.wheel.take_due(now) {
            self.look(WorkerId(entry), now, &mut sweep);
        }
        if sweep != Sweep::default() {
            self.actions.push_back(RegistryAction::ReportSweep(sweep));
        }
    }

    /// Looks at a worker whose slot came due: a beat may have moved its deadline since it was filed.
    fn look(&mut self, worker: WorkerId, now: Moment, sweep: &mut Sweep) {
        let Some(record) = self.record(worker) else { return };
        let Some(deadline) = record.deadline() else { return };
        if deadline > now {
            return self.file(worker, Some(deadline));
        }
        let (judged, ttl_is_over) = (record.judge(now), now.since(record.heard_at) >= record.lease.ttl());
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
        let record = *record;
        let claims = self.take_claims(worker, Release::Lost);
        sweep.dead_count += 1;
        sweep.released_count += claims.count;
        self.actions.push_back(RegistryAction::ReapWorker {
            worker,
            group: record.group,
            instance: record.instance,
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
