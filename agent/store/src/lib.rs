//! The agent's durable store: current rows, the journal and the cursors of its sinks.
//!
//! Everything goes through the trait [`Store`]; [`SqliteStore`] keeps it in one file, [`MemoryStore`] in memory, and
//! both pass [`conformance::run`]. Rows are texts and numbers: the store knows the words of no other crate.
//!
//! What this crate does not do: it reads no clock (times are given), it judges nothing, it deletes no file, and it
//! retries no failed write beyond a short bounded wait for a lock. Whoever is told of an error decides what follows.

mod alert_conformance;
mod alert_queries;
mod alert_rows;
mod all_rows;
mod beats;
pub mod conformance;
mod error;
mod holder;
mod memory;
mod migrate;
mod open;
mod queries;
mod registry;
mod registry_queries;
mod rows;
mod sqlite;
mod store;

pub use alert_rows::{AlertRow, SilenceRow};
pub use all_rows::Rows;
pub use beats::{Beat, BeatBatch, BeatsKept};
pub use error::{Cause, OpenError, StoreError};
pub use memory::MemoryStore;
pub use open::{LOG_BYTES_MAX, set_aside_damaged};
pub use registry::{BeatRow, DEAD_SILENT, GroupRow, RegistryRows, RegistryWrite, TargetRow, WorkerRow};
pub use rows::{Batch, Checkpoint, Committed, Cursor, EntryRow, JournalBound, NewEntry, SetAside, SubjectRow, Trimmed};
pub use sqlite::SqliteStore;
pub use store::{PLUGIN_STATE_BYTES_MAX, Store};
