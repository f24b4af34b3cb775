use std::io;
use std::path::PathBuf;
use std::time::Duration;

use latido_process::identity::IdentityError;
use latido_process::lock::LockError;
use latido_protocol::files::Want;
use latido_protocol::{SubjectName, disk};

use super::inspect::{self, Living};
use super::launch::SUPERVISOR;
use super::recover::{self, RecoverError};
use super::sockets::SocketsError;
use super::wanted::WantError;

/// Why nothing was launched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no such job, or its `job.json` cannot be read.
    #[error("launch job {job}: {why}")]
    NoJob {
        /// which
        job: SubjectName,
        /// why
        why: String,
    },
    /// Somebody holds its lock: an attempt, or another starter. Nothing was written.
    #[error("launch job {job}: its lock is held{}", recover::holders_text(holders))]
    Locked {
        /// which
        job: SubjectName,
        /// who, where that can be told
        holders: Vec<Living>,
    },
    /// It is not wanted to run.
    #[error("launch job {job}: {} is wanted", want_word(*want))]
    NotWanted {
        /// which
        job: SubjectName,
        /// what is
        want: Want,
    },
    /// The attempt that was decided on has been overtaken.
    #[error("launch job {job} with epoch {epoch}: epoch {highest} has been given already")]
    Superseded {
        /// which
        job: SubjectName,
        /// what was decided on
        epoch: u64,
        /// the highest ever given
        highest: u64,
    },
    /// The lock is free, and yet something of the attempt before lives.
    #[error("launch job {job}: {} of attempt {attempt} lives", inspect::list(living))]
    Survivors {
        /// which
        job: SubjectName,
        /// of which attempt
        attempt: u32,
        /// which processes
        living: Vec<Living>,
    },
    /// Processes carry its mark, and its files know nothing of them: those were removed.
    #[error("launch job {job}: {} runs as this job, and its files were removed under it", inspect::list(living))]
    Unrecorded {
        /// which
        job: SubjectName,
        /// which processes
        living: Vec<Living>,
    },
    /// Whether anything of the attempt before lives cannot be told.
    #[error("launch job {job}: whether attempt {attempt} lives cannot be told: {why}")]
    Unknown {
        /// which
        job: SubjectName,
        /// which attempt
        attempt: u32,
        /// why
        why: String,
    },
    /// The directory that it runs in is gone. Nothing was started, and no attempt was spent.
    #[error("launch job {job} in {directory}: there is no such directory")]
    NoDirectory {
        /// which
        job: SubjectName,
        /// where it was to run
        directory: PathBuf,
    },
    /// The attempt before has no ending and cannot be given one.
    #[error("launch job {job} before the attempt before it is settled")]
    Previous {
        /// which
        job: SubjectName,
        /// why
        source: RecoverError,
    },
    /// What is wanted cannot be read or written.
    #[error("launch job {job}")]
    Wanted {
        /// which
        job: SubjectName,
        /// why
        source: WantError,
    },
    /// The lock cannot be looked at.
    #[error("take the lock of job {job}")]
    Lock {
        /// which
        job: SubjectName,
        /// what the lock said
        source: LockError,
    },
    /// Who this process is cannot be told, so that nobody could tell later whether it lives.
    #[error("launch job {job}")]
    Identity {
        /// which
        job: SubjectName,
        /// why
        source: IdentityError,
    },
    /// There is no place for its sockets.
    #[error("launch job {job}")]
    Sockets {
        /// which
        job: SubjectName,
        /// why
        source: SocketsError,
    },
    /// Its folder cannot be made.
    #[error("make {path}")]
    Folder {
        /// which
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// Its record cannot be written.
    #[error("record attempt {attempt} of job {job}")]
    Record {
        /// which
        job: SubjectName,
        /// which attempt
        attempt: u32,
        /// what the writer said
        source: disk::WriteError,
    },
    /// The supervisor's program is not where it should be.
    #[error("find the program {}, looked for at {looked_for}", SUPERVISOR)]
    NoSupervisor {
        /// where it was looked for
        looked_for: PathBuf,
    },
    /// The supervisor could not be started or could not do its own work.
    #[error("start the supervisor of attempt {attempt} of job {job}: {why}")]
    Supervisor {
        /// which
        job: SubjectName,
        /// which attempt
        attempt: u32,
        /// why
        why: String,
    },
    /// The supervisor runs and says nothing; what became of the attempt shows in its files.
    #[error("hear from the supervisor of attempt {attempt} of job {job} within {within:?}")]
    Silent {
        /// which
        job: SubjectName,
        /// which attempt
        attempt: u32,
        /// how long was waited
        within: Duration,
    },
}

fn want_word(want: Want) -> &'static str {
    match want {
        Want::Run => "run",
        Want::Stop => "stop",
        Want::Pause => "pause",
        Want::Resume => "resume",
    }
}
