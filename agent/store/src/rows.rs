//! What the store keeps and what it answers: plain texts and numbers.

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::alert_rows::{AlertRow, SilenceRow};
use crate::registry::RegistryWrite;

/// The current state of one subject; one row each, replaced in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectRow {
    /// the subject's name; the row's key
    pub name: String,
    /// what kind of subject it is
    pub kind: String,
    /// the latest verdict
    pub verdict: String,
    /// where it is in latido's own hands
    pub phase: String,
    /// why the verdict is what it is
    pub reason: String,
    /// wall time since when the verdict holds, in milliseconds since 1970
    pub since_ms: u64,
    /// the attempt's number; 0 before the first
    pub attempt: u32,
    /// the fencing number; a row with a lower one than the stored row's is refused
    pub epoch: u64,
    /// attempts that were lost and picked up again
    pub pickups: u32,
    /// wall time of the latest beat, in milliseconds since 1970
    pub last_beat_ms: Option<u64>,
    /// the latest beat's number within its attempt
    pub sequence: u64,
    /// the rest, as JSON that the store never reads
    pub state: String,
    /// wall time of the next deadline, in milliseconds since 1970
    pub deadline_ms: Option<u64>,
}

/// A journal entry that has no number yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewEntry {
    /// wall time, in milliseconds since 1970
    pub at_ms: u64,
    /// the entry's kind, by which sinks select
    pub kind: String,
    /// whom it is about, where it is about someone
    pub subject: Option<String>,
    /// one JSON object that the store never reads
    pub body: String,
}

/// A journal entry as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryRow {
    /// its number: grows by one with each entry of this journal, without holes, and is never given twice
    pub sequence: u64,
    /// wall time, in milliseconds since 1970
    pub at_ms: u64,
    /// the entry's kind
    pub kind: String,
    /// whom it is about
    pub subject: Option<String>,
    /// one JSON object
    pub body: String,
}

/// What one transaction writes.
///
/// The parts are written in the order of the fields, so a name that stands in both `subjects` and `removed` is gone
/// afterwards, and so is an alert or a silence in both lists. Within one list the last row of a name wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// rows that replace those of the same name, unless the stored epoch is higher
    pub subjects: Vec<SubjectRow>,
    /// names whose rows go
    pub removed: Vec<String>,
    /// entries that are appended to the journal in this order
    pub entries: Vec<NewEntry>,
    /// alerts that are not over; each replaces the row of its fingerprint
    pub alerts: Vec<AlertRow>,
    /// fingerprints of alerts that are over; unknown ones are no error
    pub alerts_over: Vec<String>,
    /// silences that hold; each replaces the row of its number
    pub silences: Vec<SilenceRow>,
    /// numbers of silences that have ended; unknown ones are no error
    pub silences_over: Vec<u32>,
    /// changes of groups, workers and targets, in this order
    pub registry: Vec<RegistryWrite>,
}

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// number of the batch's first entry; without entries one more than `last_sequence`
    pub first_sequence: u64,
    /// number of the batch's last entry; without entries that of the journal's last
    pub last_sequence: u64,
    /// subjects, workers and targets whose row carried an older epoch than the stored one, or whose reap met something
    /// else than it expected, and was not written; everything else was
    pub refused: Vec<String>,
}

/// How far a sink has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// the last entry that the sink has made durable
    pub sequence: u64,
    /// entries that were trimmed before the sink had them, over its whole life
    pub lost: u64,
}

/// An entry that a sink could not take and that was set aside for a person to look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetAside {
    /// the entry's number
    pub sequence: u64,
    /// what the sink said
    pub why: String,
}

/// How much of the journal is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBound {
    /// entries that are kept; the oldest go first
    pub entries_max: u64,
    /// entries that one call removes at most, so that no call takes long
    pub step: usize,
}

/// What a trim did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// entries removed
    pub removed: u64,
    /// sinks that were too far behind, each with the number of entries it lost by this call
    pub lost: Vec<(String, u64)>,
    /// the bound is not reached yet: call again when there is time
    pub more: bool,
}

/// What a checkpoint left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// bytes of the write-ahead log afterwards
    pub log_bytes: u64,
    /// a reader or writer elsewhere kept the log from being emptied
    pub blocked: bool,
}

/// Returns the number as the signed one that databases keep.
pub(crate) fn stored(field: &'static str, value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::TooLarge { field, value })
}

/// Refuses a batch with a number that a database could not keep.
pub(crate) fn fits(batch: &Batch) -> Result<(), StoreError> {
    for row in &batch.subjects {
        stored("since_ms", row.since_ms)?;
        stored("epoch", row.epoch)?;
        stored("last_beat_ms", row.last_beat_ms.unwrap_or(0))?;
        stored("sequence", row.sequence)?;
        stored("deadline_ms", row.deadline_ms.unwrap_or(0))?;
    }
    for entry in &batch.entries {
        stored("at_ms", entry.at_ms)?;
    }
    for alert in &batch.alerts {
        stored("started_ms", alert.started_ms)?;
        stored("told_ms", alert.told_ms)?;
    }
    for silence in &batch.silences {
        stored("since_ms", silence.since_ms)?;
        stored("until_ms", silence.until_ms)?;
    }
    Ok(())
}
