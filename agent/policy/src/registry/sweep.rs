//! What is due: first beats that did not come, and leases that ran out.

use crate::blackout::{Silent, TOGETHER_FOR};
use crate::worker::{Turn, Worker};
use crate::{AfterRelease, Judgement, Moment, Reason, ReleasedClaim, Verdict, WorkerId};

use super::enter::Release;
use super::{Registry, RegistryAction, Sweep};

/// Workers that the report of one sweep names; the counts tell of all. A screen or two for whoever reads the log, and
/// every one of them has a journal entry of its own.
const NAMED_MAX: usize = 100;

/// Workers that a sweep looks at before their time, where one falls silent. All of an ordinary fleet; of a million those of
/// the next second or so, and the sweep is later by well under a millisecond.
const LOOKED_AHEAD_MAX: usize = 1 << 13;

impl Registry {
    /// Takes out whom there is to look at, and answers how many of those that were heard since `baseline` would turn
    /// missing or dead, and how many are about to follow them.
    pub(crate) fn gather_due(&mut self, baseline: Moment, now: Moment) -> Silent {
        self.begin(now);
        self.due.extend(core::iter::from_fn(|| self.wheel.take_due(now)).map(WorkerId));
        // A pass that only reads: the waits for records that lie in no cache overlap.
        let is_due = |record: &Worker| record.deadline(baseline).is_some_and(|deadline| deadline <= now);
        let is_fresh = |worker: &&WorkerId| {
            self.record(**worker).is_some_and(|record| record.heard_at >= baseline && is_due(record))
        };
        let fresh = u32::try_from(self.due.iter().filter(is_fresh).count()).unwrap_or(u32::MAX);
        Silent { fresh, ahead: if fresh > 0 { self.count_ahead(baseline, now) } else { 0 } }
    }

    /// How many have missed beats, and turn missing or dead within an interval. Those are looked at whose place among the
    /// deadlines comes first.
    fn count_ahead(&self, baseline: Moment, now: Moment) -> u32 {
        let is_ahead = |worker: &WorkerId| {
            let Some((record, registration)) = self.workers.whole(*worker) else { return false };
            record.heard_at >= baseline && record.is_about_to_fall_silent(registration, baseline, now)
        };
        let next = self.wheel.filed(now.after(TOGETHER_FOR)).map(WorkerId).take(LOOKED_AHEAD_MAX);
        u32::try_from(next.filter(is_ahead).count()).unwrap_or(u32::MAX)
    }

    /// Workers that are not dead. Between [`gather_due`](Self::gather_due) and [`sweep`](Self::sweep) too.
    pub(crate) fn live_count(&self) -> u32 {
        self.wheel.filed_count().saturating_add(u32::try_from(self.due.len()).unwrap_or(u32::MAX))
    }

    /// Judges whom [`gather_due`](Self::gather_due) took out; no silence from before `baseline` counts.
    pub(crate) fn sweep(&mut self, baseline: Moment, now: Moment) {
        self.baseline = baseline;
        let mut sweep = Sweep::default();
        let due = core::mem::take(&mut self.due);
        due.iter().for_each(|&worker| self.look(worker, now, &mut sweep));
        self.due = due;
        self.due.clear();
        if sweep != Sweep::default() {
            self.actions.push_back(RegistryAction::ReportSweep(sweep));
        }
    }

    /// Looks at a worker whose slot came due: a beat may have moved its deadline since it was filed.
    fn look(&mut self, worker: WorkerId, now: Moment, sweep: &mut Sweep) {
        let Some((record, registration)) = self.workers.whole(worker) else { return };
        let Some(deadline) = record.deadline(self.baseline) else { return };
        if deadline > now {
            return self.file(worker, Some(deadline));
        }
        let silence = now.since(record.silent_since(self.baseline));
        let (judged, ttl_is_over) = (record.judge(registration, self.baseline, now), silence >= record.ttl());
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
        let deadline = self.record(worker).and_then(|record| record.deadline(self.baseline));
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
        let is_stuck = |claim: &&ReleasedClaim| matches!(claim.after, AfterRelease::Unassigned { is_stuck: true, .. });
        let stuck = self.released(claims).iter().filter(is_stuck).count();
        sweep.stuck_count += u32::try_from(stuck).unwrap_or(u32::MAX);
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
