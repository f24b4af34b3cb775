//! Rows of the store as the entries that clients and sinks read.

use latido_protocol::WallTime;
use latido_protocol::journal::{Body, Entry};
use latido_store::EntryRow;

/// Reads a row back as an entry.
///
/// Returns `None` for a row that a newer latido wrote in words that this one does not know.
pub(crate) fn entry(row: &EntryRow, journal: &str) -> Option<Entry> {
    let body: Body = serde_json::from_str(&row.body).ok()?;
    Some(Entry { sequence: row.sequence, agent: journal.to_owned(), at: WallTime::from_millis(row.at_ms), body })
}
