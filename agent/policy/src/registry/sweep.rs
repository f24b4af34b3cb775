//! What is due: first beats that did not come, and leases that ran out.

use crate::blackout::TOGETHER_FOR;
use crate::worker::{Turn, Worker};
use crate::{AfterRelease, Judgement, Moment, Reason, ReleasedClaim, Verdict, WorkerId};

use super::enter::Release;
use super::{Registry, RegistryAction, Sweep};

/// Workers that the report of one sweep names; the counts tell of all. A screen or two for whoever reads the log, and
/// every one of them has a journal entry of its own.
const NAMED_MAX: usize = 100;

/// Workers that a sweep looks at before their time, where they could be too many to be believed. All of an ordinary fleet;
/// of a million those of the next second or so, and the sweep is later by well under a millisecond.
pub(crate) const LOOKED_AHEAD_MAX: u32 = 1 << 13;

/// Workers that are looked at in one go. The others are due at once again, so that whoever carries out a death, in some ten
/// microseconds, hears and judges everybody else meanwhile.
const LOOKS_MAX: usize = 4096;

impl Registry {
    /// Takes out all whom there is to look at, and answers how many of those that were heard since `baseline` would turn
    /// missing or dead. Each is counted once, also where its turn comes later.
    pub(crate) fn gather_due(&mut self, baseline: Moment, now: Moment) -> u32 {
        self.begin(now);
        let counted = self.due.len();
        self.due.extend(core::iter::from_fn(|| self.wheel.take_due(now)).map(WorkerId));
        // Who lies beside one another here does so in the caller's rows.
        self.due[counted..].sort_unstable();
        // A pass that only reads: the waits for records that lie in no cache overlap.
        let is_due = |record: &Worker| record.deadline(baseline).is_some_and(|deadline| deadline <= now);
        let is_fresh = |worker: &&WorkerId| {
            self.record(**worker).is_some_and(|record| record.heard_at >= baseline && is_due(record))
        };
        u32::try_from(self.due[counted..].iter().filter(is_fresh).count()).unwrap_or(u32::MAX)
    }

    /// How many have missed beats, and turn missing or dead within an interval. Those are looked at whose place among the
    /// deadlines comes first.
    pub(crate) fn count_ahead(&self, baseline: Moment, now: Moment) -> u32 {
        let is_ahead = |worker: &WorkerId| {
            let Some((record, registration)) = self.workers.whole(*worker) else { return false };
            record.heard_at >= baseline && record.is_about_to_fall_silent(registration, baseline, now)
        };
        let next = self.wheel.filed(now.after(TOGETHER_FOR)).map(WorkerId).take(LOOKED_AHEAD_MAX as usize);
        u32::try_from(next.filter(is_ahead).count()).unwrap_or(u32::MAX)
    }

    /// Workers that are not dead. Between [`gather_due`](Self::gather_due) and [`sweep`](Self::sweep) too.
    pub(crate) fn live_count(&self) -> u32 {
        self.wheel.filed_count().saturating_add(u32::try_from(self.due.len()).unwrap_or(u32::MAX))
    }

    /// Judges the first of those whom [`gather_due`](Self::gather_due) took out; no silence from before `baseline` counts.
    /// When all have been judged, it reports.
    pub(crate) fn sweep(&mut self, baseline: Moment, now: Moment) {
        self.baseline = baseline;
        let mut sweep = core::mem::take(&mut self.swept_so_far);
        let mut due = core::mem::take(&mut self.due);
        let count = due.len().min(LOOKS_MAX);
        due.drain(..count).for_each(|worker| self.look(worker, now, &mut sweep));
        self.due = due;
        if !self.due.is_empty() {
            self.swept_so_far = sweep;
        } else if sweep != Sweep::default() {
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::num::NonZeroU32;
    use core::time::Duration;

    use super::*;
    use crate::{Epoch, GroupId, GroupSettings, RegistryEvent, Ticket, WorkerLease};

    const WORKERS: u32 = 10_000;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_secs(seconds))
    }

    #[test]
    fn many_that_die_together_are_counted_once_and_judged_some_at_a_time() {
        let mut registry = Registry::default();
        let (interval, ttl) = (Duration::from_secs(10), Duration::from_secs(60));
        let lease = WorkerLease::new(interval, ttl, ttl).unwrap();
        let one = NonZeroU32::MIN;
        let settings = GroupSettings { capacity: None, claims_max: one, max_pickups: one, lease };
        let (group, instance) = (GroupId(0), Epoch(0));
        registry.handle_event(RegistryEvent::GroupAdded { group, settings, instance }, at(0));
        for worker in 0..WORKERS {
            let (ticket, worker) = (Ticket(worker.into()), WorkerId(worker));
            let event = RegistryEvent::WorkerRegistered { ticket, worker, group, instance: None, lease: None };
            registry.handle_event(event, at(0));
        }
        while registry.poll_action().is_some() {}
        let (mut fresh, mut dead, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        while registry.poll_timeout().is_some_and(|next| next <= at(61)) {
            fresh.push(registry.gather_due(Moment::ORIGIN, at(61)));
            assert_eq!(registry.live_count(), WORKERS - dead.len() as u32);
            registry.sweep(Moment::ORIGIN, at(61));
            let before = dead.len();
            for action in core::iter::from_fn(|| registry.poll_action()) {
                if let RegistryAction::ReapWorker { worker, .. } = action {
                    dead.push(worker.0);
                } else if let RegistryAction::ReportSweep(sweep) = action {
                    reports.push(sweep.dead_count);
                }
            }
            assert!(dead.len() - before <= LOOKS_MAX);
        }
        assert_eq!((fresh, reports), (Vec::from([WORKERS, 0, 0]), Vec::from([WORKERS])));
        assert_eq!(dead, (0..WORKERS).collect::<Vec<_>>());
    }
}
