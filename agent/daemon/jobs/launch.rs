//! Launches an attempt: the lock, the epoch, the folder, the supervisor, and its word that the job runs.

use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::lock::Lock;
use latido_process::start::{self, Starting};
use latido_protocol::attempt::{self, Report};
use latido_protocol::files::JobFile;
use latido_protocol::layout::{JobDir, StateDir};
use latido_protocol::{Outcome, SubjectName, WallTime, disk};

use super::clock::Deadline;
use super::inspect::{self, LAUNCH_WITHIN};
use super::next_attempt::{self, Decided};
use super::records;
use super::recover::{self, RecoverError, Settling};
use super::{after_end, git_locks};

pub use super::launch_error::LaunchError;

/// Name of the supervisor's program, which lies beside the running one.
pub const SUPERVISOR: &str = "latido-supervisor";
/// Variable that names another supervisor.
pub const SUPERVISOR_VARIABLE: &str = "LATIDO_SUPERVISOR";

/// How long a supervisor that refused is given to end, so that its attempt can be settled at once.
const REFUSAL_WITHIN: Duration = Duration::from_secs(1);

/// What is to be launched, and by whose word.
#[derive(Debug, Default)]
pub struct LaunchOrder {
    /// why, in words: `first attempt`, `resumed by hand` …
    pub because: String,
    /// who orders it, in words
    pub by: String,
    /// the attempt that was decided on; without one it is the next
    pub ordered: Option<Ordered>,
    /// command of this attempt, in place of the job's own
    pub command: Option<Vec<String>>,
    /// a person asks: what was wanted before does not matter, and `run` is wanted from here on
    pub by_hand: bool,
    /// an agent carries out what a person asked for: recorded, and nothing else changes by it
    pub resumed_by_hand: bool,
    /// the job's lock, where the caller holds it already
    pub lock: Option<Lock>,
}

/// An attempt that was decided on beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// its number
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
}

/// How a launch went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launched {
    /// The job runs, and that is on the disk.
    Started {
        /// its number
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// the job's first process
        pid: u32,
    },
    /// The job's program could not be started, and that is on the disk as an ending.
    Failed {
        /// its number
        attempt: u32,
        /// its fencing number
        epoch: u64,
        /// why
        detail: String,
    },
}

/// The supervisor's program: the one that `LATIDO_SUPERVISOR` names, or the one beside the running program.
///
/// # Errors
/// When there is no such file.
pub fn supervisor_program() -> Result<PathBuf, LaunchError> {
    if let Some(named) = std::env::var_os(SUPERVISOR_VARIABLE).filter(|named| !named.is_empty()) {
        let looked_for = PathBuf::from(named);
        return if looked_for.is_file() { Ok(looked_for) } else { Err(LaunchError::NoSupervisor { looked_for }) };
    }
    let own = std::env::current_exe().unwrap_or_default();
    let looked_for = own.with_file_name(SUPERVISOR);
    if looked_for.is_file() { Ok(looked_for) } else { Err(LaunchError::NoSupervisor { looked_for }) }
}

/// Launches the next attempt of a job.
///
/// # Errors
/// When nothing was launched. Who does not get the job's lock has written nothing.
pub fn launch(
    state: &StateDir,
    job: &SubjectName,
    mut order: LaunchOrder,
    at: WallTime,
) -> Result<Launched, LaunchError> {
    let folder = state.job(job);
    if !records::exists(&folder) {
        return Err(LaunchError::NoJob { job: job.clone(), why: "there is no such job".to_owned() });
    }
    let is_new = order.lock.is_some();
    let lock = match order.lock.take() {
        Some(lock) => lock,
        None => recover::take_lock_after_end(job, &folder).map_err(|error| not_locked(job, error))?,
    };
    let program = supervisor_program()?;
    let file = match disk::read::<JobFile>(&folder.job()) {
        Ok(Some(file)) => file,
        Ok(None) => return Err(LaunchError::NoJob { job: job.clone(), why: "it has no job.json".to_owned() }),
        Err(error) => return Err(LaunchError::NoJob { job: job.clone(), why: latido_protocol::chain(&error) }),
    };
    let mut ended = None;
    // Whoever has just made the job has looked, and nobody else could launch it since.
    if !is_new {
        ended = settle_previous(state, job, &folder, &lock, &order, at)?;
        if !file.directory.is_dir() {
            return Err(LaunchError::NoDirectory { job: job.clone(), directory: file.directory });
        }
    }
    let notes = git_locks::look(&file.directory, file.settings.launch.git_locks, ended);
    let decided = next_attempt::decide(job, &folder, &order, at)?;
    let given = decided.given;
    let heard = record_and_start(decided, &folder, &file, notes, &program, lock)?;
    let Ordered { attempt, epoch } = given;
    let refused = |why: String| {
        record_refusal(state, job, attempt, &order.by, at, &why);
        LaunchError::Supervisor { job: job.clone(), attempt, why }
    };
    match heard {
        Ok(Some(Report::Started { pid })) => Ok(Launched::Started { attempt, epoch, pid }),
        Ok(Some(Report::LaunchFailed { detail })) => Ok(Launched::Failed { attempt, epoch, detail }),
        Ok(Some(Report::Refused { detail })) => Err(refused(detail)),
        Ok(None) => Err(LaunchError::Silent { job: job.clone(), attempt, within: LAUNCH_WITHIN }),
        Err(why) => Err(refused(why)),
    }
}

/// Puts the attempt on the disk and starts its supervisor: it gets ready while the disk is waited for, and says in the end what
/// became of the job, or why it said nothing.
///
/// # Errors
/// When the disk does not take the attempt. Then nothing runs, and the lock is free.
fn record_and_start(
    decided: Decided<'_>,
    folder: &JobDir,
    file: &JobFile,
    notes: Vec<String>,
    program: &Path,
    lock: Lock,
) -> Result<Result<Option<Report>, String>, LaunchError> {
    let attempt_dir = folder.attempt(decided.given.attempt).path().to_owned();
    // A supervisor that dies before it has the word must not free the lock while its attempt is being recorded.
    let own = lock.as_fd().try_clone_to_owned();
    let (held, recorded) = std::thread::scope(|scope| {
        // A thread of its own, since a fork waits as well.
        let held = scope.spawn(|| start::hold_supervisor(program, &attempt_dir, lock));
        let recorded = decided.record(folder, file, notes);
        (held.join(), recorded)
    });
    let held = match held {
        Ok(held) => held.map_err(|error| latido_protocol::chain(&error)),
        Err(_panic) => Err("its starter panicked".to_owned()),
    };
    if let Err(error) = recorded {
        if let Ok(held) = held {
            // With it the lock is gone.
            let _ = hear(&held.dismiss());
        }
        return Err(error);
    }
    Ok(held.and_then(|held| {
        let starting = held.go();
        drop(own);
        let heard = hear(&starting);
        // The command after the ending holds the lock; nothing else of the attempt is left.
        if let (Ok(Some(Report::LaunchFailed { .. })), Some(on_end)) = (&heard, &file.settings.on_end) {
            after_end::wait_for_end(&starting, on_end.run_for.0);
        }
        heard
    }))
}

fn not_locked(job: &SubjectName, error: RecoverError) -> LaunchError {
    let job = job.clone();
    if let RecoverError::Locked { holders, .. } = error {
        LaunchError::Locked { job, holders }
    } else if let RecoverError::Lock { source, .. } = error {
        LaunchError::Lock { job, source }
    } else {
        LaunchError::Previous { job, source: error }
    }
}

/// Waits for the one line that a supervisor says. `None`: it said nothing in time.
fn hear(starting: &Starting) -> Result<Option<Report>, String> {
    let deadline = Deadline::after(LAUNCH_WITHIN);
    let mut line = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            return serde_json::from_slice(&line[..end])
                .map(Some)
                .map_err(|error| format!("its report is no report: {error}"));
        }
        if line.len() > attempt::LINE_MAX {
            return Err("its report has no end".to_owned());
        }
        if !deadline.readable(&starting.report) {
            return Ok(None);
        }
        match (&starting.report).read(&mut chunk) {
            Ok(0) => {
                // It is a child of this process: what has ended is collected, so that it is seen to be gone.
                start::collect(starting.pid);
                return Err("it ended before it could report".to_owned());
            }
            Ok(count) => line.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("its report cannot be read: {error}")),
        }
    }
}

/// A free lock is necessary and never sufficient: the attempt before must have its ending, and none of its processes may
/// live. Answers when it ended, where there was one.
fn settle_previous(
    state: &StateDir,
    job: &SubjectName,
    folder: &JobDir,
    lock: &Lock,
    order: &LaunchOrder,
    at: WallTime,
) -> Result<Option<WallTime>, LaunchError> {
    let unknown = |attempt, why| LaunchError::Unknown { job: job.clone(), attempt, why };
    let attempts = records::attempt_numbers(folder).map_err(|error| unknown(0, error.to_string()))?;
    let Some(&attempt) = attempts.last() else {
        // Its records may have been removed under it.
        let marked = inspect::marked(folder).map_err(|why| unknown(0, why))?;
        return if marked.is_empty() {
            Ok(None)
        } else {
            Err(LaunchError::Unrecorded { job: job.clone(), living: marked })
        };
    };
    let previous = records::read_attempt(folder, attempt, &mut Vec::new());
    let tree = inspect::tree_of(folder, &previous);
    let tree = if previous.end.is_some() { tree.seen_from_here() } else { tree };
    let found = inspect::find(&tree).map_err(|why| unknown(attempt, why))?;
    let living = inspect::named(found.processes.iter().chain(&found.doubtful));
    if !living.is_empty() {
        return Err(LaunchError::Survivors { job: job.clone(), attempt, living });
    }
    if !found.others.is_empty() {
        return Err(LaunchError::Unrecorded { job: job.clone(), living: inspect::named(&found.others) });
    }
    recover::settle(state, job, attempt, lock, &Settling::lost(&order.by, at))
        .map(|end| Some(end.ended_at))
        .map_err(|source| LaunchError::Previous { job: job.clone(), source })
}

/// The host's name, for people.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Records that the supervisor never ran, so that the attempt has an ending of its own. Best effort: whoever launches
/// next settles what is missing.
fn record_refusal(state: &StateDir, job: &SubjectName, attempt: u32, by: &str, at: WallTime, why: &str) {
    let deadline = Deadline::after(REFUSAL_WITHIN);
    let outcome = Outcome::launch_failed(format!("the supervisor failed: {why}"));
    let settling = Settling { outcome: Some(outcome), ..Settling::lost(by, at) };
    // The supervisor may be about to end: until then it holds the lock, and its death is not proven.
    loop {
        let settled = recover::take_lock(job, &state.job(job))
            .and_then(|lock| recover::settle(state, job, attempt, &lock, &settling));
        if settled.is_ok() || deadline.has_passed() {
            return;
        }
        deadline.rest(Duration::from_millis(10));
    }
}
