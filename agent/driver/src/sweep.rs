//! What one sweep took from whom, for the log and for whoever counts.

use std::fmt;

use latido_policy::{Reason, StopReason};

use crate::fact::AttemptName;

/// The attempts that a step decided to end for want of beats or progress, or to record as lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// ended, each with why and who held it
    pub ended: Vec<Reaped>,
    /// proven gone without an ending
    pub lost: Vec<Reaped>,
}

/// One attempt that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// which
    pub attempt: AttemptName,
    /// its supervisor and host, where they are known
    pub holder: Option<String>,
    /// why, in words
    pub because: String,
}

impl Sweep {
    /// Whether nothing was given up.
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.lost.is_empty()
    }

    /// Takes note of an ending, if it is one for want of beats or progress.
    pub(crate) fn note_ended(&mut self, attempt: AttemptName, holder: Option<String>, because: &Reason) {
        match because.stop_reason() {
            Some(StopReason::Stale | StopReason::Hung) => {
                self.ended.push(Reaped { attempt, holder, because: because.to_string() });
            }
            Some(StopReason::Commanded | StopReason::Limit | StopReason::Superseded) | None => {}
        }
    }

    /// Takes note of a loss.
    pub(crate) fn note_lost(&mut self, attempt: AttemptName, holder: Option<String>, because: &Reason) {
        self.lost.push(Reaped { attempt, holder, because: because.to_string() });
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |reaped: &[Reaped]| reaped.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        write!(f, "ended {} for want of beats or progress [{}]", self.ended.len(), each(&self.ended))?;
        write!(f, ", lost {} [{}]", self.lost.len(), each(&self.lost))
    }
}

impl fmt::Display for Reaped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttemptName { job, number, epoch } = &self.attempt;
        write!(f, "{job} attempt {number} epoch {epoch}")?;
        if let Some(holder) = &self.holder {
            write!(f, " of {holder}")?;
        }
        write!(f, ": {}", self.because)
    }
}
