//! How a supervisor is started.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::pipe::PipeFlags;
use rustix::process::{WaitId, WaitIdOptions};

use crate::descriptors;
use crate::lock::Lock;
use crate::sys;

/// The variable by which a supervisor is told from the processes of an attempt: it names the attempt directory.
pub const SUPERVISES: &str = "LATIDO_SUPERVISES";

/// The second argument of a supervisor that waits for the word that its attempt is recorded.
const HELD: &str = "--held";

/// The word. The end of the pipe without it means that there is no attempt.
const WORD: &[u8] = b"1";

/// Variables that are meant for a supervisor and not for its job.
pub const SUPERVISOR_ALONE: [&str; 2] = [SUPERVISES, descriptors::LIMIT];

/// Variables that mean one attempt. A supervisor that is started from inside another attempt must not carry its marks,
/// or it would be ended with it.
const OF_ONE_ATTEMPT: [&str; 16] = [
    "LATIDO_JOB",
    "LATIDO_ATTEMPT",
    "LATIDO_EPOCH",
    "LATIDO_SOCKET",
    "LATIDO_TOKEN",
    "LATIDO_CHECKPOINT",
    "LATIDO_DIR",
    "LATIDO_OUTCOME",
    "LATIDO_CODE",
    "LATIDO_SIGNAL",
    "LATIDO_CLASS",
    "LATIDO_DETAIL",
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    descriptors::LIMIT,
];

/// Why a supervisor could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The attempt directory has no absolute form.
    #[error("find {path}")]
    Path {
        /// which one
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// No pipe to it.
    #[error("make a pipe to {program}")]
    Pipe {
        /// the supervisor
        program: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// It could not be executed.
    #[error("execute {program}")]
    Execute {
        /// the supervisor
        program: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
}

/// A supervisor that was started.
#[derive(Debug)]
pub struct Starting {
    /// its pid
    pub pid: u32,
    /// the reading end of its report: one line of [`latido_protocol::attempt::Report`], then the end of the file. The
    /// end without a line means that it died before it could report.
    pub report: File,
}

/// A supervisor that was started and waits for the word that its attempt is recorded. It gets ready meanwhile; dropped
/// without the word, also because its starter was killed, it ends without having done anything.
#[derive(Debug)]
pub struct Held {
    starting: Starting,
    word: File,
}

impl Held {
    /// Gives the word.
    pub fn go(mut self) -> Starting {
        // One that has died does not hear it, and its report ends without a line.
        let _ = self.word.write_all(WORD);
        self.starting
    }

    /// Lets it end without the word. It has done so, and the job's lock is free, once its report ends.
    pub fn dismiss(self) -> Starting {
        self.starting
    }
}

/// Starts a supervisor for an attempt that is about to be recorded: while the disk is waited for, it gets ready. Else as
/// [`start_supervisor`].
///
/// # Errors
/// As [`start_supervisor`].
pub fn hold_supervisor(program: &Path, attempt_dir: &Path, lock: Lock) -> Result<Held, StartError> {
    let (listen, word) = pipe(program)?;
    let starting = start(program, attempt_dir, &[OsStr::new(HELD)], lock, Stdio::from(listen))?;
    Ok(Held { starting, word: File::from(word) })
}

/// Starts a supervisor for an attempt and hands it the job's lock.
///
/// The lock is its standard input and the report its standard output, so nothing has to be inherited by number and
/// nothing can be inherited by a process that another thread starts in the same moment. The supervisor is a child of the
/// caller, who collects it with [`collect`] once it has ended, or ends first.
///
/// # Errors
/// When it cannot be executed; the lock is free then.
pub fn start_supervisor(program: &Path, attempt_dir: &Path, lock: Lock) -> Result<Starting, StartError> {
    start(program, attempt_dir, &[], lock, Stdio::null())
}

fn pipe(program: &Path) -> Result<(OwnedFd, OwnedFd), StartError> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|source| StartError::Pipe { program: program.to_owned(), source: source.into() })
}

fn start(program: &Path, attempt_dir: &Path, how: &[&OsStr], lock: Lock, error: Stdio) -> Result<Starting, StartError> {
    let attempt_dir =
        std::path::absolute(attempt_dir).map_err(|source| StartError::Path { path: attempt_dir.to_owned(), source })?;
    let (report, write) = pipe(program)?;
    let arguments = [&[OsStr::new("latido-supervisor"), attempt_dir.as_os_str()], how].concat();
    let limit = descriptors::of_children();
    let mut set = vec![(SUPERVISES, attempt_dir.as_os_str())];
    set.extend(limit.as_ref().map(|limit| (descriptors::LIMIT, OsStr::new(limit))));
    let standard = [Stdio::from(lock.into_fd()), Stdio::from(write), error];
    let pid = sys::start(program, &arguments, &OF_ONE_ATTEMPT, &set, standard)
        .map_err(|source| StartError::Execute { program: program.to_owned(), source })?;
    Ok(Starting { pid, report: File::from(report) })
}

/// Collects a child of this process that has ended. `false`: it has not, or is no child.
pub fn collect(pid: u32) -> bool {
    let Some(pid) = sys::pid(pid) else { return false };
    matches!(rustix::process::waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG), Ok(Some(_)))
}

/// Collects every child of this process that has ended.
pub fn collect_all() {
    let ended = || rustix::process::waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    while matches!(ended(), Ok(Some(_))) {}
}

/// What a supervisor gets from its starter.
#[derive(Debug)]
pub struct Inherited {
    /// the descriptor that holds the job's lock
    pub lock: OwnedFd,
    /// where the report goes
    pub report: File,
    /// where the word comes from, for one that is held
    word: Option<File>,
}

impl Inherited {
    /// Waits for the word of the starter. `false`: there is no attempt.
    pub fn may_go(&mut self) -> bool {
        let Some(mut word) = self.word.take() else { return true };
        let mut said = [0; WORD.len()];
        word.read_exact(&mut said).is_ok() && said == *WORD
    }
}

/// Takes what the starter handed over. To be called first thing in the supervisor's `main` and once: every descriptor
/// above the standard three is closed, standard input and output become `/dev/null`. The limit of descriptors is the
/// starter's own from before it raised it.
///
/// # Errors
/// When the kernel refuses, as it does when standard input or output is closed.
pub fn inherit() -> io::Result<Inherited> {
    let (lock, report) = sys::take_standard()?;
    descriptors::take_over();
    let is_held = std::env::args_os().nth(2).is_some_and(|how| how == HELD);
    let word = is_held.then(sys::take_error).transpose()?;
    Ok(Inherited { lock, report: File::from(report), word: word.map(File::from) })
}
