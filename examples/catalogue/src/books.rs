//! The books: what is recorded, in a database, and what was ever begun, in a log beside it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, ToSql, TransactionBehavior, params};

use crate::hash;

/// A checker may look while the work goes on; it never takes longer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What tells a changed file from an unchanged one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) size: i64,
    pub(crate) modified_ns: i64,
}

/// One file, hashed or found unreadable.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
    pub(crate) hash: Option<String>,
    pub(crate) skipped: Option<String>,
}

/// What a run came to.
pub(crate) struct Summary {
    pub(crate) hashed: u64,
    pub(crate) unreadable: u64,
}

/// The database and the log of one run.
pub(crate) struct Books {
    connection: Connection,
    log: File,
    own: Vec<PathBuf>,
    run: i64,
}

impl Books {
    /// Opens both, makes them if they are not there, and enters a new run.
    pub(crate) fn open(database: &Path) -> Result<Self> {
        let what = || format!("cannot open the database {}", database.display());
        let mut connection = Connection::open(database).with_context(what)?;
        connection.busy_timeout(BUSY_TIMEOUT).with_context(what)?;
        connection.pragma_update(None, "journal_mode", "wal").with_context(what)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).with_context(what)?;
        transaction.execute_batch(include_str!("schema.sql")).with_context(what)?;
        let attempt: Option<i64> = std::env::var("LATIDO_ATTEMPT").ok().and_then(|text| text.parse().ok());
        transaction
            .execute("insert into runs (attempt, started) values (?1, strftime('%FT%TZ'))", [attempt])
            .with_context(what)?;
        let run = transaction.last_insert_rowid();
        transaction.commit().with_context(what)?;

        let database = database.canonicalize().with_context(what)?;
        let own: Vec<PathBuf> = ["", "-wal", "-shm", ".log"].iter().map(|suffix| beside(&database, suffix)).collect();
        let log_path = beside(&database, ".log");
        let log = OpenOptions::new().append(true).create(true).open(&log_path);
        let log = log.with_context(|| format!("cannot open the log {}", log_path.display()))?;
        Ok(Self { connection, log, own, run })
    }

    /// The number of this run, from 1.
    pub(crate) fn run(&self) -> i64 {
        self.run
    }

    /// The program's own files, which change while it works and are not catalogued.
    pub(crate) fn own_files(&self) -> Vec<PathBuf> {
        self.own.clone()
    }

    /// Returns the files that are not recorded, or have changed since.
    pub(crate) fn left(&self, files: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
        let mut query = self.connection.prepare("select size, modified_ns from files where path = ?1")?;
        let mut left = Vec::new();
        for path in files {
            let recorded = query
                .query_row([key(&path)], |row| Ok(Stamp { size: row.get(0)?, modified_ns: row.get(1)? }))
                .optional()
                .context("cannot read what is recorded")?;
            let found = path.symlink_metadata().map(|metadata| hash::stamp(&metadata)).unwrap_or_default();
            if recorded != Some(found) {
                left.push(path);
            }
        }
        Ok(left)
    }

    /// Enters how many files this run found recorded and unchanged.
    pub(crate) fn passed_over(&self, count: u64) -> Result<()> {
        let count = i64::try_from(count).context("too many files")?;
        self.connection
            .execute("update runs set skipped = ?2 where run = ?1", [self.run, count])
            .context("cannot enter the run")?;
        Ok(())
    }

    /// Enters the folders that cannot be read, in place of those of earlier runs.
    pub(crate) fn record_folders(&mut self, folders: &[(PathBuf, String)]) -> Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("delete from unread_folders", [])?;
        for (path, reason) in folders {
            let sql = "insert or replace into unread_folders (path, reason) values (?1, ?2)";
            transaction.execute(sql, params![key(path), reason])?;
        }
        transaction.commit().context("cannot record the folders that cannot be read")
    }

    /// Writes one line, `run TAB path`, before the hash of a file begins. It goes straight to the system, so it outlives
    /// a kill, while what is hashed and not committed does not. In the path `\` is `\\` and a line feed is `\n`.
    pub(crate) fn log(&mut self, path: &Path) -> Result<()> {
        let mut line = format!("{}\t", self.run).into_bytes();
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'\\' => line.extend_from_slice(b"\\\\"),
                b'\n' => line.extend_from_slice(b"\\n"),
                _ => line.push(*byte),
            }
        }
        line.push(b'\n');
        self.log.write_all(&line).context("cannot write to the log")
    }

    /// Records the files and counts them, in one transaction.
    pub(crate) fn commit(&mut self, records: &[Record]) -> Result<()> {
        let run = self.run;
        let what = || format!("cannot record {} files", records.len());
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).with_context(what)?;
        {
            let mut write = transaction.prepare_cached(
                "insert into files (path, size, modified_ns, hash, skipped, run, times_hashed)
                 values (?1, ?2, ?3, ?4, ?5, ?6, 1)
                 on conflict (path) do update set
                     size = excluded.size, modified_ns = excluded.modified_ns, hash = excluded.hash,
                     skipped = excluded.skipped, run = excluded.run, times_hashed = times_hashed + 1",
            )?;
            for record in records {
                let Record { path, stamp, hash, skipped } = record;
                write
                    .execute(params![key(path), stamp.size, stamp.modified_ns, hash, skipped, run])
                    .with_context(what)?;
            }
        }
        let count = i64::try_from(records.len()).with_context(what)?;
        let sql = "update runs set hashed = hashed + ?2, committed = committed + 1 where run = ?1";
        transaction.execute(sql, [run, count]).with_context(what)?;
        transaction.commit().with_context(what)
    }

    /// Enters the end of the run.
    pub(crate) fn complete(&mut self) -> Result<Summary> {
        let what = "cannot enter the end of the run";
        self.connection.execute("update runs set completed = 1 where run = ?1", [self.run]).context(what)?;
        let sql = "select hashed, (select count(*) from files where skipped is not null) from runs where run = ?1";
        let (hashed, unreadable): (i64, i64) =
            self.connection.query_row(sql, [self.run], |row| Ok((row.get(0)?, row.get(1)?))).context(what)?;
        Ok(Summary { hashed: hashed.unsigned_abs(), unreadable: unreadable.unsigned_abs() })
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A path as the database's key: text where it can be, else its bytes.
fn key(path: &Path) -> impl ToSql {
    struct Key(Vec<u8>);
    impl ToSql for Key {
        fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
            let value = match std::str::from_utf8(&self.0) {
                Ok(text) => ValueRef::Text(text.as_bytes()),
                Err(_) => ValueRef::Blob(&self.0),
            };
            Ok(rusqlite::types::ToSqlOutput::Borrowed(value))
        }
    }
    Key(path.as_os_str().as_bytes().to_vec())
}
