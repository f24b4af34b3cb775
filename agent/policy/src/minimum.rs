//! What is found while the rule `liveness` cannot run, and when it counts as such.

use core::time::Duration;

use crate::{Condition, Moment, Phase, Severity, Verdict};

/// While the rule is broken, everything is looked at this often.
const EVERY: Duration = Duration::from_secs(10);

/// Two looks at everything are at least this far apart, however often the rule fails.
const APART: Duration = Duration::from_secs(1);

/// What is known of the rule `liveness`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LivenessRule {
    /// The config has none.
    #[default]
    Absent,
    /// It answered, or has not had the time to.
    Works { heard_at: Moment },
    /// It cannot answer: the minimum does.
    Broken { looked_at: Option<Moment>, look_at: Moment },
}

impl LivenessRule {
    /// The config says whether there is one.
    pub(crate) fn set(&mut self, within: Option<Duration>, now: Moment) {
        *self = match (*self, within) {
            (_, None) => Self::Absent,
            (Self::Absent, Some(_)) => Self::Works { heard_at: now },
            (known @ (Self::Works { .. } | Self::Broken { .. }), Some(_)) => known,
        };
    }

    /// It answered.
    pub(crate) fn answered(&mut self, now: Moment) {
        *self = Self::Works { heard_at: now };
    }

    /// It could not answer, or did not in time.
    pub(crate) fn failed(&mut self, now: Moment) {
        *self = match *self {
            Self::Absent | Self::Works { .. } => Self::Broken { looked_at: None, look_at: now },
            Self::Broken { looked_at, look_at } => {
                let soonest = looked_at.map_or(now, |looked_at| looked_at.after(APART));
                Self::Broken { looked_at, look_at: look_at.min(soonest) }
            }
        };
    }

    /// When it counts as broken, or is stood in for next.
    pub(crate) fn deadline(self, within: Option<Duration>) -> Option<Moment> {
        match self {
            Self::Absent => None,
            Self::Works { heard_at } => within.map(|within| heard_at.after(within)),
            Self::Broken { look_at, .. } => Some(look_at),
        }
    }

    /// Answers whether everything is to be looked at, and takes it as done.
    pub(crate) fn take_look(&mut self, now: Moment) -> bool {
        let Self::Broken { look_at, .. } = *self else { return false };
        if now < look_at {
            return false;
        }
        *self = Self::Broken { looked_at: Some(now), look_at: now.after(EVERY) };
        true
    }
}

/// The conditions that the minimum finds. Their words are those of the rule, so that an alert goes on when it works again.
pub(crate) const CONDITIONS: [Condition; 9] = [
    Condition::Missing,
    Condition::Stale,
    Condition::Hung,
    Condition::Failing,
    Condition::Orphaned,
    Condition::Dead,
    Condition::Unknown,
    Condition::Held,
    Condition::Stuck,
];

/// What is found of a subject. The severities are the rule's defaults: one that changed would be told.
pub(crate) fn find(verdict: Verdict, phase: Phase) -> Option<(Condition, Severity)> {
    let condition = match (phase, verdict) {
        (Phase::Stuck, _) => return Some((Condition::Stuck, Severity::Critical)),
        (Phase::Held, _) => return Some((Condition::Held, Severity::Critical)),
        (Phase::Paused, _) => return None,
        (
            Phase::Pending
            | Phase::Queued
            | Phase::Launching
            | Phase::Running
            | Phase::Draining
            | Phase::BackingOff
            | Phase::Ended,
            verdict,
        ) => match verdict {
            Verdict::Missing => Condition::Missing,
            Verdict::Stale => Condition::Stale,
            Verdict::Hung => Condition::Hung,
            Verdict::Failing => Condition::Failing,
            Verdict::Orphaned => Condition::Orphaned,
            Verdict::Dead => Condition::Dead,
            Verdict::Unknown => Condition::Unknown,
            Verdict::Waiting | Verdict::Alive | Verdict::Late | Verdict::Ended => return None,
        },
    };
    Some((condition, Severity::Warning))
}
