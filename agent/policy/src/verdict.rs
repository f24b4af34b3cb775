//! Lease and facts in, verdict and reason out. Anybody may ask, with or without an agent.

use core::time::Duration;

use crate::{BeatSource, Class, Lease, Reason, ResumeOn, Verdict};

/// The share of the interval by which a beat may be overdue before it is late: one part in this many.
const JITTER_PART: u32 = 10;

/// The least time that tells "over" from "at" a limit.
const INSTANT: Duration = Duration::from_nanos(1);

/// What is known of an attempt at one moment. Durations are listening time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// whether it exists
    pub existence: Existence,
    /// own beats so far
    pub sequence: u64,
    /// since the last own beat, or since the start where there was none
    pub silence: Duration,
    /// since the progress last changed, or since the start
    pub still: Duration,
    /// since the start
    pub running: Duration,
    /// it says itself that it fails
    pub failing: bool,
    /// it says itself that it is broken
    pub broken: bool,
}

impl Facts {
    /// Facts of an attempt of which nothing but its existence is known.
    #[must_use]
    pub const fn bare(existence: Existence) -> Self {
        Self {
            existence,
            sequence: 0,
            silence: Duration::ZERO,
            still: Duration::ZERO,
            running: Duration::ZERO,
            failing: false,
            broken: false,
        }
    }

    /// The same facts `length` later, if nothing is heard meanwhile.
    #[must_use]
    pub const fn later(self, length: Duration) -> Self {
        Self {
            silence: self.silence.saturating_add(length),
            still: self.still.saturating_add(length),
            running: self.running.saturating_add(length),
            ..self
        }
    }
}

/// Whether an attempt exists, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Existence {
    /// There has been no attempt.
    NotStarted,
    /// Its launch has begun.
    Launching,
    /// Its supervisor lives.
    Present,
    /// Its supervisor is gone and its processes live.
    Orphaned,
    /// Its supervisor and all its processes are gone, and no ending is recorded.
    Gone,
    /// Cannot be told.
    Unknown,
    /// Its ending is recorded.
    Ended(Class),
}

/// A verdict with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// what it is
    pub verdict: Verdict,
    /// why
    pub because: Reason,
}

/// Judges an attempt by its lease.
///
/// What it says itself comes first, then the lease, then progress: a job that says that it fails stays `failing` when it
/// falls silent, with a reason that tells of the silence too.
#[must_use]
pub fn judge(lease: &Lease, facts: &Facts) -> Judgement {
    let (verdict, because) = match facts.existence {
        Existence::NotStarted => (Verdict::Waiting, Reason::NotStarted),
        Existence::Launching => {
            let (waited, start_within) = (facts.running, lease.start_within);
            if waited >= start_within {
                (Verdict::Missing, Reason::LaunchOverdue { waited, start_within })
            } else {
                (Verdict::Waiting, Reason::LaunchBegun { waited, start_within })
            }
        }
        Existence::Present => judge_present(lease, facts),
        Existence::Orphaned => (Verdict::Orphaned, Reason::SupervisorGone),
        Existence::Gone => (Verdict::Dead, Reason::ProvenGone),
        Existence::Unknown => (Verdict::Unknown, Reason::CannotTell),
        Existence::Ended(class) => (Verdict::Ended, Reason::AttemptEnded { class }),
    };
    Judgement { verdict, because }
}

fn judge_present(lease: &Lease, facts: &Facts) -> (Verdict, Reason) {
    let Facts { silence, still, .. } = *facts;
    let Lease { interval, ttl, start_within, .. } = *lease;
    let armed = is_armed(lease, facts);
    if facts.broken {
        (Verdict::Hung, Reason::SaysBroken)
    } else if facts.failing && armed && silence >= ttl {
        (Verdict::Failing, Reason::FailingAndSilent { silence, ttl })
    } else if facts.failing {
        (Verdict::Failing, Reason::SaysFailing { silence })
    } else if armed && facts.sequence == 0 && silence >= start_within {
        (Verdict::Missing, Reason::NoFirstBeat { waited: silence, start_within })
    } else if armed && facts.sequence == 0 {
        (Verdict::Waiting, Reason::FirstBeatAwaited { waited: silence, start_within })
    } else if armed && silence >= ttl {
        (Verdict::Stale, Reason::LeaseRanOut { silence, ttl })
    } else if let Some(hung_after) = lease.hung_after.filter(|&limit| still >= limit) {
        (Verdict::Hung, Reason::ProgressStill { still, hung_after })
    } else if armed && silence > late_after(lease) {
        (Verdict::Late, Reason::BeatOverdue { silence, interval })
    } else if armed {
        (Verdict::Alive, Reason::BeatsCome { silence, interval })
    } else {
        (Verdict::Alive, Reason::Present)
    }
}

/// Answers why an attempt is to be ended by its own policy; `None` while it may go on.
///
/// A limit of time comes first, then the lease, then progress. Whoever should beat loses the lease by silence, also
/// before the first beat.
pub(crate) fn end_because(lease: &Lease, on: ResumeOn, facts: &Facts) -> Option<Reason> {
    let Facts { silence, still, running, .. } = *facts;
    let Lease { ttl, start_within, .. } = *lease;
    match facts.existence {
        Existence::Present => {}
        Existence::NotStarted
        | Existence::Launching
        | Existence::Orphaned
        | Existence::Gone
        | Existence::Unknown
        | Existence::Ended(_) => return None,
    }
    if let Some(run_for) = lease.run_for.filter(|&limit| running >= limit) {
        return Some(Reason::RanTooLong { running, run_for });
    }
    let armed = is_armed(lease, facts);
    let unheard = armed && facts.sequence == 0;
    if on.stale && armed && silence >= ttl && (!unheard || silence >= start_within) {
        return Some(match (unheard, facts.failing) {
            (true, _) => Reason::NoFirstBeat { waited: silence, start_within },
            (false, true) => Reason::FailingAndSilent { silence, ttl },
            (false, false) => Reason::LeaseRanOut { silence, ttl },
        });
    }
    if on.hung && facts.broken {
        return Some(Reason::SaysBroken);
    }
    let hung_after =
        lease.hung_after.filter(|&limit| on.hung && still >= limit && (!unheard || silence >= start_within));
    hung_after.map(|hung_after| Reason::ProgressStill { still, hung_after })
}

/// Answers how long it is until the verdict, its kind of reason, or what follows from it can change by itself; `None` if
/// only something heard can change it. Never zero.
#[must_use]
pub fn next_change(lease: &Lease, facts: &Facts) -> Option<Duration> {
    let armed = is_armed(lease, facts);
    let (silence, still, running) = (facts.silence, facts.still, facts.running);
    let limits: [Option<(Duration, Duration)>; 5] = match facts.existence {
        Existence::Launching => [Some((lease.start_within, running)), None, None, None, None],
        Existence::Present => [
            (armed && facts.sequence == 0).then_some((lease.start_within, silence)),
            (armed && facts.sequence > 0).then_some((late_after(lease).saturating_add(INSTANT), silence)),
            armed.then_some((lease.ttl, silence)),
            lease.hung_after.map(|limit| (limit, still)),
            lease.run_for.map(|limit| (limit, running)),
        ],
        Existence::NotStarted | Existence::Orphaned | Existence::Gone | Existence::Unknown | Existence::Ended(_) => {
            [None; 5]
        }
    };
    limits.into_iter().flatten().filter(|(limit, passed)| limit > passed).map(|(limit, passed)| limit - passed).min()
}

/// Answers whether the work's own lease is in force.
fn is_armed(lease: &Lease, facts: &Facts) -> bool {
    match lease.beats {
        BeatSource::Auto => facts.sequence > 0,
        BeatSource::Own => true,
        BeatSource::Presence => false,
    }
}

fn late_after(lease: &Lease) -> Duration {
    lease.interval.saturating_add(lease.interval / JITTER_PART)
}
