//! Locks that the kernel frees: `flock` on an open file description.
//!
//! A lock is given back only by closing every copy of its descriptor, so it lives as long as the last process that
//! inherited it. `LOCK_UN` is never called: one holder would free it for all.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::proc;
use crate::sys;

/// How long a taker tries again. A probe holds the lock shared for some microseconds; one that was interrupted in between
/// by the scheduler of a loaded machine needs some milliseconds.
const TAKE_FOR: Duration = Duration::from_millis(50);

/// Between two tries: far above a probe's time and far below what a person notices.
const TRY_EVERY: Duration = Duration::from_millis(1);

/// Why a lock could not be asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The file or folder could not be opened.
    #[error("open lock {path}")]
    Open {
        /// which one
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// The kernel refused to lock for another reason than a holder.
    #[error("lock {path}")]
    Flock {
        /// which one
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// A short lock stayed held.
    #[error("lock {path}: it stayed held for {waited:?}")]
    Busy {
        /// which one
        path: PathBuf,
        /// how long it was tried
        waited: Duration,
    },
}

/// An exclusive lock that is held.
#[derive(Debug)]
pub struct Lock {
    fd: OwnedFd,
}

/// A short lock on a folder; held until dropped, and not handed on.
#[derive(Debug)]
pub struct ShortLock {
    _fd: OwnedFd,
}

impl Lock {
    /// Takes the lock, making its file where there is none. `None`: somebody holds it.
    ///
    /// # Errors
    /// When the file cannot be opened or locked.
    pub fn take(path: &Path) -> Result<Option<Self>, LockError> {
        let until = sys::monotonic() + TAKE_FOR;
        loop {
            let fd = open(path, OFlags::RDWR | OFlags::CREATE)?;
            // A lock on a file that was removed meanwhile would keep nobody out.
            if try_flock(&fd, path, FlockOperation::NonBlockingLockExclusive)? && is_at(&fd, path) {
                return Ok(Some(Self { fd }));
            }
            if sys::monotonic() >= until {
                return Ok(None);
            }
            sys::pause(TRY_EVERY);
        }
    }

    /// Takes over a descriptor that came by inheritance. `None`: it does not hold the lock of this file.
    ///
    /// # Errors
    /// When the kernel refuses for another reason.
    pub fn inherited(fd: OwnedFd, path: &Path) -> Result<Option<Self>, LockError> {
        // On a description that holds the lock this changes nothing; on another one it fails while the lock is held.
        let holds = is_at(&fd, path) && try_flock(&fd, path, FlockOperation::NonBlockingLockExclusive)?;
        Ok(holds.then_some(Self { fd }))
    }

    /// True when somebody holds the lock; an absent file is not held.
    ///
    /// # Errors
    /// When the file cannot be opened or locked.
    pub fn is_held(path: &Path) -> Result<bool, LockError> {
        let fd = match open(path, OFlags::RDONLY) {
            Ok(fd) => fd,
            Err(LockError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(!try_flock(&fd, path, FlockOperation::NonBlockingLockShared)?)
    }

    /// Whether the file of this lock is the one at the path: somebody may have removed it, and another have made its own.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.fd, path)
    }

    /// Takes the short lock of a folder, trying for at most `within`.
    ///
    /// # Errors
    /// [`LockError::Busy`] when it stayed held.
    pub fn take_short(folder: &Path, within: Duration) -> Result<ShortLock, LockError> {
        let until = sys::monotonic() + within;
        let fd = open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
        loop {
            if try_flock(&fd, folder, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(ShortLock { _fd: fd });
            }
            if sys::monotonic() >= until {
                return Err(LockError::Busy { path: folder.to_owned(), waited: within });
            }
            sys::pause(TRY_EVERY);
        }
    }

    /// Gives the descriptor away; whoever has it holds the lock.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The processes that hold a lock, as far as `/proc` shows them: for messages, never for decisions.
pub fn holders(path: &Path) -> Vec<u32> {
    let Ok(file) = std::fs::metadata(path) else { return Vec::new() };
    let mut pids = proc::pids().unwrap_or_default();
    pids.retain(|pid| proc::holds_lock(*pid, file.dev(), file.ino()));
    pids
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, LockError> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)
        .map_err(|source| LockError::Open { path: path.to_owned(), source: source.into() })
}

fn try_flock(fd: &OwnedFd, path: &Path, operation: FlockOperation) -> Result<bool, LockError> {
    match rustix::io::retry_on_intr(|| rustix::fs::flock(fd, operation)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(source) => Err(LockError::Flock { path: path.to_owned(), source: source.into() }),
    }
}

fn is_at(fd: &OwnedFd, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (rustix::fs::fstat(fd), rustix::fs::stat(path)) else { return false };
    open.st_dev == named.st_dev && open.st_ino == named.st_ino
}
