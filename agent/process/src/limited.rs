//! A child that does one piece of work under limits, and is ended where it reaches one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::sys;

/// Bytes of a child's words that are kept: the first, which say what is wrong.
const SAID_MAX: usize = 4 << 10;

/// Descriptors of a child: the standard three, its two files, and some for the threads of a runtime.
const DESCRIPTORS_MAX: u64 = 64;

/// The child gives way to the agent; not by more, since what waits for it are the agent's own plugins.
const NICE: i32 = 2;

/// Where a child is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// memory that it can write to, in bytes
    pub memory_max: u64,
    /// computing time of all its threads, in whole seconds
    pub cpu_for: Duration,
    /// what it writes, in bytes
    pub file_max: u64,
    /// time in all
    pub within: Duration,
}

/// Why a child did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitedError {
    /// No pipe for what it says.
    #[error("make a pipe for the words of {program}")]
    Pipe {
        /// the child's program
        program: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// It could not be executed.
    #[error("execute {program}")]
    Execute {
        /// its program
        program: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// What it said could not be read; it was killed.
    #[error("hear what {program} says")]
    Hear {
        /// its program
        program: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// It was not ready in time, and was killed.
    #[error("wait longer than {within:?} for {program}")]
    OutOfTime {
        /// its program
        program: PathBuf,
        /// how long it may take
        within: Duration,
    },
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// the signal that ended it. `None`: it ended by itself, or somebody else collected it, which who collects every child
    /// does; what it has done is told by its words and its file
    pub signal: Option<i32>,
    /// its words on standard error
    pub said: String,
}

/// Runs a child to its end: `program WORD`, with limits that it takes upon itself by [`enter`]. It has no environment; its
/// standard input and output are the two files. Blocks, at most for `limits.within`.
///
/// # Errors
/// When it cannot be started, or takes too long. It is gone and collected in any case.
pub fn run(program: &Path, word: &str, limits: &Limits, input: File, output: File) -> Result<Done, LimitedError> {
    let named = || program.to_owned();
    let (hears, says) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
        .map_err(|source| LimitedError::Pipe { program: named(), source: source.into() })?;
    let numbers = [limits.memory_max, limits.cpu_for.as_secs(), limits.file_max].map(|number| number.to_string());
    let mut arguments = vec![OsStr::new(word)];
    arguments.extend(numbers.iter().map(OsStr::new));
    let mut child = sys::start_bare(program, &arguments, input.into(), output.into(), says)
        .map_err(|source| LimitedError::Execute { program: named(), source })?;
    let said = hear(File::from(hears), sys::monotonic().saturating_add(limits.within));
    // What has said all has ended or is about to: the signal changes nothing for it, and nobody is waited for without end.
    let _ended = child.kill();
    let status = child.wait();
    match said {
        Ok(Some(said)) => Ok(Done {
            signal: status.ok().and_then(|status| status.signal()),
            said: String::from_utf8_lossy(&said).into_owned(),
        }),
        Ok(None) => Err(LimitedError::OutOfTime { program: named(), within: limits.within }),
        Err(source) => Err(LimitedError::Hear { program: named(), source }),
    }
}

/// Reads to the end. `None`: it did not come before the deadline.
fn hear(mut pipe: File, deadline: Duration) -> io::Result<Option<Vec<u8>>> {
    let (mut said, mut buffer) = (Vec::new(), [0; 1024]);
    loop {
        let left = deadline.saturating_sub(sys::monotonic());
        if left.is_zero() {
            return Ok(None);
        }
        let mut polled = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut polled, Some(&sys::timespec(left))) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let length = pipe.read(&mut buffer)?;
        if length == 0 {
            return Ok(Some(said));
        }
        let room = SAID_MAX.saturating_sub(said.len()).min(length);
        said.extend_from_slice(buffer.get(..room).unwrap_or_default());
    }
}

/// Puts the calling process under the limits of its starter, and takes what it was given: what it reads, and where it
/// writes. `words` are those that follow the word it was started with. To be called first thing in `main` and once: every
/// descriptor above the standard three is closed. It ends with its starter.
///
/// # Errors
/// When the words are not those of [`run`], or the kernel refuses.
pub fn enter(words: impl IntoIterator<Item = OsString>) -> io::Result<(File, File)> {
    let numbers: Option<Vec<u64>> = words.into_iter().map(|word| word.to_str()?.parse().ok()).collect();
    let Some([memory_max, cpu_s, file_max]) = numbers.as_deref() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is started by latido alone"));
    };
    let limits = [
        (Resource::Data, *memory_max),
        (Resource::Cpu, *cpu_s),
        (Resource::Fsize, *file_max),
        (Resource::Nofile, DESCRIPTORS_MAX),
        (Resource::Core, 0),
    ];
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    for (resource, limit) in limits {
        // The kernel kills at the hard limit of computing time; a word that says which limit it was comes at the soft one.
        let hard = limit.saturating_add(1);
        let maximum = getrlimit(resource).maximum.map_or(hard, |inherited| inherited.min(hard));
        setrlimit(resource, Rlimit { current: Some(limit.min(maximum)), maximum: Some(maximum) })?;
    }
    // Who may not give way has given way further already.
    let _nicer = rustix::process::nice(NICE);
    let (input, output) = sys::take_standard()?;
    Ok((File::from(input), File::from(output)))
}
