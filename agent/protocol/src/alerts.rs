//! `latido alerts`: what is asked of the agent about alerts, and the document it answers with.

use serde::{Deserialize, Serialize};

use crate::journal::Severity;
use crate::{Span, SubjectName, WallTime};

/// All alerts that are not over, and all silences. The same with and without an agent, but for what only an agent knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertsDocument {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// an agent answered; without one, `false`, only what is recorded is shown
    pub agent: bool,
    /// when it was made
    pub at: WallTime,
    /// by fingerprint
    pub alerts: Vec<AlertStatus>,
    /// by number
    pub silences: Vec<SilenceStatus>,
}

/// One alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertStatus {
    /// names it over its whole life
    pub fingerprint: String,
    /// the rule that found it
    pub rule: String,
    /// what the rule calls it
    pub key: String,
    /// whom it is about; `*` for one that stands for many
    pub subject: String,
    /// how bad it is
    pub severity: Severity,
    /// where it stands
    pub state: Standing,
    /// in words
    pub summary: String,
    /// since when it holds
    pub started: WallTime,
    /// what keeps it from being told, in words
    pub muted_by: Option<String>,
    /// who said that it is known
    pub acknowledged_by: Option<String>,
    /// how often it came in this series
    pub comings: u32,
    /// of how many subjects was told, for one that stands for many
    pub subjects: u32,
}

/// Where an alert stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// it holds and is not confirmed, or waits for others of its kind
    Pending,
    /// it holds and is kept from being told
    Muted,
    /// it was told that it holds
    Firing,
    /// it was told as part of another that stands for many
    Grouped,
    /// it has ended, which is told when that has lasted
    Ending,
    /// it comes and goes
    Flapping,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Pending => "pending",
            Self::Muted => "muted",
            Self::Firing => "firing",
            Self::Grouped => "grouped",
            Self::Ending => "ending",
            Self::Flapping => "flapping",
        })
    }
}

/// One silence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SilenceStatus {
    /// its number
    pub number: u32,
    /// what it keeps quiet
    pub scope: SilenceScope,
    /// since when
    pub since: WallTime,
    /// its end at the latest
    pub until: WallTime,
    /// it ends as soon as what it covers has fired and is over
    pub until_resolved: bool,
    /// who asked for it
    pub by: String,
    /// why; may be empty
    pub reason: String,
}

/// What a silence keeps quiet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SilenceScope {
    /// everything about this subject
    Subject(SubjectName),
    /// everything this rule finds
    Rule(String),
    /// the alert of this fingerprint
    Alert(String),
}

impl std::fmt::Display for SilenceScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Subject(subject) => write!(f, "subject {subject}"),
            Self::Rule(rule) => write!(f, "rule {rule}"),
            Self::Alert(fingerprint) => write!(f, "alert {fingerprint}"),
        }
    }
}

/// What is asked about alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum AlertRequest {
    /// The document.
    List,
    /// Keep something quiet. Answered by the document, in which the silence with the highest number is the one asked for.
    Silence {
        /// what
        scope: SilenceScope,
        /// for how long; it ends then at the latest
        length: Span,
        /// end it as soon as what it covers has fired and is over
        until_resolved: bool,
        /// who asks
        by: String,
        /// why; may be empty
        reason: String,
    },
    /// End a silence.
    Unsilence {
        /// its number
        number: u32,
    },
    /// Say that an alert is known: no reminders until it is resolved or its severity rises.
    Acknowledge {
        /// which alert
        fingerprint: String,
        /// who says so
        by: String,
    },
    /// Send an alert through everything that alerts go through, and its ending.
    Test {
        /// who asks
        by: String,
    },
}
