//! Removes a job and its records, and frees its name.

use std::fs;
use std::io;
use std::path::PathBuf;

use latido_process::lock::Lock;
use latido_protocol::disk::WriteError;
use latido_protocol::layout::{JobDir, StateDir};
use latido_protocol::{SubjectName, WallTime};

use super::inspect::{self, Living};
use super::ledger;
use super::records;
use super::recover::{self, RecoverError, Settling};
use super::sockets::{self, short_id};

/// Why a job cannot be removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// There is no such job.
    #[error("remove job {job}: there is no such job")]
    NoJob {
        /// which
        job: SubjectName,
    },
    /// Something of it lives.
    #[error("remove job {job}: {} lives", inspect::list(living))]
    Lives {
        /// which
        job: SubjectName,
        /// which processes
        living: Vec<Living>,
    },
    /// Whether something of it lives cannot be told.
    #[error("remove job {job}: whether something of it lives cannot be told: {why}")]
    Unknown {
        /// which
        job: SubjectName,
        /// why
        why: String,
    },
    /// Its last attempt cannot be settled.
    #[error("remove job {job}")]
    Recover {
        /// which
        job: SubjectName,
        /// why
        source: RecoverError,
    },
    /// The ledger, which keeps what is known of it, cannot be put on the disk.
    #[error("keep what is known of it")]
    Ledger {
        /// what the writer said
        source: WriteError,
    },
    /// Its files cannot be removed. When the folder is left, it has another name, and the job's is free.
    #[error("remove {path}")]
    Files {
        /// which
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
}

/// Removes a job of which nothing lives. An attempt that was lost is recorded first, so that the ledger tells of it.
///
/// # Errors
/// When something lives, or the files cannot be removed.
pub fn remove(state: &StateDir, job: &SubjectName, by: &str, at: WallTime) -> Result<(), RemoveError> {
    let folder = state.job(job);
    if !records::exists(&folder) {
        return Err(RemoveError::NoJob { job: job.clone() });
    }
    let lock = take_lock(job, &folder)?;
    let read = records::read_job(&folder);
    for number in &read.attempts {
        let attempt = records::read_attempt(&folder, *number, &mut Vec::new());
        let living = inspect::living(&inspect::tree_of(&folder, &attempt))
            .map_err(|why| RemoveError::Unknown { job: job.clone(), why })?;
        if !living.is_empty() {
            return Err(RemoveError::Lives { job: job.clone(), living });
        }
    }
    if let Some(number) = read.attempts.last() {
        recover::settle(state, job, *number, &lock, &Settling::lost(by, at))
            .map_err(|source| RemoveError::Recover { job: job.clone(), source })?;
    }
    for number in &read.attempts {
        if let Some(start) = records::read_attempt(&folder, *number, &mut Vec::new()).start {
            sockets::remove_folder(&start.sockets);
        }
    }
    // Its endings go with it; from here on the ledger alone knows its epochs.
    ledger::sync(state).map_err(|source| RemoveError::Ledger { source })?;
    let aside = state.jobs().join(format!(".removed-{}", short_id()));
    fs::rename(folder.path(), &aside)
        .map_err(|source| RemoveError::Files { path: folder.path().to_owned(), source })?;
    drop(lock);
    fs::remove_dir_all(&aside).map_err(|source| RemoveError::Files { path: aside, source })
}

fn take_lock(job: &SubjectName, folder: &JobDir) -> Result<Lock, RemoveError> {
    recover::take_lock_after_end(job, folder).map_err(|error| {
        let job = job.clone();
        if let RecoverError::Locked { holders, .. } = error {
            RemoveError::Lives { job, living: holders }
        } else {
            RemoveError::Recover { job, source: error }
        }
    })
}
