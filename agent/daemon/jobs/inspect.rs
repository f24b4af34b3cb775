//! What the files and the processes of a job say together. Alive is checked, not believed.

use std::time::Duration;

use latido_process::identity::{self, Look};
use latido_process::lock::{self, Lock};
use latido_process::tree::{self, Tree};
use latido_protocol::files::{Identity, JobFile, Status, Wanted};
use latido_protocol::layout::{JobDir, StateDir};
use latido_protocol::{Class, SubjectName, attempt};

use super::client::{self, ATTEMPT_WITHIN};
use super::records::{self, AttemptRecords};

/// What is known of a job.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// its name
    pub name: SubjectName,
    /// its folder
    pub folder: JobDir,
    /// what was asked for; `None` when that cannot be read
    pub job: Option<JobFile>,
    /// what is wanted; `None` when that cannot be read
    pub wanted: Option<Wanted>,
    /// the numbers of its attempts, rising
    pub attempts: Vec<u32>,
    /// its latest attempt
    pub latest: Option<AttemptFacts>,
    /// lost attempts
    pub pickups: u32,
    /// the highest epoch that any of its files shows
    pub epoch: u64,
    /// the last checkpoint that any attempt is known to have reached; empty when there is none
    pub checkpoint: String,
    /// what could not be read, in words, each with the name of its file
    pub damaged: Vec<String>,
}

/// What is known of one attempt.
#[derive(Clone, Debug)]
pub struct AttemptFacts {
    /// what its files say
    pub records: AttemptRecords,
    /// whether it exists
    pub state: AttemptState,
    /// why nothing can be told of the work itself although its supervisor lives, in words: it is stopped, or of a later
    /// latido, or the work has ended and that cannot be recorded yet
    pub doubt: Option<String>,
}

impl AttemptFacts {
    /// What SIGKILL has not ended, in words, as its supervisor tells it.
    pub fn unkilled(&self) -> Option<String> {
        self.records.status.as_ref().filter(|_| self.state == AttemptState::Running).and_then(Status::unkilled)
    }
}

/// A live process of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Living {
    /// its pid
    pub pid: u32,
    /// its name, as the kernel keeps it
    pub name: String,
}

impl std::fmt::Display for Living {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pid {} ({})", self.pid, self.name)
    }
}

/// Names processes in a sentence.
pub fn list(living: &[Living]) -> String {
    living.iter().map(Living::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether an attempt exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// Its launch has begun, and its process is not recorded yet.
    Launching,
    /// Its supervisor lives.
    Running,
    /// Its supervisor is gone, and these processes live.
    Orphaned {
        /// which
        living: Vec<Living>,
    },
    /// Its supervisor and all its processes are gone, and no ending is recorded.
    Dead {
        /// how that is known
        proof: String,
    },
    /// Its ending is recorded.
    Ended,
    /// Cannot be told; nothing may follow from it.
    Unknown {
        /// why
        why: String,
    },
}

/// Looks at a job. Returns `None` when there is no such job.
pub fn inspect(state: &StateDir, name: &SubjectName) -> Option<JobFacts> {
    let folder = state.job(name);
    if !records::exists(&folder) {
        return None;
    }
    let read = records::read_job(&folder);
    let mut damaged = read.damaged;
    let latest = read.attempts.last().map(|number| look_at(&folder, *number, &mut damaged));
    let endings = records::endings(&folder, &read.attempts);
    let pickups = endings.iter().flat_map(|(_, end)| end).filter(|end| end.outcome.class == Class::Lost).count();
    let epoch = records::highest_attempt_epoch(&folder).max(read.wanted.as_ref().map_or(0, |wanted| wanted.epoch));
    Some(JobFacts {
        name: name.clone(),
        job: read.job,
        wanted: read.wanted,
        latest,
        pickups: u32::try_from(pickups).unwrap_or(u32::MAX),
        epoch,
        checkpoint: records::last_checkpoint(&folder, &read.attempts),
        attempts: read.attempts,
        damaged,
        folder,
    })
}

/// Looks at one attempt of a job.
pub fn look_at(folder: &JobDir, number: u32, damaged: &mut Vec<String>) -> AttemptFacts {
    let mut records = records::read_attempt(folder, number, damaged);
    let state = if records.end.is_some() { AttemptState::Ended } else { judge_existence(folder, &mut records) };
    let mut doubt = None;
    if state == AttemptState::Running {
        doubt = supervisor(folder, &records).as_ref().and_then(stopped);
        // Who is stopped answers nobody.
        if doubt.is_none() {
            match ask_status(&records) {
                Some(told) => (doubt, records.status) = (told.doubt(), Some(told)),
                None => doubt.clone_from(&records.later),
            }
        }
    }
    AttemptFacts { records, state, doubt }
}

/// Says of a supervisor that it is stopped, and hears and tells nothing. `None`: it is not, as far as can be told.
pub fn stopped(supervisor: &Identity) -> Option<String> {
    let pid = supervisor.pid;
    let text = || {
        format!(
            "its supervisor (pid {pid}) is stopped by a signal or a debugger, and hears nothing; `kill -CONT {pid}`"
        )
    };
    identity::look(supervisor).is_stopped().then(text)
}

/// The latest of a live attempt, as its supervisor tells it.
fn ask_status(records: &AttemptRecords) -> Option<Status> {
    let socket = control_socket(records)?;
    match client::ask_attempt(&socket, &attempt::Request::Status, ATTEMPT_WITHIN) {
        Ok(attempt::Answer::Status { status }) if status.attempt == records.number => Some(*status),
        Ok(_) | Err(_) => None,
    }
}

/// The attempt's control socket, where its files name one.
pub fn control_socket(records: &AttemptRecords) -> Option<std::path::PathBuf> {
    records.start.as_ref().map(|start| start.sockets.join("control"))
}

/// The attempt's supervisor, from `start.json` or, where that says nothing, from `busy.json`.
pub fn supervisor(folder: &JobDir, records: &AttemptRecords) -> Option<Identity> {
    records.start.as_ref().and_then(|start| start.supervisor.clone()).or_else(|| {
        records::read_busy(folder).filter(|busy| busy.attempt == records.number).map(|busy| busy.supervisor)
    })
}

/// The processes of an attempt, named so that they can be found.
pub fn tree_of(folder: &JobDir, records: &AttemptRecords) -> Tree {
    Tree {
        attempt_dir: records.folder.path().to_owned(),
        process: records.start.as_ref().and_then(|start| start.process.clone()),
        supervisor: supervisor(folder, records),
        cgroup: records.start.as_ref().and_then(|start| start.cgroup.clone()),
    }
}

fn judge_existence(folder: &JobDir, records: &mut AttemptRecords) -> AttemptState {
    match supervisor(folder, records) {
        Some(supervisor) => match identity::look(&supervisor) {
            Look::Alive { .. } if records.start.as_ref().is_some_and(|start| start.process.is_none()) => {
                AttemptState::Launching
            }
            Look::Alive { .. } => AttemptState::Running,
            Look::Unknown { why } => AttemptState::Unknown { why },
            Look::Gone { proof } => without_supervisor(folder, records, proof),
        },
        None => without_identity(folder, records),
    }
}

/// The supervisor is proven gone; it may have recorded the ending between two looks.
fn without_supervisor(folder: &JobDir, records: &mut AttemptRecords, proof: String) -> AttemptState {
    let again = records::read_attempt(folder, records.number, &mut Vec::new());
    if again.end.is_some() {
        *records = again;
        return AttemptState::Ended;
    }
    match find(&tree_of(folder, records)) {
        // Its record was lost or is not written yet; the mark in its environment says what it is.
        Ok(found) if !found.supervisors.is_empty() => AttemptState::Launching,
        Ok(found) if found.processes.is_empty() && found.doubtful.is_empty() => AttemptState::Dead { proof },
        Ok(found) => AttemptState::Orphaned { living: named(found.processes.iter().chain(&found.doubtful)) },
        Err(why) => AttemptState::Unknown { why },
    }
}

/// No supervisor is recorded: the attempt is between its folder and its first record, or that was lost.
fn without_identity(folder: &JobDir, records: &mut AttemptRecords) -> AttemptState {
    match Lock::is_held(&folder.lock()) {
        Ok(true) => match find(&tree_of(folder, records)) {
            // Its records are lost, and its mark tells what it is.
            Ok(found) if !found.processes.is_empty() && found.supervisors.is_empty() => {
                AttemptState::Orphaned { living: named(&found.processes) }
            }
            Ok(found) if !found.processes.is_empty() => AttemptState::Running,
            Ok(_) => AttemptState::Launching,
            Err(why) => AttemptState::Unknown { why },
        },
        Ok(false) => {
            let proof = "its launch was never finished, and the job's lock is free".to_owned();
            without_supervisor(folder, records, proof)
        }
        Err(error) => AttemptState::Unknown { why: latido_protocol::chain(&error) },
    }
}

/// The live processes of an attempt, its supervisor not counted; what is only doubtfully its own counts.
///
/// # Errors
/// Says why the look failed; nothing is known then.
pub fn living(tree: &Tree) -> Result<Vec<Living>, String> {
    find(tree).map(|found| named(found.processes.iter().chain(&found.doubtful)))
}

/// What carries the mark of any attempt of a job, supervisors too: also where its files were removed under it.
///
/// # Errors
/// Says why the look failed; nothing is known then.
pub fn marked(folder: &JobDir) -> Result<Vec<Living>, String> {
    let any = Tree { attempt_dir: folder.attempt(1).path().to_owned(), process: None, supervisor: None, cgroup: None };
    let found = find(&any)?;
    Ok(named(found.supervisors.iter().chain(&found.processes).chain(&found.others)))
}

/// What lives of an attempt that has ended, unless its supervisor still looks after it.
///
/// # Errors
/// Says why the look failed; nothing is known then.
pub fn left_after_end(folder: &JobDir, records: &AttemptRecords) -> Result<Vec<Living>, String> {
    let found = find(&tree_of(folder, records))?;
    if found.supervisors.is_empty() { Ok(named(found.processes.iter().chain(&found.doubtful))) } else { Ok(Vec::new()) }
}

pub(super) fn find(tree: &Tree) -> Result<tree::Living, String> {
    tree::find(tree).map_err(|error| format!("cannot {}", latido_protocol::chain(&error)))
}

/// Processes with their names.
pub(super) fn named<'a>(processes: impl IntoIterator<Item = &'a Identity>) -> Vec<Living> {
    processes.into_iter().map(|process| Living { pid: process.pid, name: process_name(process.pid) }).collect()
}

/// The processes that hold a job's lock, as far as that can be told: for messages, never for decisions.
pub fn lock_holders(folder: &JobDir) -> Vec<Living> {
    lock::holders(&folder.lock()).into_iter().map(|pid| Living { pid, name: process_name(pid) }).collect()
}

/// The name of a process, as the kernel keeps it; empty when it is gone.
fn process_name(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end().to_owned()
}

/// How long an attempt's launch may take before its starter gives up waiting for word from the supervisor.
pub const LAUNCH_WITHIN: Duration = Duration::from_secs(10);

/// A job in a few words, for a message that its name is in use.
pub fn describe(state: &StateDir, name: &SubjectName) -> String {
    let Some(facts) = inspect(state, name) else { return "something that is no job".to_owned() };
    let command = facts.job.as_ref().map_or("a command that cannot be read", |job| job.command[0].as_str());
    let standing = match &facts.latest {
        None => "not started yet".to_owned(),
        Some(latest) => match (&latest.state, &latest.records.end) {
            (AttemptState::Ended, Some(end)) => format!("ended: {}", end.outcome.detail),
            (AttemptState::Ended, None) => "ended".to_owned(),
            (AttemptState::Launching, _) => "being started".to_owned(),
            (AttemptState::Running, _) => format!("running as attempt {}", latest.records.number),
            (AttemptState::Orphaned { .. }, _) => "alive without its supervisor".to_owned(),
            (AttemptState::Dead { proof }, _) => format!("dead: {proof}"),
            (AttemptState::Unknown { why }, _) => format!("in an unknown state: {why}"),
        },
    };
    format!("a job that runs {command:?}, {standing}")
}
