//! One worker: its record, its lease, and what each thing that happens makes of it.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::blackout::TOGETHER_FOR;
use crate::verdict::late_after;
use crate::{
    BeatSource, Epoch, Existence, Facts, Fingerprint, GroupId, Judgement, Lease, Limit, Moment, Verdict, judge,
};

/// Names a worker densely; the driver owns the names, and gives a number again after the worker's row was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

/// The lease of a worker's beats, in whole milliseconds up to 49 days: a million workers have one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLease {
    interval_ms: u32,
    ttl_ms: u32,
    start_within_ms: u32,
}

impl WorkerLease {
    /// Returns `None` unless `interval < ttl` and all fit: one late beat would end whoever has no room between them.
    #[must_use]
    pub fn new(interval: Duration, ttl: Duration, start_within: Duration) -> Option<Self> {
        let [interval_ms, ttl_ms, start_within_ms] =
            [interval, ttl, start_within].map(|length| u32::try_from(length.as_millis()).ok());
        let lease = Self { interval_ms: interval_ms?, ttl_ms: ttl_ms?, start_within_ms: start_within_ms? };
        (interval < ttl).then_some(lease)
    }

    /// The lease that has run out after `missed` intervals without a beat; `None` as with [`WorkerLease::new`], so that
    /// a single missed interval is refused.
    #[must_use]
    pub fn after_missed(interval: Duration, missed: NonZeroU32, start_within: Duration) -> Option<Self> {
        Self::new(interval, interval.checked_mul(missed.get())?, start_within)
    }

    /// How often beats are expected.
    #[must_use]
    pub const fn interval(self) -> Duration {
        Duration::from_millis(self.interval_ms as u64)
    }

    /// Silence after which the lease has run out.
    #[must_use]
    pub const fn ttl(self) -> Duration {
        Duration::from_millis(self.ttl_ms as u64)
    }

    /// Time for the first beat, from the registration.
    #[must_use]
    pub const fn start_within(self) -> Duration {
        Duration::from_millis(self.start_within_ms as u64)
    }

    /// The lease as every verdict is taken by it.
    pub(crate) const fn lease(self) -> Lease {
        Lease {
            beats: BeatSource::Own,
            interval: self.interval(),
            ttl: self.ttl(),
            start_within: self.start_within(),
            hung_after: Limit::None,
            run_for: Limit::None,
            looping_after: Limit::None,
            first_output_within: Limit::None,
            excuse_max: Duration::ZERO,
        }
    }
}

/// What a worker says with a beat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// the beat's number since the registration, from 1, where the worker counts: an older one renews nothing
    pub sequence: Option<u64>,
    /// stands for its loop state
    pub state: Option<Fingerprint>,
    /// stands for what it works on
    pub active_job: Option<Fingerprint>,
    /// errors it has counted
    pub errors: u32,
}

/// What a beat is answered, so that a worker in another pod or namespace hears it without a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Go on.
    GoOn,
    /// Take nothing more, finish what is claimed.
    Drain,
    /// End: it drains and holds nothing, or somebody said so.
    Stop,
    /// It is dead to the agent, or another registration has its name: what it holds is fenced off.
    Superseded,
}

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkerStanding {
    /// It may claim.
    Active,
    /// It takes nothing more and finishes what it holds.
    Draining,
    /// It was told to end without finishing.
    Stopping,
    /// It is over; the row stays for whoever looks into it.
    Dead(Death),
}

/// How a worker became dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Death {
    /// Declared, because its lease ran out. It may still run, so its epochs are refused everywhere.
    Silent,
    /// It said that it ends.
    Left,
}

/// What can happen to a standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Drain,
    Stop,
    RanOut,
    Leave,
}

impl WorkerStanding {
    /// What the turn makes of it. Dead is final, and an order to end outranks a drain.
    pub(crate) const fn after(self, turn: Turn) -> Self {
        match (self, turn) {
            (Self::Active | Self::Draining, Turn::Drain) => Self::Draining,
            (Self::Stopping, Turn::Drain) => Self::Stopping,
            (Self::Active | Self::Draining | Self::Stopping, Turn::Stop) => Self::Stopping,
            (Self::Active | Self::Draining | Self::Stopping, Turn::RanOut) => Self::Dead(Death::Silent),
            (Self::Active | Self::Draining | Self::Stopping, Turn::Leave) => Self::Dead(Death::Left),
            (Self::Dead(death), Turn::Drain | Turn::Stop | Turn::RanOut | Turn::Leave) => Self::Dead(death),
        }
    }

    /// Answers whether it is dead.
    #[must_use]
    pub const fn is_dead(self) -> bool {
        match self {
            Self::Active | Self::Draining | Self::Stopping => false,
            Self::Dead(_) => true,
        }
    }
}

/// The record of one worker, replaced in place: all that a beat changes or asks, and when its lease runs out.
///
/// There are a million of them, and no cache holds them: it is one line of the cache, so that a beat waits for the
/// memory once. What is asked less often is in [`Registration`].
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Worker {
    /// the registration's fencing number
    pub(crate) epoch: Epoch,
    pub(crate) heard_at: Moment,
    /// the newest beat's number; 0 before the first
    pub(crate) sequence: u64,
    /// What it said last of its loop state and its work: two options in half of their room.
    state: u64,
    active_job: u64,
    pub(crate) errors: u32,
    pub(crate) claims_count: u32,
    pub(crate) group: GroupId,
    ttl_ms: u32,
    start_within_ms: u32,
    pub(crate) standing: WorkerStanding,
    /// the verdict that was recorded last
    pub(crate) recorded: Verdict,
    says_state: bool,
    says_active_job: bool,
}

/// What changes with a registration alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) instance: Epoch,
    pub(crate) registered_at: Moment,
    interval_ms: u32,
}

impl Registration {
    pub(crate) fn new(instance: Epoch, lease: WorkerLease, registered_at: Moment) -> Self {
        Self { instance, registered_at, interval_ms: lease.interval_ms }
    }
}

impl Worker {
    /// A worker that has just registered: its lease begins with that.
    pub(crate) fn registered(group: GroupId, epoch: Epoch, lease: WorkerLease, now: Moment) -> Self {
        Self {
            epoch,
            heard_at: now,
            sequence: 0,
            state: 0,
            active_job: 0,
            errors: 0,
            claims_count: 0,
            group,
            ttl_ms: lease.ttl_ms,
            start_within_ms: lease.start_within_ms,
            standing: WorkerStanding::Active,
            recorded: Verdict::Waiting,
            says_state: false,
            says_active_job: false,
        }
    }

    /// The same as it was found at a start of the agent.
    pub(crate) fn restored(mut self, standing: WorkerStanding, recorded: Verdict, report: WorkerReport) -> Self {
        (self.standing, self.recorded) = (standing, recorded);
        self.sequence = report.sequence.unwrap_or(0);
        self.say(report);
        self
    }

    /// Takes in what it says. An old beat that comes late, twice or out of order renews nothing.
    pub(crate) fn hear(&mut self, report: WorkerReport, now: Moment) {
        let sequence = report.sequence.unwrap_or(self.sequence.saturating_add(1));
        if sequence <= self.sequence {
            return;
        }
        self.sequence = sequence;
        self.heard_at = self.heard_at.max(now);
        self.say(report);
    }

    fn say(&mut self, report: WorkerReport) {
        let WorkerReport { sequence: _, state, active_job, errors } = report;
        (self.says_state, self.state) = (state.is_some(), state.map_or(0, |state| state.0));
        (self.says_active_job, self.active_job) = (active_job.is_some(), active_job.map_or(0, |job| job.0));
        self.errors = errors;
    }

    /// Stands for its loop state, as it said it last.
    pub(crate) fn state(&self) -> Option<Fingerprint> {
        self.says_state.then_some(Fingerprint(self.state))
    }

    /// Stands for what it works on, as it said it last.
    pub(crate) fn active_job(&self) -> Option<Fingerprint> {
        self.says_active_job.then_some(Fingerprint(self.active_job))
    }

    /// What its beat is answered.
    pub(crate) const fn advice(&self) -> Advice {
        match self.standing {
            WorkerStanding::Active => Advice::GoOn,
            WorkerStanding::Draining if self.claims_count > 0 => Advice::Drain,
            WorkerStanding::Draining | WorkerStanding::Stopping => Advice::Stop,
            WorkerStanding::Dead(_) => Advice::Superseded,
        }
    }

    /// Since when its silence counts, where none from before `baseline` does. A dead one was judged once and for all.
    pub(crate) fn silent_since(&self, baseline: Moment) -> Moment {
        if self.standing.is_dead() { self.heard_at } else { self.heard_at.max(baseline) }
    }

    /// The verdict of one that is not dead, or was declared dead because of this very verdict.
    pub(crate) fn judge(&self, registration: &Registration, baseline: Moment, now: Moment) -> Judgement {
        judge(&self.lease(registration).lease(), &self.facts(baseline, now))
    }

    /// Its whole lease.
    pub(crate) fn lease(&self, registration: &Registration) -> WorkerLease {
        let Registration { interval_ms, .. } = *registration;
        WorkerLease { interval_ms, ttl_ms: self.ttl_ms, start_within_ms: self.start_within_ms }
    }

    fn facts(&self, baseline: Moment, now: Moment) -> Facts {
        let silence = now.since(self.silent_since(baseline));
        // It was declared dead at its ttl, however little of its silence a restart of the agent remembers.
        let silence = if self.standing.is_dead() { silence.max(self.ttl()) } else { silence };
        Facts { sequence: self.sequence, silence, ..Facts::bare(Existence::Present) }
    }

    /// Silence after which its lease has run out.
    pub(crate) const fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms as u64)
    }

    /// Whether it has missed beats, and is to be looked at within an interval unless it is heard.
    pub(crate) fn is_about_to_fall_silent(&self, registration: &Registration, baseline: Moment, now: Moment) -> bool {
        let interval = self.lease(registration).interval().min(TOGETHER_FOR);
        let silence = now.since(self.silent_since(baseline));
        silence > late_after(interval) && self.deadline(baseline).is_some_and(|moment| moment <= now.after(interval))
    }

    /// When it is to be looked at, if no beat comes; `None` once it is dead.
    pub(crate) fn deadline(&self, baseline: Moment) -> Option<Moment> {
        let limit = match (self.sequence, self.recorded) {
            _ if self.standing.is_dead() => return None,
            (0, Verdict::Missing) => self.ttl(),
            (0, _) => Duration::from_millis(self.start_within_ms.into()),
            _ => self.ttl(),
        };
        Some(self.silent_since(baseline).after(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_lease_has_room_between_interval_and_ttl() {
        let start_within = seconds(60);
        let missed = |count| WorkerLease::after_missed(seconds(30), NonZeroU32::new(count).unwrap(), start_within);
        assert_eq!(missed(1), None);
        assert_eq!(missed(3).map(WorkerLease::ttl), Some(seconds(90)));
        assert_eq!(WorkerLease::new(seconds(30), seconds(30), start_within), None);
        assert_eq!(WorkerLease::new(seconds(30), seconds(60 * 24 * 3600), start_within), None);
    }

    #[test]
    fn a_record_is_one_line_of_the_cache() {
        assert_eq!((size_of::<Option<Worker>>(), align_of::<Option<Worker>>()), (64, 64));
    }

    #[test]
    fn what_was_not_said_is_told_apart_from_every_fingerprint() {
        let lease = WorkerLease::new(seconds(30), seconds(180), seconds(60)).unwrap();
        let mut worker = Worker::registered(GroupId(0), Epoch(1), lease, Moment::ORIGIN);
        let zero = Some(Fingerprint(0));
        for (state, active_job) in [(None, None), (zero, None), (None, zero), (zero, Some(Fingerprint(7)))] {
            worker.hear(WorkerReport { state, active_job, ..WorkerReport::default() }, Moment::ORIGIN);
            assert_eq!((worker.state(), worker.active_job()), (state, active_job));
        }
    }

    #[test]
    fn every_standing_meets_every_turn() {
        use WorkerStanding::{Active, Dead, Draining, Stopping};
        const STANDINGS: [WorkerStanding; 5] = [Active, Draining, Stopping, Dead(Death::Silent), Dead(Death::Left)];
        let rows = [
            (Turn::Drain, [Draining, Draining, Stopping, Dead(Death::Silent), Dead(Death::Left)]),
            (Turn::Stop, [Stopping, Stopping, Stopping, Dead(Death::Silent), Dead(Death::Left)]),
            (
                Turn::RanOut,
                [Dead(Death::Silent); 4].into_iter().chain([Dead(Death::Left)]).collect::<Vec<_>>().try_into().unwrap(),
            ),
            (
                Turn::Leave,
                [Dead(Death::Left), Dead(Death::Left), Dead(Death::Left), Dead(Death::Silent), Dead(Death::Left)],
            ),
        ];
        for (turn, expected) in rows {
            assert_eq!(STANDINGS.map(|standing| standing.after(turn)), expected, "{turn:?}");
        }
    }
}
