//! What a database takes on the disk: what was deleted is given back, and the log beside it has a bound.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::bindings::v0_2::sink::latido::plugin::sql::SqlError;

/// What the log keeps of the disk when nobody needs what it holds.
const LOG_KEPT: u64 = 4 << 20;

/// Beyond this nothing more is written. A program that reads in one transaction for hours keeps all that is written
/// meanwhile in the log, and no bound of the database counts it.
const LOG_MAX: u64 = 64 << 20;

/// Pages that are given back after one transaction at most: a megabyte, so that no batch waits for it.
const PAGES_AT_ONCE: u32 = 256;

/// So many free pages stay, and one for this many that are used: who deletes and writes by turns needs them again.
const FREE_KEPT: i64 = 256;
const FREE_KEPT_SHARE: i64 = 10;

/// The log beside a database.
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into() }
    }

    /// Brings what a long log holds into the database. Fails where somebody needs it for too long.
    pub(super) fn keep_short(&self, connection: &Connection) -> Result<(), SqlError> {
        if self.length() <= LOG_MAX {
            return Ok(());
        }
        // Whoever reads is waited for as long as for a lock. What comes of it the length tells.
        let _readers = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let length = self.length();
        if length <= LOG_MAX {
            return Ok(());
        }
        Err(SqlError::Failed(format!(
            "{} has {length} bytes, and a program that reads the database keeps it from being emptied; end its transaction",
            self.path.display()
        )))
    }

    fn length(&self) -> u64 {
        fs::metadata(&self.path).map_or(0, |found| found.len())
    }
}

/// Makes a database that can give pages back. One that is not new stays as it was made.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    connection.query_row(&format!("PRAGMA journal_size_limit = {LOG_KEPT}"), [], |_| Ok(()))
}

/// Gives the disk back what has been deleted, where it is much. What fails is tried again after the next transaction.
pub(super) fn give_back(connection: &Connection) {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).unwrap_or(0);
    let free = number("PRAGMA freelist_count");
    if free <= FREE_KEPT.max(number("PRAGMA page_count") / FREE_KEPT_SHARE) {
        return;
    }
    // Each page is a row of its answer.
    let _pages = connection
        .prepare(&format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})"))
        .and_then(|mut pages| pages.query([]).and_then(|mut rows| exhaust(&mut rows)));
}

fn exhaust(rows: &mut rusqlite::Rows<'_>) -> rusqlite::Result<()> {
    while rows.next()?.is_some() {}
    Ok(())
}
