//! Changes what is wanted of a job, under the job's short lock, the same way for the command line and the agent.

use std::path::PathBuf;
use std::time::Duration;

use latido_process::lock::{Lock, LockError, ShortLock};
use latido_protocol::files::{Want, Wanted};
use latido_protocol::layout::JobDir;
use latido_protocol::{FORMAT_VERSION, WallTime, disk};

use super::records;

/// The short lock is held for a few file operations; who cannot get it in this time meets a stopped holder or a dead
/// disk.
pub const SHORT_WITHIN: Duration = Duration::from_secs(5);

/// Who wanted it, where the file cannot say.
const REBUILT_BY: &str = "nobody: the file was missing or damaged";

/// Why what is wanted cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WantError {
    /// There is no such job.
    #[error("find a job in {folder}")]
    NoJob {
        /// its folder
        folder: PathBuf,
    },
    /// Somebody holds the short lock and does not let go.
    #[error("lock {folder} for a moment")]
    Busy {
        /// its folder
        folder: PathBuf,
        /// what the lock said
        source: LockError,
    },
    /// The file was written by a newer version, or cannot be looked at.
    #[error("tell what is wanted of the job in {folder}")]
    Read {
        /// its folder
        folder: PathBuf,
        /// what the reader said
        source: disk::ReadError,
    },
    /// The new one cannot be written; the old one stands.
    #[error("record what is wanted of the job in {folder}")]
    Write {
        /// its folder
        folder: PathBuf,
        /// what the writer said
        source: disk::WriteError,
    },
}

/// The job's short lock, held.
#[derive(Debug)]
pub struct Short {
    folder: JobDir,
    _lock: ShortLock,
}

/// Takes the short lock of a job.
///
/// # Errors
/// When there is no such job, or the lock cannot be had in a few seconds.
pub fn take_short(folder: &JobDir) -> Result<Short, WantError> {
    if !folder.path().is_dir() {
        return Err(WantError::NoJob { folder: folder.path().to_owned() });
    }
    let lock = Lock::take_short(folder.path(), SHORT_WITHIN)
        .map_err(|source| WantError::Busy { folder: folder.path().to_owned(), source })?;
    Ok(Short { folder: folder.clone(), _lock: lock })
}

impl Short {
    /// What is wanted at present. A file that is absent or damaged is rebuilt: the job is wanted to stop, since nobody
    /// can know whether somebody stopped it, with the highest epoch that its attempts show.
    ///
    /// # Errors
    /// When the file was written by a newer version.
    pub fn read(&self, at: WallTime) -> Result<Wanted, WantError> {
        let highest = records::highest_attempt_epoch(&self.folder);
        match disk::read::<Wanted>(&self.folder.wanted()) {
            Ok(Some(mut wanted)) => {
                wanted.epoch = wanted.epoch.max(highest);
                Ok(wanted)
            }
            Err(source) if !records::is_damage(&source) => {
                Err(WantError::Read { folder: self.folder.path().to_owned(), source })
            }
            Ok(None) | Err(_) => Ok(Wanted {
                version: FORMAT_VERSION,
                want: Want::Stop,
                epoch: highest,
                at,
                until: None,
                by: REBUILT_BY.to_owned(),
            }),
        }
    }

    /// Replaces what is wanted, durably.
    ///
    /// # Errors
    /// When it cannot be written; the old one stands.
    pub fn write(&self, wanted: &Wanted) -> Result<(), WantError> {
        disk::replace(&self.folder.wanted(), wanted)
            .map_err(|source| WantError::Write { folder: self.folder.path().to_owned(), source })
    }

    /// Replaces what is wanted; a loss of power leaves the old one or this one, whole.
    ///
    /// # Errors
    /// As [`Short::write`].
    pub fn write_whole(&self, wanted: &Wanted) -> Result<(), WantError> {
        disk::replace_whole(&self.folder.wanted(), wanted)
            .map_err(|source| WantError::Write { folder: self.folder.path().to_owned(), source })
    }

    /// Changes what is wanted and keeps the epoch; returns what was wanted before.
    ///
    /// # Errors
    /// As [`Short::read`] and [`Short::write`].
    pub fn change(&self, want: Want, by: &str, at: WallTime) -> Result<Wanted, WantError> {
        let before = self.read(at)?;
        // A resume is asked for anew each time: the one before may have been answered, and its answer may stand in the way.
        if before.want != want || want == Want::Resume || before.by == REBUILT_BY {
            self.write(&Wanted { want, at, until: None, by: by.to_owned(), ..before.clone() })?;
        }
        Ok(before)
    }
}

/// Changes what is wanted of a job; returns what was wanted before.
///
/// # Errors
/// When there is no such job, or its files cannot be read or written.
pub fn change(folder: &JobDir, want: Want, by: &str, at: WallTime) -> Result<Wanted, WantError> {
    take_short(folder)?.change(want, by, at)
}
