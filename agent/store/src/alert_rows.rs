//! What the store keeps of alerts and silences.

use serde::{Deserialize, Serialize};

/// An alert that is not over: people were told of it, or are kept from being told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertRow {
    /// names the alert over its whole life; the row's key
    pub fingerprint: String,
    /// the rule that found it
    pub rule: String,
    /// what the rule calls it
    pub key: String,
    /// what kind of thing it is about
    pub about: String,
    /// whom it is about
    pub subject: String,
    /// where that is, where it is known
    pub host: Option<String>,
    /// how bad it is
    pub severity: String,
    /// in words
    pub summary: String,
    /// wall time at which it began, in milliseconds since 1970
    pub started_ms: u64,
    /// where it stands
    pub standing: String,
    /// the worst that was told of it
    pub told: String,
    /// wall time at which it was told last, in milliseconds since 1970
    pub told_ms: u64,
    /// how bad it was when somebody said that it is known
    pub acknowledged: Option<String>,
    /// who said so
    pub acknowledged_by: Option<String>,
    /// how often it came in this series
    pub comings: u32,
    /// subjects that were told, for one that stands for many
    pub subjects: u32,
}

/// A silence that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilenceRow {
    /// its number; the row's key
    pub number: u32,
    /// what it keeps quiet, as JSON that the store never reads
    pub scope: String,
    /// wall time of its beginning, in milliseconds since 1970
    pub since_ms: u64,
    /// wall time of its end at the latest, in milliseconds since 1970
    pub until_ms: u64,
    /// it ends when what it covers has fired and is over
    pub until_resolved: bool,
    /// who asked for it
    pub asked_by: String,
    /// why
    pub reason: String,
}
