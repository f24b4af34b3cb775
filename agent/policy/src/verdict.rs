//! Lease and facts in, verdict and reason out. Anybody may ask, with or without an agent.

use core::time::Duration;

use crate::{BeatSource, Class, Heard, Lease, Reason, ResumePolicy, Verdict};

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
    /// it says itself that it waits for a person
    pub needs_person: bool,
    /// how much longer it may be silent and stand still, as it announced; until then neither is counted
    pub excused: Option<Duration>,
    /// since its output, CPU time or I/O last grew, when that was last told or seen; `None` where nobody measures it
    pub idle: Option<Duration>,
    /// how long it had run without any output, when that was last told; zero once there was some
    pub mute: Duration,
    /// beats in a row that said nothing new of its progress
    pub repeated: u32,
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
            needs_person: false,
            excused: None,
            idle: None,
            mute: Duration::ZERO,
            repeated: 0,
        }
    }

    /// Facts of an attempt whose supervisor lives, at the moment at which it told them.
    ///
    /// What an excuse covers is neither silence nor standstill, also after it is over: its end is a new baseline, and so
    /// is the end of what the lease allows it. This follows from what is told alone, so that a restart changes nothing.
    #[must_use]
    pub fn told(heard: &Heard, lease: &Lease) -> Self {
        let excuse = heard.excuse.map(|excuse| (excuse.length.min(lease.excuse_max), excuse.since));
        let excused = excuse.map(|(length, since)| length.saturating_sub(since)).filter(|left| !left.is_zero());
        let counted = match excuse {
            Some((length, since)) if !length.is_zero() => since.saturating_sub(length),
            Some(_) | None => Duration::MAX,
        };
        Self {
            existence: Existence::Present,
            sequence: heard.sequence,
            silence: heard.silence.min(counted),
            still: heard.still.min(counted),
            running: heard.running,
            failing: heard.failing,
            broken: heard.broken,
            needs_person: heard.needs_person,
            excused,
            idle: heard.idle,
            mute: if heard.has_output { Duration::ZERO } else { heard.running },
            repeated: 0,
        }
    }

    /// The same facts `length` later, if nothing is heard meanwhile. What only hearing can tell, that it is idle or mute,
    /// does not grow by itself: nobody is ended for what was not looked at.
    #[must_use]
    pub fn later(self, length: Duration) -> Self {
        let excused = self.excused.unwrap_or_default();
        let counted = length.saturating_sub(excused);
        Self {
            silence: self.silence.saturating_add(counted),
            still: self.still.saturating_add(counted),
            running: self.running.saturating_add(length),
            excused: self.excused.map(|left| left.saturating_sub(length)).filter(|left| !left.is_zero()),
            ..self
        }
    }

    /// The same facts for a listener who has listened for `length` only: no silence from before it counts.
    pub(crate) fn listened_for(self, length: Duration) -> Self {
        Self { silence: self.silence.min(length), still: self.still.min(length), ..self }
    }

    /// Answers whether something of it moved within `limit`.
    fn is_busy(&self, limit: Duration) -> bool {
        self.idle.is_some_and(|idle| idle < limit)
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
/// falls silent, with a reason that tells of the silence too. Progress alone makes `hung`; whether the attempt is busy
/// stands in the reason.
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
        Existence::Ended(class) => (Verdict::Ended, Reason::AttemptEnded { class, order: None }),
    };
    Judgement { verdict, because }
}

fn judge_present(lease: &Lease, facts: &Facts) -> (Verdict, Reason) {
    let Facts { silence, still, sequence, .. } = *facts;
    let Lease { interval, ttl, start_within, .. } = *lease;
    let armed = is_armed(lease, facts);
    let unheard = armed && sequence == 0;
    if let Some(said) = judge_own_word(lease, facts, armed) {
        said
    } else if let Some(left) = facts.excused {
        (if unheard { Verdict::Waiting } else { Verdict::Alive }, Reason::Excused { left })
    } else if unheard && silence >= start_within {
        (Verdict::Missing, Reason::NoFirstBeat { waited: silence, start_within })
    } else if unheard {
        (Verdict::Waiting, Reason::FirstBeatAwaited { waited: silence, start_within })
    } else if armed && silence >= ttl.max(INSTANT) {
        (Verdict::Stale, Reason::LeaseRanOut { silence, ttl })
    } else if let Some(hung_after) = lease.hung_after.reached(still) {
        (Verdict::Hung, Reason::ProgressStill { still, hung_after, idle: facts.idle })
    } else if let Some(looping_after) = lease.looping_after.reached(facts.repeated) {
        (Verdict::Hung, Reason::Looping { repeated: facts.repeated, looping_after })
    } else if armed && silence > late_after(lease.interval) {
        (Verdict::Late, Reason::BeatOverdue { silence, interval })
    } else if armed {
        (Verdict::Alive, Reason::BeatsCome { silence, interval })
    } else {
        (Verdict::Alive, Reason::Present)
    }
}

/// What it says itself, if that is a verdict.
fn judge_own_word(lease: &Lease, facts: &Facts, armed: bool) -> Option<(Verdict, Reason)> {
    let (silence, ttl) = (facts.silence, lease.ttl);
    if facts.broken {
        Some((Verdict::Hung, Reason::SaysBroken))
    } else if facts.failing && armed && silence >= ttl.max(INSTANT) {
        Some((Verdict::Failing, Reason::FailingAndSilent { silence, ttl }))
    } else if facts.failing {
        Some((Verdict::Failing, Reason::SaysFailing { silence }))
    } else if facts.needs_person {
        Some((Verdict::Hung, Reason::NeedsPerson { silence }))
    } else {
        None
    }
}

/// Answers why an attempt is to be ended by its own policy; `None` while it may go on. For silence it is ended only where
/// that was weighed.
///
/// A limit of its own comes first, then the lease, then progress. Whoever should beat loses the lease by silence, also
/// before the first beat. Whoever waits for a person is never ended for silence or standstill. A lease is a promise to
/// beat, so what is busy and silent loses it; standstill is a guess, so what is busy and stands still is spared.
pub(crate) fn end_because(lease: &Lease, resume: &ResumePolicy, facts: &Facts, is_weighed: bool) -> Option<Reason> {
    if !is_present(facts) {
        return None;
    }
    let own_limit = end_at_limit(lease, facts);
    if own_limit.is_some() || facts.needs_person && !facts.broken {
        return own_limit;
    }
    let stale = silent_because(lease, facts).filter(|_| resume.on.stale && is_weighed);
    let in_time = is_in_time(lease, facts) && !facts.broken;
    stale.or_else(|| end_as_hung(lease, resume, facts).filter(|_| resume.on.hung && !in_time))
}

/// Answers why its silence has cost an attempt its lease; `None` while it has not.
pub(crate) fn silent_because(lease: &Lease, facts: &Facts) -> Option<Reason> {
    let Facts { silence, sequence, failing, .. } = *facts;
    let Lease { ttl, start_within, .. } = *lease;
    let is_held_up = facts.excused.is_some() || facts.needs_person && !facts.broken;
    let counts = is_present(facts) && is_armed(lease, facts) && !is_held_up;
    // At the moment of a baseline nobody is silent, however short the ttl.
    let ran_out = counts && silence >= ttl.max(INSTANT) && !is_in_time(lease, facts);
    ran_out.then_some(match (sequence, failing) {
        (0, _) => Reason::NoFirstBeat { waited: silence, start_within },
        (_, true) => Reason::FailingAndSilent { silence, ttl },
        (_, false) => Reason::LeaseRanOut { silence, ttl },
    })
}

/// Answers whether an attempt has missed beats, and loses its lease within `length` unless it is heard.
pub(crate) fn is_about_to_fall_silent(lease: &Lease, facts: &Facts, length: Duration) -> bool {
    facts.silence > late_after(lease.interval) && silent_because(lease, &facts.later(length)).is_some()
}

/// Answers whether its first beat may still come.
fn is_in_time(lease: &Lease, facts: &Facts) -> bool {
    is_armed(lease, facts) && facts.sequence == 0 && facts.silence < lease.start_within
}

fn is_present(facts: &Facts) -> bool {
    match facts.existence {
        Existence::Present => true,
        Existence::NotStarted
        | Existence::Launching
        | Existence::Orphaned
        | Existence::Gone
        | Existence::Unknown
        | Existence::Ended(_) => false,
    }
}

fn end_at_limit(lease: &Lease, facts: &Facts) -> Option<Reason> {
    let ran_too_long = lease.run_for.reached(facts.running);
    let mute_too_long = lease.first_output_within.reached(facts.mute).filter(|_| !facts.mute.is_zero());
    match (ran_too_long, mute_too_long) {
        (Some(run_for), _) => Some(Reason::RanTooLong { running: facts.running, run_for }),
        (None, Some(first_output_within)) => Some(Reason::NoOutput { waited: facts.mute, first_output_within }),
        (None, None) => None,
    }
}

fn end_as_hung(lease: &Lease, resume: &ResumePolicy, facts: &Facts) -> Option<Reason> {
    let Facts { still, idle, repeated, .. } = *facts;
    if facts.broken {
        return Some(Reason::SaysBroken);
    }
    if facts.excused.is_some() {
        return None;
    }
    let hung_after = lease.hung_after.reached(still).filter(|limit| !(resume.spare_busy && facts.is_busy(*limit)));
    if let Some(hung_after) = hung_after {
        return Some(Reason::ProgressStill { still, hung_after, idle });
    }
    lease.looping_after.reached(repeated).map(|looping_after| Reason::Looping { repeated, looping_after })
}

/// Answers how long it is until the verdict, its kind of reason, or what follows from it can change by itself; `None` if
/// only something heard can change it. Never zero.
#[must_use]
pub fn next_change(lease: &Lease, facts: &Facts) -> Option<Duration> {
    let armed = is_armed(lease, facts);
    let Facts { silence, still, running, .. } = *facts;
    let excused = facts.excused.unwrap_or_default();
    // Silence and standstill go on when the excuse is over.
    let quiet = |limit: Duration, passed| (limit.saturating_add(excused), passed);
    let limits: [Option<(Duration, Duration)>; 6] = match facts.existence {
        Existence::Launching => [Some((lease.start_within, running)), None, None, None, None, None],
        Existence::Present => [
            (armed && facts.sequence == 0).then_some(quiet(lease.start_within, silence)),
            (armed && facts.sequence > 0).then_some(quiet(late_after(lease.interval).saturating_add(INSTANT), silence)),
            armed.then_some(quiet(lease.ttl.max(INSTANT), silence)),
            lease.hung_after.bound().map(|limit| quiet(limit, still)),
            lease.run_for.bound().map(|limit| (limit, running)),
            facts.excused.map(|left| (left, Duration::ZERO)),
        ],
        Existence::NotStarted | Existence::Orphaned | Existence::Gone | Existence::Unknown | Existence::Ended(_) => {
            [None; 6]
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

/// The silence after which the next beat is overdue.
pub(crate) fn late_after(interval: Duration) -> Duration {
    interval.saturating_add(interval / JITTER_PART)
}
