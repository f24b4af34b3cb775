//! Records what nobody else can record any more: the ending of an attempt whose supervisor is proven gone.

use std::fs;
use std::time::Duration;

use latido_process::lock::{Lock, LockError};
use latido_process::{cgroup, identity, tree};
use latido_protocol::files::{End, Start};
use latido_protocol::layout::{JobDir, StateDir};
use latido_protocol::{FORMAT_VERSION, Outcome, SubjectName, WallTime, disk};

use super::clock::Deadline;
use super::inspect::{self, AttemptFacts, AttemptState, Living};
use super::{after_end, ledger, records, sockets};

/// Between a supervisor's record of the ending and its own end.
const ENDING_WITHIN: Duration = Duration::from_secs(2);

/// Why the ending of an attempt cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// There is no such attempt.
    #[error("find attempt {attempt} of job {job}")]
    NoAttempt {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
    },
    /// Somebody holds the job's lock, so that something of it may live.
    #[error("take the lock of job {job}: it is held{}", holders_text(holders))]
    Locked {
        /// whose
        job: SubjectName,
        /// who, where that can be told
        holders: Vec<Living>,
    },
    /// The lock cannot be looked at.
    #[error("take the lock of job {job}")]
    Lock {
        /// whose
        job: SubjectName,
        /// what the lock said
        source: LockError,
    },
    /// It is not proven dead.
    #[error("call attempt {attempt} of job {job} lost: {why}")]
    NotProven {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
        /// why not
        why: String,
    },
    /// The ending cannot be written.
    #[error("record the ending of attempt {attempt} of job {job}")]
    Record {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
        /// what the writer said
        source: disk::WriteError,
    },
    /// The ending that is there cannot be read, and not because it is damaged.
    #[error("read the ending of attempt {attempt} of job {job}: {why}")]
    Unreadable {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
        /// why
        why: String,
    },
    /// The ledger cannot be read or written; the ending itself is recorded.
    #[error("enter attempt {attempt} of job {job} into the ledger: {why}")]
    Ledger {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
        /// why
        why: String,
    },
}

impl RecoverError {
    /// True when the same may succeed later: the disk was full or away, or something that held the lock has ended.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Lock { .. }
            | Self::Record { .. }
            | Self::Unreadable { .. }
            | Self::Ledger { .. }
            | Self::Locked { .. }
            | Self::NotProven { .. } => true,
            Self::NoAttempt { .. } => false,
        }
    }
}

/// Names the holders of a lock for the end of a sentence.
pub(super) fn holders_text(holders: &[Living]) -> String {
    if holders.is_empty() { String::new() } else { format!(" by {}", inspect::list(holders)) }
}

/// Why an orphan could not be ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrphanError {
    /// Its supervisor lives, and ends it when asked.
    #[error("end the processes of attempt {attempt} of job {job} behind the back of its supervisor, which lives")]
    SupervisorLives {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
    },
    /// Whether the supervisor lives cannot be told.
    #[error("tell whether attempt {attempt} of job {job} is an orphan: {why}")]
    Unknown {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
        /// why
        why: String,
    },
    /// They would not end.
    #[error("end {} of attempt {attempt} of job {job}", inspect::list(living))]
    Survivors {
        /// whose
        job: SubjectName,
        /// which
        attempt: u32,
        /// which are left
        living: Vec<Living>,
    },
}

/// Takes a job's lock for a moment, to prove that nothing of it holds it.
///
/// # Errors
/// When somebody holds it, or it cannot be looked at.
pub fn take_lock(job: &SubjectName, folder: &JobDir) -> Result<Lock, RecoverError> {
    match Lock::take(&folder.lock()) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(RecoverError::Locked { job: job.clone(), holders: inspect::lock_holders(folder) }),
        Err(source) => Err(RecoverError::Lock { job: job.clone(), source }),
    }
}

/// Takes a job's lock. A supervisor records the ending and then ends itself: who saw the one waits a moment for the other.
///
/// # Errors
/// As [`take_lock`], at once where the latest attempt has no ending.
pub fn take_lock_after_end(job: &SubjectName, folder: &JobDir) -> Result<Lock, RecoverError> {
    let deadline = Deadline::after(ENDING_WITHIN);
    loop {
        let locked = match take_lock(job, folder) {
            Err(error @ RecoverError::Locked { .. }) => error,
            other => return other,
        };
        let latest = records::attempt_numbers(folder).ok().and_then(|numbers| numbers.last().copied());
        let has_ended =
            latest.is_some_and(|number| records::read_attempt(folder, number, &mut Vec::new()).end.is_some());
        if !has_ended || deadline.has_passed() {
            return Err(locked);
        }
        deadline.rest(Duration::from_millis(1));
    }
}

/// Records that an attempt was lost, if its death is proven and no ending is recorded. The job's lock is taken for it.
///
/// Returns the ending that stands: what has ended never changes, and an ending that is there already wins.
///
/// # Errors
/// When the death is not proven, or the records cannot be written.
pub fn record_lost(
    state: &StateDir,
    job: &SubjectName,
    attempt: u32,
    by: &str,
    at: WallTime,
) -> Result<End, RecoverError> {
    let folder = state.job(job);
    let lock = take_lock(job, &folder)?;
    settle(state, job, attempt, &lock, &Settling::lost(by, at))
}

/// Records that an attempt was lost because a person vouches for it, where its death cannot be told from here: it ran on
/// another machine or in another pid namespace, or its records are damaged. What can be told must not speak against it: the
/// job's lock has to be free, and no process may carry the job's mark.
///
/// # Errors
/// When something of the job lives, or the records cannot be written.
pub fn presume_lost(
    state: &StateDir,
    job: &SubjectName,
    attempt: u32,
    by: &str,
    at: WallTime,
) -> Result<End, RecoverError> {
    let folder = state.job(job);
    let lock = take_lock(job, &folder)?;
    let not_proven = |why| RecoverError::NotProven { job: job.clone(), attempt, why };
    let marked = inspect::marked(&folder).map_err(not_proven)?;
    if !marked.is_empty() {
        return Err(not_proven(format!("{} carries its mark", inspect::list(&marked))));
    }
    settle(state, job, attempt, &lock, &Settling { is_vouched_for: true, ..Settling::lost(by, at) })
}

/// How an attempt is settled.
#[derive(Clone, Debug)]
pub struct Settling<'a> {
    /// who settles it, in words
    pub by: &'a str,
    /// when
    pub at: WallTime,
    /// what is recorded in place of `lost`
    pub outcome: Option<Outcome>,
    /// a person says that nothing of it lives, where that cannot be told
    pub is_vouched_for: bool,
}

impl<'a> Settling<'a> {
    /// As lost, where that is proven.
    pub fn lost(by: &'a str, at: WallTime) -> Self {
        Self { by, at, outcome: None, is_vouched_for: false }
    }
}

/// Brings the records of an attempt to their end, with the job's lock held: its ending, its line in the ledger, no
/// `busy.json`, no sockets; and the command after the ending, where there is one that was not run, is run to its end. What is
/// there already stays.
///
/// # Errors
/// When the death is not proven, or the records cannot be written.
pub fn settle(
    state: &StateDir,
    job: &SubjectName,
    attempt: u32,
    held: &Lock,
    settling: &Settling<'_>,
) -> Result<End, RecoverError> {
    let folder = state.job(job);
    if !folder.attempt(attempt).path().is_dir() {
        return Err(RecoverError::NoAttempt { job: job.clone(), attempt });
    }
    let facts = inspect::look_at(&folder, attempt, &mut Vec::new());
    let end = match &facts.records.end {
        Some(end) => end.clone(),
        None => record_end(job, &folder, &facts, settling)?,
    };
    enter_in_ledger(state, facts.records.start.as_ref(), &end)?;
    after_end::follow(&folder, &facts.records, held);
    // All are hints that are checked wherever they are read, so leaving one behind harms nobody.
    let _ = fs::remove_file(folder.busy());
    if let Some(start) = &facts.records.start {
        sockets::remove_folder(&start.sockets);
        // The kernel keeps one that somebody is in.
        start.cgroup.as_ref().map(cgroup::remove);
    }
    Ok(end)
}

fn record_end(
    job: &SubjectName,
    folder: &JobDir,
    facts: &AttemptFacts,
    settling: &Settling<'_>,
) -> Result<End, RecoverError> {
    let records = &facts.records;
    let attempt = records.number;
    let not_proven = |why: String| RecoverError::NotProven { job: job.clone(), attempt, why };
    let proof = match &facts.state {
        AttemptState::Dead { proof } => proof.clone(),
        // The starter holds the job's lock and has not come to the supervisor: that starter is this caller.
        AttemptState::Launching if inspect::supervisor(folder, records).is_none() => {
            "its launch was never finished".to_owned()
        }
        AttemptState::Launching | AttemptState::Running => return Err(not_proven("its supervisor lives".to_owned())),
        AttemptState::Orphaned { living } => return Err(not_proven(format!("{} lives", inspect::list(living)))),
        AttemptState::Unknown { why } if settling.is_vouched_for => {
            format!("a person vouches that nothing of it lives, which cannot be told from here: {why}")
        }
        AttemptState::Unknown { why } => return Err(not_proven(why.clone())),
        AttemptState::Ended => return Err(not_proven("its ending vanished while it was read".to_owned())),
    };
    let start = records.start.as_ref();
    let epoch = start
        .map(|start| start.epoch)
        .or_else(|| records::read_busy(folder).filter(|busy| busy.attempt == attempt).map(|busy| busy.epoch));
    let end = End {
        version: FORMAT_VERSION,
        job: job.clone(),
        attempt,
        epoch: epoch.unwrap_or_default(),
        started_at: start.and_then(|start| start.started_at),
        ended_at: settling.at,
        outcome: settling.outcome.clone().unwrap_or_else(|| Outcome::lost(format!("its supervisor is gone: {proof}"))),
        rusage: None,
        progress: records.status.as_ref().and_then(|status| status.progress.clone()),
        recorded_by: settling.by.to_owned(),
        proof,
        stopped_for: None,
        spent: records.status.as_ref().map(|status| status.spent).unwrap_or_default(),
        ran_s: records.status.as_ref().map(|status| status.running_s),
    };
    write_end(job, records.folder.end().as_path(), records.end_is_damaged, &end)
}

/// Writes an ending unless one is there; a damaged one is put aside first, and kept.
fn write_end(job: &SubjectName, path: &std::path::Path, is_damaged: bool, end: &End) -> Result<End, RecoverError> {
    let attempt = end.attempt;
    if is_damaged {
        // When this fails the file is still there, and the next step says so.
        let _ = fs::rename(path, path.with_extension("json.damaged"));
    }
    match disk::create(path, end) {
        Ok(()) => Ok(end.clone()),
        Err(disk::WriteError::Exists { .. }) => match disk::read::<End>(path) {
            Ok(Some(there)) => Ok(there),
            Ok(None) => Err(RecoverError::Unreadable { job: job.clone(), attempt, why: "it is gone".to_owned() }),
            Err(error) => {
                Err(RecoverError::Unreadable { job: job.clone(), attempt, why: latido_protocol::chain(&error) })
            }
        },
        Err(source) => Err(RecoverError::Record { job: job.clone(), attempt, source }),
    }
}

/// Appends an attempt's line to the ledger unless it is there. The caller holds the job's lock.
fn enter_in_ledger(state: &StateDir, start: Option<&Start>, end: &End) -> Result<(), RecoverError> {
    let fail = |why| RecoverError::Ledger { job: end.job.clone(), attempt: end.attempt, why };
    if ledger::holds(state, end).map_err(|error| fail(error.to_string()))? {
        return Ok(());
    }
    let because =
        start.map_or_else(|| "unknown: its start.json cannot be read".to_owned(), |start| start.because.clone());
    ledger::append(state, end, because).map_err(|error| fail(latido_protocol::chain(&error)))
}

/// Ends every process of an attempt whose supervisor is proven gone: SIGTERM, the grace, SIGKILL, and a look.
///
/// # Errors
/// When the supervisor lives or cannot be told of, and when something would not end.
pub fn end_orphan(job: &SubjectName, folder: &JobDir, attempt: u32, grace: Duration) -> Result<(), OrphanError> {
    let facts = inspect::look_at(folder, attempt, &mut Vec::new());
    let unknown = |why: String| OrphanError::Unknown { job: job.clone(), attempt, why };
    match &facts.state {
        AttemptState::Dead { .. } => Ok(()),
        AttemptState::Launching | AttemptState::Running => {
            Err(OrphanError::SupervisorLives { job: job.clone(), attempt })
        }
        AttemptState::Unknown { why } => Err(unknown(why.clone())),
        AttemptState::Ended if !supervisor_is_gone(folder, &facts) => {
            Err(OrphanError::SupervisorLives { job: job.clone(), attempt })
        }
        // After an ending as well something may be left, once the supervisor is gone.
        AttemptState::Ended | AttemptState::Orphaned { .. } => {
            let ended = tree::end(&inspect::tree_of(folder, &facts.records), grace)
                .map_err(|error| unknown(latido_protocol::chain(&error)))?;
            let living = inspect::named(&ended.survivors);
            if living.is_empty() { Ok(()) } else { Err(OrphanError::Survivors { job: job.clone(), attempt, living }) }
        }
    }
}

/// An ending is recorded while its supervisor still lives for a moment; where none is known there is none.
fn supervisor_is_gone(folder: &JobDir, facts: &AttemptFacts) -> bool {
    inspect::supervisor(folder, &facts.records)
        .is_none_or(|supervisor| matches!(identity::look(&supervisor), identity::Look::Gone { .. }))
}
