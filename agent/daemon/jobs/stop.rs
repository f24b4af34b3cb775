//! Stops a job: asks its supervisor, or ends what is left where the supervisor is gone, and waits for the end.

use std::time::Duration;

use latido_process::{Pidfd, Signal};
use latido_protocol::attempt::{self, StopReason};
use latido_protocol::files::{End, Want};
use latido_protocol::layout::StateDir;
use latido_protocol::{Outcome, Span, SubjectName, WallTime};

use super::client::{self, AskError, POKE_WITHIN};
use super::clock::{self, Deadline};
use super::inspect::{self, AttemptFacts, AttemptState, JobFacts, LAUNCH_WITHIN, Living};
use super::recover::{self, OrphanError, RecoverError, Settling};
use super::wanted::{self, WantError};

/// After the grace: SIGKILL, the scan, the rest of the output and the record of the ending.
const AFTER_GRACE: Duration = Duration::from_secs(15);
/// A supervisor that hung up instead of answering is ending, and is soon gone.
const ANSWER_LOST: Duration = Duration::from_millis(200);
/// Between two looks where no descriptor tells of a change.
const TURN: Duration = Duration::from_millis(20);

/// How a job is to be stopped.
#[derive(Clone, Debug)]
pub struct StopOrder {
    /// between SIGTERM and SIGKILL, in place of the job's own
    pub grace: Option<Duration>,
    /// SIGKILL at once, also to a supervisor that does not answer
    pub force: bool,
    /// who orders it, in words
    pub by: String,
}

/// What a stop found and did.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// It had no attempt yet, and gets none.
    NeverStarted,
    /// It had ended before, and stays so.
    HadEnded(Box<End>),
    /// It was dead already; that is recorded by this.
    WasLost(Box<End>),
    /// It lived, and has ended.
    Ended(Box<End>),
}

/// Why a job could not be stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// There is no such job.
    #[error("stop job {job}: there is no such job")]
    NoJob {
        /// which
        job: SubjectName,
    },
    /// That it is wanted to stop cannot be recorded.
    #[error("stop job {job}")]
    Wanted {
        /// which
        job: SubjectName,
        /// why
        source: WantError,
    },
    /// Its supervisor lives and does not answer.
    #[error("ask the supervisor of job {job} to stop it")]
    Unanswered {
        /// which
        job: SubjectName,
        /// the supervisor's pid
        supervisor: u32,
        /// why
        source: AskError,
    },
    /// Its supervisor refused.
    #[error("stop job {job}: its supervisor cannot {message}")]
    Refused {
        /// which
        job: SubjectName,
        /// what it said
        message: String,
    },
    /// It did not end in time.
    #[error("{}", still_there(job, *within, living))]
    StillThere {
        /// which
        job: SubjectName,
        /// how long was waited
        within: Duration,
        /// which of its processes live
        living: Vec<Living>,
    },
    /// Whether it lives cannot be told.
    #[error("tell whether job {job} lives: {why}")]
    Unknown {
        /// which
        job: SubjectName,
        /// why
        why: String,
    },
    /// Its processes would not end.
    #[error("stop job {job}")]
    Orphan {
        /// which
        job: SubjectName,
        /// why
        source: OrphanError,
    },
    /// Its ending cannot be recorded.
    #[error("record the end of job {job}")]
    Recover {
        /// which
        job: SubjectName,
        /// why
        source: RecoverError,
    },
}

fn still_there(job: &SubjectName, within: Duration, living: &[Living]) -> String {
    if living.is_empty() {
        format!("see job {job} end within {within:?}")
    } else {
        format!("kill all of job {job}: {} lives after SIGKILL and {within:?}", inspect::list(living))
    }
}

/// Stops a job and waits until it has ended.
///
/// # Errors
/// When it lives on, or that cannot be told. That it is wanted to stop is recorded first, and stays.
pub fn stop(state: &StateDir, job: &SubjectName, order: &StopOrder, at: WallTime) -> Result<Stopped, StopError> {
    let folder = state.job(job);
    if !super::records::exists(&folder) {
        return Err(StopError::NoJob { job: job.clone() });
    }
    let want = || wanted::change(&folder, Want::Stop, &order.by, at).map(|_before| ());
    let refused = |source| StopError::Wanted { job: job.clone(), source };
    match want() {
        // On a full disk it is ended all the same: its ending says that it was ordered, and that is not resumed.
        Err(WantError::Write { .. }) => {
            let stopped = end(state, job, order)?;
            want().map_err(refused)?;
            Ok(stopped)
        }
        recorded => recorded.map_err(refused).and_then(|()| end(state, job, order)),
    }
}

/// Ends what lives of a job, and waits until it has.
fn end(state: &StateDir, job: &SubjectName, order: &StopOrder) -> Result<Stopped, StopError> {
    let launching = Deadline::after(LAUNCH_WITHIN);
    let mut lived = false;
    loop {
        let Some(facts) = inspect::inspect(state, job) else { return Err(StopError::NoJob { job: job.clone() }) };
        let grace = grace(order, &facts);
        let Some(latest) = &facts.latest else { return Ok(Stopped::NeverStarted) };
        match &latest.state {
            AttemptState::Launching if launching.has_passed() => {
                return Err(StopError::StillThere { job: job.clone(), within: LAUNCH_WITHIN, living: Vec::new() });
            }
            AttemptState::Launching => launching.rest(TURN),
            AttemptState::Running => {
                lived = true;
                end_running(job, &facts, latest, order, grace)?;
            }
            AttemptState::Unknown { why } => return Err(StopError::Unknown { job: job.clone(), why: why.clone() }),
            AttemptState::Orphaned { .. } | AttemptState::Dead { .. } => {
                return end_without_supervisor(state, job, latest, order, grace);
            }
            AttemptState::Ended => return ended(state, job, latest, grace, lived),
        }
    }
}

/// Records that a job is wanted to stop and asks its supervisor, without waiting for the end. True when the supervisor
/// has begun; false when there is none that could.
///
/// # Errors
/// When there is no such job, or the want cannot be recorded.
pub fn begin(state: &StateDir, job: &SubjectName, order: &StopOrder, at: WallTime) -> Result<bool, StopError> {
    let folder = state.job(job);
    wanted::change(&folder, Want::Stop, &order.by, at)
        .map_err(|source| StopError::Wanted { job: job.clone(), source })?;
    let latest = inspect::inspect(state, job).and_then(|facts| facts.latest);
    let socket = latest
        .filter(|latest| latest.state == AttemptState::Running)
        .and_then(|latest| inspect::control_socket(&latest.records));
    let asked = socket.map(|socket| client::ask_attempt(&socket, &request(order), POKE_WITHIN));
    Ok(matches!(asked, Some(Ok(attempt::Answer::Stopping))))
}

fn request(order: &StopOrder) -> attempt::Request {
    attempt::Request::Stop {
        ground: None,
        grace: order.grace.map(Span),
        force: order.force,
        because: StopReason::Commanded,
        by: order.by.clone(),
    }
}

fn grace(order: &StopOrder, facts: &JobFacts) -> Duration {
    /// Where neither the order nor the job says: what service managers take.
    const GRACE: Duration = Duration::from_secs(10);
    if order.force {
        return Duration::ZERO;
    }
    order.grace.or_else(|| facts.job.as_ref().map(|job| job.settings.grace.0)).unwrap_or(GRACE)
}

/// Asks the supervisor, and waits until it has ended.
fn end_running(
    job: &SubjectName,
    facts: &JobFacts,
    latest: &AttemptFacts,
    order: &StopOrder,
    grace: Duration,
) -> Result<(), StopError> {
    let Some(supervisor) = inspect::supervisor(&facts.folder, &latest.records) else {
        let holders = recover::holders_text(&inspect::lock_holders(&facts.folder));
        let why = format!("its start.json cannot be read, so that nobody can be asked; its lock is held{holders}");
        return Err(StopError::Unknown { job: job.clone(), why });
    };
    // The ending is seen through a descriptor that cannot mean another process.
    let Some(pidfd) = Pidfd::open(&supervisor)
        .map_err(|error| StopError::Unknown { job: job.clone(), why: latido_protocol::chain(&error) })?
    else {
        return Ok(());
    };
    let asked = inspect::control_socket(&latest.records)
        .map(|socket| client::ask_attempt(&socket, &request(order), POKE_WITHIN));
    match asked {
        Some(Ok(attempt::Answer::Error { message })) => {
            return Err(StopError::Refused { job: job.clone(), message });
        }
        Some(Ok(_)) => {}
        Some(Err(source)) => return unanswered(job, &pidfd, order, source),
        // Where its sockets are was lost: a supervisor also ends its job when it is terminated itself.
        None => {
            pidfd
                .signal(Signal::TERM)
                .map_err(|error| StopError::Unknown { job: job.clone(), why: latido_protocol::chain(&error) })?;
        }
    }
    let within = grace.saturating_add(AFTER_GRACE);
    if Deadline::after(within).readable(&pidfd) {
        return Ok(());
    }
    let living = inspect::living(&inspect::tree_of(&facts.folder, &latest.records)).unwrap_or_default();
    Err(StopError::StillThere { job: job.clone(), within, living })
}

/// The supervisor does not answer. It may have ended just now; with force it is killed, and its job is ended as an
/// orphan's.
fn unanswered(job: &SubjectName, pidfd: &Pidfd, order: &StopOrder, source: AskError) -> Result<(), StopError> {
    if Deadline::after(ANSWER_LOST).readable(pidfd) {
        return Ok(());
    }
    if order.force && pidfd.signal(Signal::KILL).is_ok() && Deadline::after(AFTER_GRACE).readable(pidfd) {
        return Ok(());
    }
    Err(StopError::Unanswered { job: job.clone(), supervisor: pidfd.identity().pid, source })
}

/// The supervisor is gone: its job is ended, if it lives, and the ending is recorded in its place.
fn end_without_supervisor(
    state: &StateDir,
    job: &SubjectName,
    latest: &AttemptFacts,
    order: &StopOrder,
    grace: Duration,
) -> Result<Stopped, StopError> {
    let folder = state.job(job);
    let attempt = latest.records.number;
    let lived = matches!(latest.state, AttemptState::Orphaned { .. });
    if lived {
        recover::end_orphan(job, &folder, attempt, grace)
            .map_err(|source| StopError::Orphan { job: job.clone(), source })?;
    }
    let outcome = lived.then(|| {
        Outcome::lost("its supervisor was gone").by_order(format!("{}, after its supervisor was gone", order.by))
    });
    let recorded = |source| StopError::Recover { job: job.clone(), source };
    let lock = recover::take_lock(job, &folder).map_err(recorded)?;
    let settling = Settling { outcome, ..Settling::lost(&order.by, clock::wall_time()) };
    let end = recover::settle(state, job, attempt, &lock, &settling).map_err(recorded)?;
    Ok(if lived { Stopped::Ended(Box::new(end)) } else { Stopped::WasLost(Box::new(end)) })
}

/// The ending is recorded; something may yet be left of it.
fn ended(
    state: &StateDir,
    job: &SubjectName,
    latest: &AttemptFacts,
    grace: Duration,
    lived: bool,
) -> Result<Stopped, StopError> {
    let folder = state.job(job);
    let left = inspect::living(&inspect::tree_of(&folder, &latest.records))
        .map_err(|why| StopError::Unknown { job: job.clone(), why })?;
    if !left.is_empty() {
        recover::end_orphan(job, &folder, latest.records.number, grace)
            .map_err(|source| StopError::Orphan { job: job.clone(), source })?;
    }
    let Some(end) = latest.records.end.clone() else { return Ok(Stopped::NeverStarted) };
    Ok(if lived { Stopped::Ended(Box::new(end)) } else { Stopped::HadEnded(Box::new(end)) })
}
