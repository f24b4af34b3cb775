//! The trait that every store implements.

use crate::StoreError;
use crate::alert_rows::{AlertRow, SilenceRow};
use crate::beats::{BeatBatch, BeatsKept};
use crate::registry::RegistryRows;
use crate::rows::{Batch, Checkpoint, Committed, Cursor, EntryRow, JournalBound, SetAside, SubjectRow, Trimmed};

/// Bytes of keys and values that one plugin may keep. A strategy's notes on a few thousand jobs fit; a plugin that
/// keeps history belongs into a database of its own.
pub const PLUGIN_STATE_BYTES_MAX: usize = 1024 * 1024;

/// Keeps the agent's rows, its journal and the cursors of its sinks.
///
/// After an error nothing of the call is stored and the store is usable: the same call may be made again, at once or
/// later, and succeeds when the cause has gone. Only [`StoreError::Damaged`] does not pass.
pub trait Store: Send {
    /// Makes this handle the one that writes: every write of a handle that took the store before is refused from then on.
    /// A handle that never takes the store writes beside whoever holds it. What is read after this is not changed by others.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`]. The next write takes the store then.
    fn take(&mut self) -> Result<(), StoreError>;

    /// Writes the batch as one transaction, which is on the disk when this returns.
    ///
    /// A subject's row with an older epoch than the stored one is left out and named in [`Committed::refused`]; the
    /// rest of the batch is written all the same, since its entries tell what happened.
    ///
    /// # Errors
    ///
    /// Nothing of the batch is stored: locked for too long, disk full, damaged, or a number too large for the store.
    fn commit(&mut self, batch: &Batch) -> Result<Committed, StoreError>;

    /// Writes the batch as one transaction that the death of this process cannot undo, but a power failure may, until
    /// the next [`Store::commit`]. For entries of plain beats.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`].
    fn commit_quick(&mut self, batch: &Batch) -> Result<Committed, StoreError>;

    /// Keeps the newest beats of workers: they are on the disk when this returns, and stand in [`Store::registry`]'s rows.
    /// The beat of a registration that has no row is no error.
    ///
    /// # Errors
    ///
    /// None of the batch is kept, and it may be given again: disk full, not writable, or a number too large.
    fn keep_beats(&mut self, batch: &BeatBatch<'_>) -> Result<BeatsKept, StoreError>;

    /// Returns the journal's own random id, made with it. With an entry's number it names the entry for ever.
    fn journal_id(&self) -> &str;

    /// Returns the entries after `sequence` of the given kinds (none given: all), oldest first, `limit` at most.
    ///
    /// Fewer than `limit` means that nothing else was there: a sink that selects kinds may then be advanced to a
    /// [`Store::last_sequence`] read before this call.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    fn entries_after(&self, sequence: u64, kinds: &[String], limit: usize) -> Result<Vec<EntryRow>, StoreError>;

    /// Returns the number of the newest entry ever written, 0 before the first. Trimming does not lower it.
    ///
    /// # Errors
    ///
    /// The journal cannot be read.
    fn last_sequence(&self) -> Result<u64, StoreError>;

    /// Returns all subjects' rows by name.
    ///
    /// # Errors
    ///
    /// The rows cannot be read.
    fn subjects(&self) -> Result<Vec<SubjectRow>, StoreError>;

    /// Returns all alerts that are not over, by fingerprint.
    ///
    /// # Errors
    ///
    /// The rows cannot be read.
    fn alerts(&self) -> Result<Vec<AlertRow>, StoreError>;

    /// Returns all silences that hold, by number.
    ///
    /// # Errors
    ///
    /// The rows cannot be read.
    fn silences(&self) -> Result<Vec<SilenceRow>, StoreError>;

    /// Returns all rows of groups, workers and targets, by name, each worker's with its newest beat that was kept.
    ///
    /// # Errors
    ///
    /// The rows cannot be read.
    fn registry(&self) -> Result<RegistryRows, StoreError>;

    /// Makes the sink known, from the oldest entry kept, and returns its cursor. A known sink stays where it is.
    ///
    /// Losses are counted for known sinks only.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`].
    fn attach_sink(&mut self, sink: &str) -> Result<Cursor, StoreError>;

    /// Forgets the sink with its cursor, its losses and what it set aside. An unknown one is no error.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`].
    fn detach_sink(&mut self, sink: &str) -> Result<(), StoreError>;

    /// Returns how far the sink has come; an unknown one starts at 0, that is, from the oldest entry kept.
    ///
    /// # Errors
    ///
    /// The cursor cannot be read.
    fn cursor(&self, sink: &str) -> Result<Cursor, StoreError>;

    /// Moves the sink's cursor forward to `sequence`, durably. A lower one than the cursor's changes nothing; one
    /// beyond the journal's end moves it to the end.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`].
    fn advance(&mut self, sink: &str, sequence: u64) -> Result<(), StoreError>;

    /// Records, durably, that the sink could not take this entry. The cursor stays: advance it afterwards. The same
    /// entry again counts once.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`].
    fn set_aside(&mut self, sink: &str, sequence: u64, why: &str) -> Result<(), StoreError>;

    /// Returns how many entries were ever set aside for the sink.
    ///
    /// # Errors
    ///
    /// The count cannot be read.
    fn set_aside_count(&self, sink: &str) -> Result<u64, StoreError>;

    /// Returns the entries set aside for the sink that the journal still holds, oldest first.
    ///
    /// # Errors
    ///
    /// The list cannot be read.
    fn set_aside_entries(&self, sink: &str) -> Result<Vec<SetAside>, StoreError>;

    /// Returns what the plugin keeps under the key.
    ///
    /// # Errors
    ///
    /// The value cannot be read.
    fn plugin_state(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps the value under the plugin's key, durably, or removes the key with `None`.
    ///
    /// # Errors
    ///
    /// [`StoreError::PluginStateFull`] when the plugin's keys and values would exceed [`PLUGIN_STATE_BYTES_MAX`]; else
    /// as for [`Store::commit`].
    fn set_plugin_state(&mut self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StoreError>;

    /// Returns the plugin's keys in order.
    ///
    /// # Errors
    ///
    /// The keys cannot be read.
    fn plugin_keys(&self, plugin: &str) -> Result<Vec<String>, StoreError>;

    /// Removes the oldest entries beyond the bound, at most one step of them. A known sink that had not come past them
    /// is moved past them, and its loss is counted in the same transaction.
    ///
    /// # Errors
    ///
    /// As for [`Store::commit`].
    fn trim(&mut self, keep: JournalBound) -> Result<Trimmed, StoreError>;

    /// Moves the write-ahead log into the database and empties it, without waiting for anybody. A store without such a
    /// log answers with zero.
    ///
    /// # Errors
    ///
    /// The log cannot be moved; nothing is lost by that.
    fn checkpoint(&mut self) -> Result<Checkpoint, StoreError>;
}
