//! Opens the database file, tells what is wrong with one that cannot be opened, and sets a damaged one aside.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::error::{OpenError, Trouble};
use crate::migrate::{self, KNOWN, Origin};

/// How long SQLite waits for a lock at a time. Nobody but the agent writes, so a lock is held for milliseconds or by
/// something that is stuck; a few of these are far below any ttl.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// How often a transaction is begun before its caller is told that the store is locked. SQLite does not wait at all for
/// some locks (a log that another connection recovers), which a second try passes.
pub(crate) const BUSY_ATTEMPTS: u32 = 4;

/// Pages of the write-ahead log after which SQLite moves them into the database by itself: 4 MiB.
const AUTOCHECKPOINT_PAGES: u32 = 1000;

/// Bytes to which the write-ahead log is cut when it starts again from its beginning. A log that is larger after a
/// checkpoint means that a reader elsewhere holds it: worth a warning. It is a little above the size at which SQLite
/// empties the log by itself, so that a log of usual size is written over instead of being cut and grown again.
pub const LOG_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Pages that a connection keeps in memory at most, in KiB: what a commit of some thousand records changes, so that none of
/// them is written twice.
const CACHE_KIB: i64 = 16 * 1024;

/// Prepared statements kept: all that the store has.
const STATEMENTS: usize = 32;

/// A database up to this size is checked whole at every opening, which takes a few milliseconds; a larger one is
/// checked on demand and otherwise found damaged where it is read.
const CHECKED_BYTES_MAX: u64 = 1024 * 1024;

/// A connection that is ready, and the journal's id.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) journal_id: String,
}

/// Opens the file, which is made if it is not there, for the user alone.
pub(crate) fn open(path: &Path) -> Result<Opened, OpenError> {
    let io_failed = |source: io::Error| from_io(path, source);
    if !path.exists() && beside(path, "-wal").exists() {
        // The log of a database that is gone: SQLite would remove it together with what it proves.
        set_aside_damaged(path).map_err(io_failed)?;
    }
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(io_failed)?;
    let mut attempt = 1;
    loop {
        match connect(path) {
            Err(OpenError::Locked { .. }) if attempt < BUSY_ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

fn connect(path: &Path) -> Result<Opened, OpenError> {
    let failed = |source: rusqlite::Error| from_sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    match migrate::origin(&connection).map_err(failed)? {
        Origin::Latido(found) if found > KNOWN => {
            return Err(OpenError::NewerVersion { path: path.to_owned(), found, known: KNOWN });
        }
        Origin::Foreign => return Err(OpenError::NotADatabase { path: path.to_owned() }),
        Origin::Empty | Origin::Latido(_) => {}
    }
    settle(&connection).map_err(failed)?;
    migrate::migrate(&mut connection).map_err(failed)?;
    let size = fs::metadata(path).map_err(|source| from_io(path, source))?.len();
    if size <= CHECKED_BYTES_MAX {
        examine(&connection).map_err(failed)?;
    }
    let journal_id = journal_id(&connection).map_err(failed)?;
    Ok(Opened { connection, journal_id })
}

/// Sets what holds for the whole life of a connection.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        return Err(failure(
            rusqlite::ffi::SQLITE_ERROR,
            format!("this file system keeps no write-ahead log but {mode}"),
        ));
    }
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", AUTOCHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX.cast_signed())?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Reads the whole file and finds pages that cannot be.
pub(crate) fn examine(connection: &Connection) -> rusqlite::Result<()> {
    let found: String = connection.query_row("pragma quick_check(1)", [], |row| row.get(0))?;
    if found == "ok" {
        return Ok(());
    }
    Err(failure(rusqlite::ffi::SQLITE_CORRUPT, found))
}

fn failure(code: i32, found: String) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), Some(found))
}

fn journal_id(connection: &Connection) -> rusqlite::Result<String> {
    let sql = "select id, last_sequence >= (select coalesce(max(sequence), 0) from entries) from journal where one = 1";
    let (id, is_whole): (String, bool) = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if is_whole {
        return Ok(id);
    }
    Err(failure(rusqlite::ffi::SQLITE_CORRUPT, "the journal holds entries beyond its last number".to_owned()))
}

/// Renames a database that cannot be read, with its log, to the first free `<name>.damaged-<n>`, and returns that path.
///
/// The store is an index that the agent builds again from its files, so it may begin anew; nothing is deleted. Only who
/// holds the state directory's lock may do this.
///
/// # Errors
///
/// The directory cannot be written.
pub fn set_aside_damaged(path: &Path) -> io::Result<PathBuf> {
    let free = |n: &u32| {
        let aside = beside(path, &format!(".damaged-{n}"));
        COMPANIONS.iter().all(|suffix| !beside(&aside, suffix).exists())
    };
    let number = (1..=u32::MAX).find(free).unwrap_or(u32::MAX);
    let aside = beside(path, &format!(".damaged-{number}"));
    for suffix in COMPANIONS {
        match fs::rename(beside(path, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    for number in crate::beats::files(path).unwrap_or_default() {
        let suffix = format!("{}{number}", crate::beats::SUFFIX);
        fs::rename(beside(path, &suffix), beside(&aside, &suffix))?;
    }
    Ok(aside)
}

/// The files of one database, with whatever files of beats lie beside it. The database goes first: a log left alone by a crash in between is found by [`open`],
/// while a database without its log would look whole and lack what the log holds.
const COMPANIONS: [&str; 3] = ["", "-wal", "-shm"];

/// Returns the path with a suffix to its last part.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum is the standard library's, and the rest of it is one case"
)]
fn from_io(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            OpenError::ReadOnly { path, source: source.into() }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { path, source: source.into() },
        _ => OpenError::Io { path, source: source.into() },
    }
}

fn from_sqlite(path: &Path, error: rusqlite::Error) -> OpenError {
    let trouble = Trouble::of(&error);
    let (path, source) = (path.to_owned(), error.into());
    match trouble {
        Trouble::Locked => OpenError::Locked { path, source },
        Trouble::Full => OpenError::Full { path, source },
        Trouble::ReadOnly => OpenError::ReadOnly { path, source },
        Trouble::Damaged => OpenError::Damaged { path, source },
        Trouble::NotADatabase => OpenError::NotADatabase { path },
        Trouble::CannotOpen => cannot_open(path, source),
        Trouble::Other => OpenError::Io { path, source },
    }
}

/// SQLite does not say why it could not make the log beside the database, so the system is asked by doing the same.
fn cannot_open(path: PathBuf, source: crate::Cause) -> OpenError {
    match OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(beside(&path, "-wal")) {
        Ok(_) => OpenError::Io { path, source },
        Err(error) => from_io(&path, error),
    }
}
