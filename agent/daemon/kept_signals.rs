//! Signals of checks that come while no agent runs: kept in a file until one takes them in.
//!
//! Whoever writes the file holds the state directory's short lock, so that no line is lost between a reader and a writer.

use std::io;
use std::time::Duration;

use latido_process::lock::{Lock, LockError, ShortLock};
use latido_protocol::disk::{self, ReadError, WriteError};
use latido_protocol::layout::StateDir;

pub use latido_protocol::KeptSignal;

use crate::jobs::make::{self, MakeError};

/// Bytes above which the older half is dropped: some thousand signals, more than the newest of every check.
const KEPT_MAX: u64 = 1024 * 1024;

/// The short lock is held for a few file operations.
const SHORT_WITHIN: Duration = Duration::from_secs(2);

/// Why a signal could not be kept, or what was kept not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The state directory cannot be made.
    #[error("keep signals")]
    StateDir {
        /// why
        source: MakeError,
    },
    /// Somebody else holds the short lock.
    #[error("keep signals")]
    Lock {
        /// what the lock said
        source: LockError,
    },
    /// The file cannot be written.
    #[error("keep signals")]
    Write {
        /// what the writer said
        source: WriteError,
    },
    /// The file cannot be read.
    #[error("read the signals that were kept")]
    Read {
        /// what the reader said
        source: ReadError,
    },
    /// What was taken in cannot be removed.
    #[error("remove the signals that were taken in")]
    Remove {
        /// what the system said
        source: io::Error,
    },
}

/// Keeps a signal, durably, behind those that were kept before.
///
/// # Errors
/// When it cannot be written; then it is not kept.
pub fn keep(state: &StateDir, signal: &KeptSignal) -> Result<(), KeepError> {
    make::prepare_state(state).map_err(|source| KeepError::StateDir { source })?;
    let _short = take_short(state)?;
    let path = state.kept_signals();
    let write = |source| KeepError::Write { source };
    if path.metadata().is_ok_and(|file| file.len() > KEPT_MAX) {
        disk::keep_newest(&path, KEPT_MAX / 2).map_err(write)?;
    }
    disk::append_line(&path, signal, true).map_err(write)
}

/// What is kept, the oldest first. A damaged line is passed over.
///
/// # Errors
/// When the file cannot be read.
pub fn kept(state: &StateDir) -> Result<Vec<KeptSignal>, KeepError> {
    let lines = disk::read_lines(&state.kept_signals()).map_err(|source| KeepError::Read { source })?;
    Ok(lines.records)
}

/// Removes what is kept, unless something came after `last`.
///
/// # Errors
/// When the file cannot be read or removed.
pub fn remove(state: &StateDir, last: &KeptSignal) -> Result<(), KeepError> {
    let _short = take_short(state)?;
    if kept(state)?.last() == Some(last) {
        std::fs::remove_file(state.kept_signals()).map_err(|source| KeepError::Remove { source })?;
    }
    Ok(())
}

fn take_short(state: &StateDir) -> Result<ShortLock, KeepError> {
    Lock::take_short(state.path(), SHORT_WITHIN).map_err(|source| KeepError::Lock { source })
}

#[cfg(test)]
mod tests {
    use latido_protocol::WallTime;
    use latido_protocol::control::CheckSignal;

    use super::*;

    fn signal(number: u32) -> KeptSignal {
        KeptSignal {
            id: number.to_string(),
            at: WallTime::from_millis(number.into()),
            check: "backup".parse().unwrap(),
            signal: CheckSignal::Success,
            run_id: None,
            state: Some("x".repeat(1000)),
        }
    }

    fn numbers(state: &StateDir) -> Vec<u32> {
        kept(state).unwrap().iter().map(|signal| signal.id.parse().unwrap()).collect()
    }

    #[test]
    fn what_came_after_the_last_that_was_taken_in_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::new(folder.path().join("state"));
        (1..=3).for_each(|number| keep(&state, &signal(number)).unwrap());
        remove(&state, &signal(2)).unwrap();
        assert_eq!(numbers(&state), [1, 2, 3]);
        remove(&state, &signal(3)).unwrap();
        assert_eq!(numbers(&state), [0; 0]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_newest_stay() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::new(folder.path());
        let path = state.kept_signals();
        std::fs::write(&path, format!("{}\n", serde_json::to_string(&signal(1)).unwrap()).repeat(1000)).unwrap();
        (2..=3).for_each(|number| keep(&state, &signal(number)).unwrap());
        assert!(path.metadata().unwrap().len() < KEPT_MAX);
        assert!(numbers(&state).ends_with(&[1, 2, 3]));
    }
}
