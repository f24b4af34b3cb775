//! How a supervisor starts the job.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

use crate::identity;
use crate::pidfd::Pidfd;
use crate::setup::{Setup, SetupError};
use crate::sys;

/// Where a program is looked for when the job's environment has no `PATH`: what the shells of this platform take.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// What is to be run.
#[derive(Debug)]
pub struct Command<'a> {
    /// the program and its arguments
    pub command: &'a [String],
    /// where it runs; a program that is named with a relative path is found from here
    pub directory: &'a Path,
    /// its whole environment
    pub environment: &'a [(OsString, OsString)],
    /// its standard output and standard error
    pub output: BorrowedFd<'a>,
    /// descriptors that it inherits by number
    pub keep: &'a [BorrowedFd<'a>],
    /// its file mode creation mask, unless its setup has another
    pub umask: u32,
    /// what is done to its process
    pub setup: &'a Setup,
}

/// Why a job could not be run. The text tells a person what to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No program was named.
    #[error("run an empty command")]
    EmptyCommand,
    /// A zero byte in the command or the environment.
    #[error("run {program}: an argument or a variable holds a zero byte")]
    ZeroByte {
        /// the program
        program: String,
    },
    /// Its directory is not there.
    #[error("run in {directory}: there is no such directory")]
    NoDirectory {
        /// which one
        directory: PathBuf,
    },
    /// Its directory cannot be entered.
    #[error("enter the directory {directory}")]
    Directory {
        /// which one
        directory: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// No such program in the places of `PATH`.
    #[error("find {program} in PATH ({path})")]
    NotInPath {
        /// the program
        program: String,
        /// where it was looked for
        path: String,
    },
    /// No such file.
    #[error("run {program}: there is no such file")]
    NotFound {
        /// the program
        program: PathBuf,
    },
    /// It is a directory.
    #[error("run {program}: it is a directory")]
    IsDirectory {
        /// the program
        program: PathBuf,
    },
    /// Nobody may execute it.
    #[error("run {program}: it is not executable; `chmod +x` makes it so")]
    NotExecutable {
        /// the program
        program: PathBuf,
    },
    /// This user may not, or the file system forbids it.
    #[error("run {program}: permission denied")]
    Forbidden {
        /// the program
        program: PathBuf,
    },
    /// No byte in it.
    #[error("run {program}: the file is empty")]
    EmptyFile {
        /// the program
        program: PathBuf,
    },
    /// Its first line ends with a carriage return, which became part of the interpreter's name.
    #[error(
        "run {program}: its first line ends in a carriage return (Windows line ends), so {interpreter:?} is not found"
    )]
    CarriageReturn {
        /// the script
        program: PathBuf,
        /// what the kernel looked for
        interpreter: String,
    },
    /// The interpreter of its first line is not there.
    #[error("run {program}: its interpreter {interpreter} is missing")]
    NoInterpreter {
        /// the script
        program: PathBuf,
        /// what is missing
        interpreter: String,
    },
    /// A program whose loader (dynamic linker) is not there.
    #[error("run {program}: the dynamic linker it asks for is missing")]
    NoLoader {
        /// the program
        program: PathBuf,
    },
    /// Neither a program for this machine nor a script.
    #[error("run {program}: exec format error: no program for this machine, and no script that begins with #!")]
    WrongFormat {
        /// the program
        program: PathBuf,
    },
    /// More arguments and environment than the kernel takes.
    #[error("run {program}: its arguments and environment are too long")]
    TooLong {
        /// the program
        program: PathBuf,
    },
    /// The kernel refused otherwise.
    #[error("run {program}")]
    Execute {
        /// the program
        program: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// Its process could not be made as it was asked for.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It ran, and could not be identified; it was killed.
    #[error("identify {program} after its start")]
    Identify {
        /// the program
        program: PathBuf,
    },
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// with this status
    Exited(i32),
    /// by this signal
    Signaled(i32),
    /// by this signal, and the kernel wrote its core
    Dumped(i32),
}

/// What the kernel counted for the children that were collected, and for theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode
    pub user: Duration,
    /// CPU time in the kernel
    pub system: Duration,
    /// the largest resident set of one of them, in KiB
    pub max_rss_kib: u64,
}

/// Runs a job: in a session and process group of its own, standard input from `/dev/null`, signals as they are by
/// default. Returns once the program has been executed; the process is a child of the caller and not yet collected.
///
/// A file that the kernel cannot execute is an error; it is never handed to a shell.
///
/// # Errors
/// Each cause by its name. Nothing runs then.
pub fn run(job: &Command<'_>) -> Result<Pidfd, RunError> {
    let name = job.command.first().filter(|name| !name.is_empty()).ok_or(RunError::EmptyCommand)?;
    let zero = |_| RunError::ZeroByte { program: name.clone() };
    CString::new(name.as_str()).map_err(zero)?;
    let directory = open_directory(job.directory)?;
    let program = find(name, job)?;
    let image = sys::Image {
        program: c_string(program.as_os_str()).map_err(zero)?,
        arguments: job
            .command
            .iter()
            .map(|text| CString::new(text.as_str()))
            .collect::<Result<_, _>>()
            .map_err(zero)?,
        environment: job
            .environment
            .iter()
            .map(|(name, value)| {
                let mut entry = name.clone();
                entry.push("=");
                entry.push(value);
                CString::new(entry.into_vec())
            })
            .collect::<Result<_, _>>()
            .map_err(zero)?,
    };
    let umask = Mode::from_raw_mode(job.setup.umask.unwrap_or(job.umask));
    let pid = sys::run(image, directory.as_fd(), job.output, job.keep, umask, job.setup)
        .map_err(|(step, source)| refuse(job, program.clone(), step, source))?;
    let identity = identity::of_uncollected(pid).ok().flatten();
    match identity.map(Pidfd::of_child) {
        Some(Ok(pidfd)) => Ok(pidfd),
        Some(Err(_)) | None => {
            // Our own child, not collected: the pid cannot mean another process.
            if let Some(pid) = sys::pid(pid) {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            }
            Err(RunError::Identify { program })
        }
    }
}

/// How a child ended, without collecting it: its pid, and the number of its group, cannot be given to another process
/// before [`collect_orphans`]. `None`: it has not ended.
pub fn ending(child: &Pidfd) -> Option<Ending> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = rustix::process::waitid(WaitId::PidFd(child.as_fd()), options).ok().flatten()?;
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Ending::Exited(code)),
        (None, Some(signal)) if status.dumped() => Some(Ending::Dumped(signal)),
        (None, Some(signal)) => Some(Ending::Signaled(signal)),
        (None, None) => None,
    }
}

/// What became of a child that may be suspended and continued: `true` for suspended (SIGSTOP and its like), `None` for no
/// change since the last question.
pub fn suspension(child: &Pidfd) -> Option<bool> {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
    let mut last = None;
    // One answer for each change: the newest holds.
    while let Ok(Some(status)) = rustix::process::waitid(WaitId::PidFd(child.as_fd()), options) {
        last = Some(status.stopped());
    }
    last
}

/// Collects every child that has ended, but for one: what was reparented to a subreaper, so that no zombies stay.
pub fn collect_orphans(but: Option<u32>) {
    for pid in crate::proc::children_of_caller() {
        if Some(pid) != but {
            crate::start::collect(pid);
        }
    }
}

/// True when the caller, a subreaper, has children beside its job, collected or not. Without any, nothing that descends
/// from the job lives: an orphan would have become a child. For programs of one thread.
pub fn has_other_children(job: u32) -> bool {
    crate::proc::children_of_caller().iter().any(|pid| *pid != job)
}

/// Gives back the memory that a launch took and its supervisor needs no more: there is one supervisor for every attempt.
/// For the first thread of a program.
pub fn trim_memory() {
    sys::trim_heap();
    sys::trim_stack();
}

/// What the kernel counted for everything that was collected so far.
pub fn usage_of_collected() -> Usage {
    sys::usage_of_collected()
}

fn open_directory(directory: &Path) -> Result<std::os::fd::OwnedFd, RunError> {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let refuse = |source: Errno| match source {
        Errno::NOENT | Errno::NOTDIR => RunError::NoDirectory { directory: directory.to_owned() },
        source => RunError::Directory { directory: directory.to_owned(), source: source.into() },
    };
    let fd = rustix::fs::open(directory, flags, Mode::empty()).map_err(refuse)?;
    rustix::fs::access(directory, Access::EXEC_OK).map_err(refuse)?;
    Ok(fd)
}

/// The file that a name means: as a shell finds it, but from the job's own directory and `PATH`.
fn find(name: &str, job: &Command<'_>) -> Result<PathBuf, RunError> {
    if name.contains('/') {
        return Ok(job.directory.join(name));
    }
    let path = job.environment.iter().rev().find(|(key, _)| key == "PATH");
    let path = path.map_or(OsStr::new(PATH_DEFAULT), |(_, value)| value.as_os_str());
    let mut unusable = None;
    for folder in std::env::split_paths(path) {
        let candidate = job.directory.join(folder).join(name);
        let Ok(file) = candidate.metadata() else { continue };
        if file.is_file() && rustix::fs::access(&candidate, Access::EXEC_OK).is_ok() {
            return Ok(candidate);
        }
        unusable.get_or_insert(candidate);
    }
    unusable.ok_or_else(|| RunError::NotInPath { program: name.to_owned(), path: path.to_string_lossy().into_owned() })
}

/// Names what failed between fork and exec.
fn refuse(job: &Command<'_>, program: PathBuf, step: sys::Step, source: io::Error) -> RunError {
    match step {
        sys::Step::Execute => explain(program, source),
        sys::Step::Directory => RunError::Directory { directory: job.directory.to_owned(), source },
        sys::Step::Cgroup => SetupError::Enter { source }.into(),
        sys::Step::Limits => SetupError::Limit { source }.into(),
        sys::Step::Nice => SetupError::Nice { nice: job.setup.nice.unwrap_or_default(), source }.into(),
        sys::Step::User => {
            let user = job.setup.user.as_ref().map(|user| user.name.clone()).unwrap_or_default();
            SetupError::Become { user, source }.into()
        }
    }
}

/// Names the cause behind an error number of `execve`.
fn explain(program: PathBuf, source: io::Error) -> RunError {
    match Errno::from_io_error(&source) {
        Some(Errno::NOENT | Errno::NOTDIR) if !program.exists() => RunError::NotFound { program },
        Some(Errno::NOENT | Errno::NOTDIR) => match interpreter(&program) {
            Some(interpreter) if interpreter.ends_with('\r') => RunError::CarriageReturn { program, interpreter },
            Some(interpreter) => RunError::NoInterpreter { program, interpreter },
            None => RunError::NoLoader { program },
        },
        Some(Errno::ACCESS | Errno::PERM) => match program.metadata() {
            Ok(file) if file.is_dir() => RunError::IsDirectory { program },
            Ok(file) if file.permissions().mode() & 0o111 == 0 => RunError::NotExecutable { program },
            Ok(_) | Err(_) => RunError::Forbidden { program },
        },
        Some(Errno::NOEXEC) if program.metadata().is_ok_and(|file| file.len() == 0) => RunError::EmptyFile { program },
        Some(Errno::NOEXEC) => RunError::WrongFormat { program },
        Some(Errno::TOOBIG) => RunError::TooLong { program },
        Some(_) | None => RunError::Execute { program, source },
    }
}

/// The interpreter that a script's first line names.
fn interpreter(program: &Path) -> Option<String> {
    /// The kernel reads no more of the first line than this (BINPRM_BUF_SIZE).
    const FIRST_LINE_MAX: u64 = 256;

    let mut head = Vec::new();
    File::open(program).ok()?.take(FIRST_LINE_MAX).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = line.strip_prefix(b" ").unwrap_or(line).trim_ascii_start();
    let word = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    Some(String::from_utf8_lossy(word).into_owned())
}

fn c_string(text: &OsStr) -> Result<CString, std::ffi::NulError> {
    CString::new(text.as_bytes())
}
