//! The store in one SQLite file, with the files of beats beside it.
//!
//! One connection serves both durabilities. In WAL mode a commit writes to the log; with `synchronous = full` it also
//! waits until the disk has it, with `normal` it does not. The setting is switched between transactions, only when it
//! differs. The log is one sequence, so a full commit makes all quick ones before it durable too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::alert_rows::{AlertRow, SilenceRow};
use crate::beats::{BeatBatch, BeatFiles, BeatsKept};
use crate::error::{OpenError, StoreError, Trouble};
use crate::holder::{Holder, hold};
use crate::open::{self, BUSY_ATTEMPTS, BUSY_TIMEOUT, beside};
use crate::registry::RegistryRows;
use crate::rows::{
    Batch, Checkpoint, Committed, Cursor, EntryRow, JournalBound, SetAside, SubjectRow, Trimmed, fits, stored,
};
use crate::store::Store;
use crate::{alert_queries, beats, queries, registry_queries};

/// Bytes of a page, SQLite's default.
const PAGE_BYTES: u64 = 4096;

/// Keeps everything in one SQLite file with a write-ahead log.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    journal_id: String,
    durability: Durability,
    holder: Holder,
    beats: BeatFiles,
    /// the database says that beats were kept
    beats_are_known: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// on the disk when the commit returns
    Full,
    /// in the system's hands when the commit returns
    Quick,
}

/// Why one go at a transaction failed.
pub(crate) enum Failure {
    /// the database says so
    Sqlite(rusqlite::Error),
    /// the store's own rules say so
    Refused(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl SqliteStore {
    /// Opens the store, which is made if it is not there, and brings it to this program's version.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]; where [`OpenError::is_damage`] holds, [`crate::set_aside_damaged`] makes room for a new one.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let opened = open::open(path)?;
        Ok(Self {
            connection: opened.connection,
            beats: BeatFiles::new(path, &opened.journal_id),
            beats_are_known: false,
            path: path.to_owned(),
            journal_id: opened.journal_id,
            durability: Durability::Full,
            holder: Holder::default(),
        })
    }

    /// Reads the whole database and finds damage that no other call has met. Takes about a second a gigabyte.
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`], or the database cannot be read at all.
    pub fn examine(&self) -> Result<(), StoreError> {
        open::examine(&self.connection).map_err(|error| self.failed(error))
    }

    /// Bounds the database file; a commit that would need more ends with [`StoreError::Full`]. The bound is never
    /// below what the file has.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn limit_bytes(&mut self, bytes: u64) -> Result<(), StoreError> {
        let pages = stored("pages", (bytes / PAGE_BYTES).max(1))?;
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        let trouble = Trouble::of(&error);
        let (store, source) = (self.path.display().to_string(), error.into());
        match trouble {
            Trouble::Locked => StoreError::Locked { store, source },
            Trouble::Full => StoreError::Full { store, source },
            Trouble::ReadOnly => StoreError::ReadOnly { store, source },
            Trouble::Damaged | Trouble::NotADatabase => StoreError::Damaged { store, source },
            Trouble::CannotOpen | Trouble::Other => StoreError::Io { store, source },
        }
    }

    /// Carries out one write transaction. It takes the write lock at its beginning: one that reads first and writes
    /// later would be refused at once, without waiting, when another writer came in between.
    fn write<T>(
        &mut self,
        durability: Durability,
        work: impl Fn(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut attempts = 0;
        let mut has_made_room = false;
        loop {
            attempts += 1;
            let error = match self.write_once(durability, &work) {
                Ok(answer) => return Ok(answer),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Sqlite(error)) => error,
            };
            match Trouble::of(&error) {
                Trouble::Locked if attempts < BUSY_ATTEMPTS => {}
                // Moved into the database, the log can be written over: that needs no space.
                Trouble::Full if !has_made_room => {
                    has_made_room = true;
                    if self.checkpoint().is_err() {
                        return Err(self.failed(error));
                    }
                }
                Trouble::Locked
                | Trouble::Full
                | Trouble::ReadOnly
                | Trouble::Damaged
                | Trouble::NotADatabase
                | Trouble::CannotOpen
                | Trouble::Other => return Err(self.failed(error)),
            }
        }
    }

    fn write_once<T>(
        &mut self,
        durability: Durability,
        work: &impl Fn(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.durability != durability {
            let level = match durability {
                Durability::Full => "full",
                Durability::Quick => "normal",
            };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.durability = durability;
        }
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some(holder) = hold(&transaction, self.holder)? else {
            return Err(Failure::Refused(StoreError::TakenOver { store: self.path.display().to_string() }));
        };
        let answer = work(&transaction)?;
        transaction.commit()?;
        self.holder = holder;
        Ok(answer)
    }

    fn read<T>(&self, work: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        work(&self.connection).map_err(|error| self.failed(error))
    }
}

impl Store for SqliteStore {
    fn take(&mut self) -> Result<(), StoreError> {
        self.holder = Holder::Taking;
        self.write(Durability::Full, |_| Ok(()))
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        fits(batch)?;
        self.write(Durability::Full, |transaction| Ok(queries::write_batch(transaction, batch)?))
    }

    fn commit_quick(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        fits(batch)?;
        self.write(Durability::Quick, |transaction| Ok(queries::write_batch(transaction, batch)?))
    }

    fn keep_beats(&mut self, batch: &BeatBatch<'_>) -> Result<BeatsKept, StoreError> {
        // The files of beats know of no holder: they are one's own while the database is.
        if self.holder == Holder::Taking {
            self.write(Durability::Full, |_| Ok(()))?;
        } else if self.read(|connection| hold(connection, self.holder))?.is_none() {
            return Err(StoreError::TakenOver { store: self.path.display().to_string() });
        }
        let kept = self.beats.keep(batch)?;
        if !self.beats_are_known {
            self.write(Durability::Full, |transaction| Ok(registry_queries::know_of_beats(transaction)?))?;
            self.beats_are_known = true;
        }
        Ok(kept)
    }

    fn journal_id(&self) -> &str {
        &self.journal_id
    }

    fn entries_after(&self, sequence: u64, kinds: &[String], limit: usize) -> Result<Vec<EntryRow>, StoreError> {
        self.read(|connection| queries::entries_after(connection, sequence, kinds, limit))
    }

    fn last_sequence(&self) -> Result<u64, StoreError> {
        self.read(queries::last_sequence)
    }

    fn subjects(&self) -> Result<Vec<SubjectRow>, StoreError> {
        self.read(queries::subjects)
    }

    fn alerts(&self) -> Result<Vec<AlertRow>, StoreError> {
        self.read(alert_queries::alerts)
    }

    fn silences(&self) -> Result<Vec<SilenceRow>, StoreError> {
        self.read(alert_queries::silences)
    }

    fn registry(&self) -> Result<RegistryRows, StoreError> {
        let (mut rows, were_kept) = self.read(registry_queries::rows)?;
        beats::take_in(&self.path, &self.journal_id, &mut rows, were_kept)?;
        Ok(rows)
    }

    fn attach_sink(&mut self, sink: &str) -> Result<Cursor, StoreError> {
        self.write(Durability::Full, |transaction| {
            queries::attach_sink(transaction, sink)?;
            Ok(queries::cursor(transaction, sink)?)
        })
    }

    fn detach_sink(&mut self, sink: &str) -> Result<(), StoreError> {
        self.write(Durability::Full, |transaction| Ok(queries::detach_sink(transaction, sink)?))
    }

    fn cursor(&self, sink: &str) -> Result<Cursor, StoreError> {
        self.read(|connection| queries::cursor(connection, sink))
    }

    fn advance(&mut self, sink: &str, sequence: u64) -> Result<(), StoreError> {
        self.write(Durability::Full, |transaction| Ok(queries::advance(transaction, sink, sequence)?))
    }

    fn set_aside(&mut self, sink: &str, sequence: u64, why: &str) -> Result<(), StoreError> {
        self.write(Durability::Full, |transaction| Ok(queries::set_aside(transaction, sink, sequence, why)?))
    }

    fn set_aside_count(&self, sink: &str) -> Result<u64, StoreError> {
        self.read(|connection| queries::set_aside_count(connection, sink))
    }

    fn set_aside_entries(&self, sink: &str) -> Result<Vec<SetAside>, StoreError> {
        self.read(|connection| queries::set_aside_entries(connection, sink))
    }

    fn plugin_state(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.read(|connection| queries::plugin_state(connection, plugin, key))
    }

    fn set_plugin_state(&mut self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StoreError> {
        self.write(Durability::Full, |transaction| queries::set_plugin_state(transaction, plugin, key, value))
    }

    fn plugin_keys(&self, plugin: &str) -> Result<Vec<String>, StoreError> {
        self.read(|connection| queries::plugin_keys(connection, plugin))
    }

    fn trim(&mut self, keep: JournalBound) -> Result<Trimmed, StoreError> {
        self.write(Durability::Full, |transaction| Ok(queries::trim(transaction, keep)?))
    }

    fn checkpoint(&mut self) -> Result<Checkpoint, StoreError> {
        // With the usual timeout SQLite would wait for readers, who may stay for ever.
        self.read(|connection| connection.busy_timeout(Duration::ZERO))?;
        let sql = "pragma wal_checkpoint(truncate)";
        let outcome = self.connection.query_row(sql, [], |row| row.get::<_, bool>(0));
        self.read(|connection| connection.busy_timeout(BUSY_TIMEOUT))?;
        let blocked = match outcome {
            Err(error) if Trouble::of(&error) == Trouble::Locked => true,
            outcome => outcome.map_err(|error| self.failed(error))?,
        };
        let log_bytes = beside(&self.path, "-wal").metadata().map_or(0, |log| log.len());
        Ok(Checkpoint { log_bytes, blocked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite's numbers for `synchronous`: 1 is normal, 2 is full.
    fn level(store: &SqliteStore) -> u32 {
        store.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap()
    }

    #[test]
    fn only_a_quick_commit_does_not_wait_for_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::open(&directory.path().join("latido.db")).unwrap();
        assert_eq!(level(&store), 2);
        for _ in 0..2 {
            store.commit_quick(&Batch::default()).unwrap();
            assert_eq!(level(&store), 1);
            store.commit(&Batch::default()).unwrap();
            assert_eq!(level(&store), 2);
        }
        store.commit_quick(&Batch::default()).unwrap();
        store.advance("history", 1).unwrap();
        assert_eq!(level(&store), 2);
    }
}
