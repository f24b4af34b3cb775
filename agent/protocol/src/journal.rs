//! The journal's entries: what sinks are fed and `latido events --json` prints, one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::files::Spent;
use crate::status::{Phase, SubjectKind, Verdict};
use crate::{Outcome, Progress, Span, SubjectName, WallTime};

/// One entry. `agent` and `sequence` together name it for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// grows by one for each entry of this journal
    pub sequence: u64,
    /// the journal's own random id, made with it
    pub agent: String,
    /// when it was written
    pub at: WallTime,
    /// what happened
    #[serde(flatten)]
    pub body: Body,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Body {
    /// a sampled beat
    Beat {
        /// whose
        subject: SubjectName,
        /// its attempt
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// the beat's number in its attempt
        beat: u64,
        /// how far it is
        progress: Option<Progress>,
        /// the work's own word
        state: Option<String>,
        /// errors counted
        errors: u64,
        /// what its attempt used up so far
        #[serde(default)]
        spent: Spent,
    },
    /// a change of verdict
    Transition {
        /// whose
        subject: SubjectName,
        /// its kind
        kind: SubjectKind,
        /// its attempt
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// before
        previous: Verdict,
        /// after
        current: Verdict,
        /// why
        reason: String,
    },
    /// a change of phase
    Phase {
        /// whose
        subject: SubjectName,
        /// its attempt
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// the new one
        phase: Phase,
        /// why
        reason: String,
    },
    /// an attempt began
    AttemptStarted {
        /// whose
        subject: SubjectName,
        /// its number
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// why it was launched
        reason: String,
    },
    /// an attempt ended
    AttemptEnded {
        /// whose
        subject: SubjectName,
        /// its number
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// how
        outcome: Outcome,
        /// when it began
        started: WallTime,
        /// its last progress
        progress: Option<Progress>,
        /// what it used up
        #[serde(default)]
        spent: Spent,
    },
    /// a lease ran out and its attempt was given up
    LeaseExpired {
        /// whose
        subject: SubjectName,
        /// its number
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// who held it
        previous_holder: Option<String>,
        /// listening time without a beat
        silence_s: Span,
        /// lost attempts so far
        pickups: u32,
    },
    /// something is told of an alert: it began, changed or ended
    Alert(Box<AlertTold>),
    /// the agent about itself: started, a gap in its listening, a loss in a sink
    Agent {
        /// `started`, `stopped`, `gap`, `plugin-fault`, `sink-loss` …
        what: String,
        /// in words
        detail: String,
    },
}

/// What is told of an alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertTold {
    /// the rule that found it
    pub rule: String,
    /// names the alert over all its entries
    pub fingerprint: String,
    /// whose
    pub subject: String,
    /// `info`, `warning` or `critical`
    pub severity: Severity,
    /// `firing` or `resolved`
    pub state: AlertState,
    /// in words
    pub summary: String,
    /// when it began
    pub started: WallTime,
    /// what is told
    #[serde(default)]
    pub telling: Telling,
    /// why it is told, in words
    #[serde(default)]
    pub reason: String,
    /// how often it came in this series
    #[serde(default = "one")]
    pub comings: u32,
    /// how many subjects it is about
    #[serde(default = "one")]
    pub subjects: u32,
    /// some of them, where it is about many
    #[serde(default)]
    pub who: Vec<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// good to know
    Info,
    /// somebody may want to look
    Warning,
    /// somebody has to act
    Critical,
}

/// What an entry tells of an alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Telling {
    /// it holds
    #[default]
    Began,
    /// more subjects have it than was told
    Grew,
    /// it comes and goes: next is told that this is over
    Flaps,
    /// it came and went, and holds steadily
    Settled,
    /// it is worse than was told
    Rose,
    /// it still holds
    Reminder,
    /// it is over
    Ended,
}

impl std::fmt::Display for Telling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Began => "began",
            Self::Grew => "grew",
            Self::Flaps => "flaps",
            Self::Settled => "settled",
            Self::Rose => "rose",
            Self::Reminder => "reminder",
            Self::Ended => "ended",
        })
    }
}

/// What is not said is about one, once.
fn one() -> u32 {
    1
}

/// Whether it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertState {
    /// it holds
    Firing,
    /// it ended
    Resolved,
}

impl Body {
    /// The entry's kind, as sinks select it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Beat { .. } => "beat",
            Self::Transition { .. } => "transition",
            Self::Phase { .. } => "phase",
            Self::AttemptStarted { .. } => "attempt-started",
            Self::AttemptEnded { .. } => "attempt-ended",
            Self::LeaseExpired { .. } => "lease-expired",
            Self::Alert { .. } => "alert",
            Self::Agent { .. } => "agent",
        }
    }

    /// The subject it is about, where there is one.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Beat { subject, .. }
            | Self::Transition { subject, .. }
            | Self::Phase { subject, .. }
            | Self::AttemptStarted { subject, .. }
            | Self::AttemptEnded { subject, .. }
            | Self::LeaseExpired { subject, .. } => Some(subject.as_str()),
            Self::Alert(alert) => Some(&alert.subject),
            Self::Agent { .. } => None,
        }
    }
}
