//! Makes a job: its folder appears whole, with the job's lock already held by its maker, or not at all.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use latido_process::lock::{Lock, LockError};
use latido_protocol::files::{JobFile, JobSettings, Want, Wanted};
use latido_protocol::layout::{JobDir, StateDir};
use latido_protocol::{FORMAT_VERSION, SubjectName, WallTime, disk};

use super::exposed::exposed_at;
use super::inspect::Living;
use super::prepared::{Prepared, PublishError};
use super::{inspect, ledger};

/// Variables of the caller that every attempt gets and `job.json` keeps: they say where things are and how text looks,
/// and hold no secret. All others reach the first attempt from its launcher and never touch the disk.
const KEPT: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "NODE_PATH",
    "GOPATH",
    "CARGO_HOME",
    "RUSTUP_HOME",
];

/// Beginnings of the names of such variables.
const KEPT_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// A name made from a program gets a number behind it when it is in use; with more than this many the caller has to
/// choose one.
const NUMBERED_MAX: u32 = 10_000;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// its name
    pub name: SubjectName,
    /// the program and its arguments
    pub command: Vec<String>,
    /// where it runs; absolute
    pub directory: PathBuf,
    /// variables for every attempt
    pub environment: BTreeMap<String, String>,
    /// what was decided for it
    pub settings: JobSettings,
    /// who asks, in words
    pub by: String,
}

/// A job that has just been made. Nobody else can launch it while this is held.
#[derive(Debug)]
pub struct Made {
    /// its file
    pub job: JobFile,
    /// the job's lock
    pub lock: Lock,
}

/// Why a job cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakeError {
    /// No program was given.
    #[error("make job {name} without a command")]
    NoCommand {
        /// its name
        name: SubjectName,
    },
    /// It runs nowhere.
    #[error("run job {name} in {directory}: there is no such directory")]
    NoDirectory {
        /// its name
        name: SubjectName,
        /// where it was to run
        directory: PathBuf,
    },
    /// It would run where latido keeps its own files, which a removal takes away.
    #[error("run job {name} in {directory}: that lies in latido's own state directory")]
    OwnDirectory {
        /// its name
        name: SubjectName,
        /// where it was to run
        directory: PathBuf,
    },
    /// Another job has the name.
    #[error("make job {name}: the name is in use by {existing}")]
    NameInUse {
        /// the name
        name: SubjectName,
        /// what the other job is, in words
        existing: String,
    },
    /// Every number behind the name is in use.
    #[error("find a free name like {name}")]
    NoFreeName {
        /// the name that was tried
        name: SubjectName,
    },
    /// Whoever replaces the state directory decides what is run in this user's name.
    #[error(
        "use the state directory {path}: everybody may write to {folder}, and so put another directory in its place"
    )]
    Exposed {
        /// which
        path: PathBuf,
        /// the folder above it that is open to all
        folder: PathBuf,
    },
    /// The state directory cannot be used.
    #[error("use the state directory {path}")]
    StateDir {
        /// which
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// Something runs as this job, and its files were removed under it.
    #[error("make job {name}: {} runs as this job, and its files were removed under it", inspect::list(living))]
    Unrecorded {
        /// its name
        name: SubjectName,
        /// which processes
        living: Vec<Living>,
    },
    /// Whether something runs as this job already cannot be told.
    #[error("tell whether anything runs as job {name}: {why}")]
    Unseen {
        /// its name
        name: SubjectName,
        /// why
        why: String,
    },
    /// The job's folder cannot be made.
    #[error("make {path}")]
    Folder {
        /// which folder
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// The job's lock cannot be made.
    #[error("make job {name}")]
    Lock {
        /// its name
        name: SubjectName,
        /// what the lock said
        source: LockError,
    },
    /// The job's files cannot be written.
    #[error("record job {name}")]
    Record {
        /// its name
        name: SubjectName,
        /// what the writer said
        source: disk::WriteError,
    },
}

/// Picks the variables that a job keeps from those of its caller.
pub fn kept_environment(caller: impl IntoIterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    caller
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            KEPT.contains(&name.as_str()) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect()
}

/// Makes the state directory and its `jobs` folder where they are absent, readable by their owner alone.
///
/// # Errors
/// When they cannot be made, or are not directories, or others may put another directory in their place.
pub fn prepare_state(state: &StateDir) -> Result<(), MakeError> {
    if let Some(folder) = exposed_at(state.path()) {
        return Err(MakeError::Exposed { path: state.path().to_owned(), folder });
    }
    let make = |path: &Path| {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| MakeError::StateDir { path: path.to_owned(), source })
    };
    make(state.path())?;
    make(&state.jobs())
}

/// Makes a job and takes its lock.
///
/// # Errors
/// When the name is in use, something runs as this job, or the files cannot be written; then nothing is left behind.
pub fn make(state: &StateDir, new: &NewJob, at: WallTime) -> Result<Made, MakeError> {
    if new.command.is_empty() {
        return Err(MakeError::NoCommand { name: new.name.clone() });
    }
    if !new.directory.is_dir() {
        return Err(MakeError::NoDirectory { name: new.name.clone(), directory: new.directory.clone() });
    }
    prepare_state(state)?;
    if is_within(&new.directory, &state.jobs()) {
        return Err(MakeError::OwnDirectory { name: new.name.clone(), directory: new.directory.clone() });
    }
    let folder = state.job(&new.name);
    if folder.path().symlink_metadata().is_ok() {
        return Err(in_use(state, &new.name));
    }
    // A folder that is not there says nothing of processes: somebody may have removed it under them.
    let living = inspect::marked(&folder).map_err(|why| MakeError::Unseen { name: new.name.clone(), why })?;
    if !living.is_empty() {
        return Err(MakeError::Unrecorded { name: new.name.clone(), living });
    }
    let prepared =
        Prepared::make(&state.jobs()).map_err(|source| MakeError::Folder { path: folder.path().to_owned(), source })?;
    let made = fill(state, &JobDir::new(prepared.path()), new, at)?;
    prepared.publish(folder.path()).map_err(|error| match error {
        PublishError::Exists => in_use(state, &new.name),
        PublishError::Sync(source) => MakeError::Record { name: new.name.clone(), source },
        PublishError::Name(source) => MakeError::Folder { path: folder.path().to_owned(), source },
    })?;
    Ok(made)
}

/// Makes a job under the given name or, when that is in use, under the same with `-2`, `-3` … behind it.
///
/// # Errors
/// As [`make`].
pub fn make_numbered(state: &StateDir, new: &NewJob, at: WallTime) -> Result<Made, MakeError> {
    let mut numbered = new.clone();
    for number in 1..=NUMBERED_MAX {
        if number > 1 {
            let Ok(name) = format!("{}-{number}", new.name).parse() else { break };
            numbered.name = name;
        }
        if state.job(&numbered.name).path().symlink_metadata().is_ok() {
            continue;
        }
        match make(state, &numbered, at) {
            Err(MakeError::NameInUse { .. } | MakeError::Unrecorded { .. }) => {}
            other => return other,
        }
    }
    Err(MakeError::NoFreeName { name: new.name.clone() })
}

/// The name that [`make_numbered`] would try first, without making anything.
pub fn free_name(state: &StateDir, wanted: &SubjectName) -> Option<SubjectName> {
    (1..=NUMBERED_MAX)
        .filter_map(|number| if number == 1 { Some(wanted.clone()) } else { format!("{wanted}-{number}").parse().ok() })
        .find(|name| state.job(name).path().symlink_metadata().is_err())
}

/// Whether a path lies in a folder, whatever links lead there.
fn is_within(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(path).starts_with(real(folder))
}

fn in_use(state: &StateDir, name: &SubjectName) -> MakeError {
    MakeError::NameInUse { name: name.clone(), existing: inspect::describe(state, name) }
}

fn fill(state: &StateDir, prepared: &JobDir, new: &NewJob, at: WallTime) -> Result<Made, MakeError> {
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| MakeError::Folder { path, source }
    };
    let lock = Lock::take(&prepared.lock())
        .map_err(|source| MakeError::Lock { name: new.name.clone(), source })?
        .ok_or_else(|| write(&prepared.lock())(io::ErrorKind::ResourceBusy.into()))?;
    fs::DirBuilder::new().mode(0o700).create(prepared.attempts()).map_err(write(&prepared.attempts()))?;
    let job = JobFile {
        version: FORMAT_VERSION,
        name: new.name.clone(),
        created_at: at,
        command: new.command.clone(),
        directory: new.directory.clone(),
        environment: new.environment.clone(),
        settings: new.settings.clone(),
    };
    // A job of this name may have been removed: who still holds one of its epochs must not hold one of the new job's.
    let epoch = ledger::highest_epoch(state, &new.name)
        .map_err(|source| MakeError::StateDir { path: state.ledger(), source })?;
    let wanted =
        Wanted { version: FORMAT_VERSION, want: Want::Run, epoch, at, until: None, by: new.by.clone(), budget: None };
    let record = |source| MakeError::Record { name: new.name.clone(), source };
    disk::replace_quick(&prepared.job(), &job).map_err(record)?;
    disk::replace_quick(&prepared.wanted(), &wanted).map_err(record)?;
    Ok(Made { job, lock })
}
