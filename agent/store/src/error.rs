//! What can go wrong, sorted by what the reader should do about it.

use std::path::PathBuf;

/// The error behind an error, whatever database it came from.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a store could not be opened. Each text fits after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A newer latido has written it; an older one would not understand it.
    #[error("open the store {path}: it has version {found}, this latido knows versions up to {known}")]
    NewerVersion {
        /// the database file
        path: PathBuf,
        /// its version
        found: u32,
        /// the newest that this program knows
        known: u32,
    },
    /// The file is something else than a database of latido.
    #[error("open the store {path}: it is not a database of latido")]
    NotADatabase {
        /// the file
        path: PathBuf,
    },
    /// It is a database and cannot be read whole.
    #[error("open the store {path}: it is damaged")]
    Damaged {
        /// the database file
        path: PathBuf,
        /// what was found
        source: Cause,
    },
    /// The file or its directory cannot be written.
    #[error("open the store {path}: the file or its directory is not writable")]
    ReadOnly {
        /// the database file
        path: PathBuf,
        /// what the system said
        source: Cause,
    },
    /// No space is left.
    #[error("open the store {path}: no space is left on its disk")]
    Full {
        /// the database file
        path: PathBuf,
        /// what the system said
        source: Cause,
    },
    /// Another program kept it locked.
    #[error("open the store {path}: another program keeps it locked")]
    Locked {
        /// the database file
        path: PathBuf,
        /// what the database said
        source: Cause,
    },
    /// Anything else, by the system or by the database.
    #[error("open the store {path}")]
    Io {
        /// the database file
        path: PathBuf,
        /// what was said
        source: Cause,
    },
}

impl OpenError {
    /// Says whether setting the file aside and starting anew is the way out (see `set_aside_damaged`).
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::NotADatabase { .. } | Self::Damaged { .. })
    }
}

/// Why a store could not do what was asked. Each text fits after "cannot".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another program kept the store locked for longer than the store waits. Passes by itself.
    #[error("use the store {store}: another program keeps it locked")]
    Locked {
        /// the store
        store: String,
        /// what the database said
        source: Cause,
    },
    /// No space is left. Passes when there is space again.
    #[error("write to the store {store}: no space is left on its disk")]
    Full {
        /// the store
        store: String,
        /// what the database said
        source: Cause,
    },
    /// The store has become read-only.
    #[error("write to the store {store}: it is not writable")]
    ReadOnly {
        /// the store
        store: String,
        /// what the database said
        source: Cause,
    },
    /// The store cannot be read whole. Does not pass.
    #[error("use the store {store}: it is damaged")]
    Damaged {
        /// the store
        store: String,
        /// what was found
        source: Cause,
    },
    /// A newer latido has written what lies beside the store; an older one would not understand it.
    #[error("read {store}: it has version {found}, this latido knows versions up to {known}")]
    NewerVersion {
        /// the file
        store: String,
        /// its version
        found: u32,
        /// the newest that this program knows
        known: u32,
    },
    /// Another agent has taken the store since this one did. Does not pass: whoever is told has to end.
    #[error("write to the store {store}: another agent has taken it over")]
    TakenOver {
        /// the store
        store: String,
    },
    /// A number does not fit into the store's 63 bits.
    #[error("store {field} {value}: it is larger than 2^63 - 1")]
    TooLarge {
        /// which number
        field: &'static str,
        /// its value
        value: u64,
    },
    /// The plugin keeps too much.
    #[error("keep {bytes} bytes of state for the plugin {plugin}: the limit is {limit}")]
    PluginStateFull {
        /// the plugin's name
        plugin: String,
        /// what it would keep then
        bytes: usize,
        /// what it may keep
        limit: usize,
    },
    /// Anything else, by the system or by the database.
    #[error("use the store {store}")]
    Io {
        /// the store
        store: String,
        /// what was said
        source: Cause,
    },
}

/// What an error of SQLite means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// passes when another connection lets go
    Locked,
    /// passes when there is space
    Full,
    /// a right is missing
    ReadOnly,
    /// a page or a value is not what it must be
    Damaged,
    /// the header is another's
    NotADatabase,
    /// a file beside the database cannot be made
    CannotOpen,
    /// none of these
    Other,
}

impl Trouble {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the enums are SQLite's, and the rest of them is one case")]
    pub(crate) fn of(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        let rusqlite::Error::SqliteFailure(failure, _) = error else {
            return match error {
                // A value of another type or range than every writer of this store gives, or a row that must be there.
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::QueryReturnedNoRows => Self::Damaged,
                _ => Self::Other,
            };
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => Self::Locked,
            ErrorCode::DiskFull => Self::Full,
            // The index of the log could not be grown, which a full disk alone does.
            ErrorCode::SystemIoFailure if failure.extended_code == SQLITE_IOERR_SHMSIZE => Self::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly,
            ErrorCode::DatabaseCorrupt => Self::Damaged,
            ErrorCode::NotADatabase => Self::NotADatabase,
            ErrorCode::CannotOpen => Self::CannotOpen,
            _ => Self::Other,
        }
    }
}
