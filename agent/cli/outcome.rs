//! What follows an ending: the exit status of the command that watched, and the attempt that an agent launches next.

use std::os::fd::AsFd;
use std::time::Duration;

use latido::jobs::client::{self, AGENT_WITHIN};
use latido::jobs::clock::Deadline;
use latido::jobs::records;
use latido_process::signals::Signals;
use latido_protocol::files::End;
use latido_protocol::layout::StateDir;
use latido_protocol::status::{Phase, SubjectStatus};
use latido_protocol::{OutcomeKind, SubjectName, control};

/// latido itself failed.
pub(crate) const ITSELF: u8 = 125;
/// What a shell gives for a process that SIGKILL ended: a lost job ends so for whoever watched it.
pub(crate) const LOST: u8 = 128 + 9;
/// Between two questions to the agent.
const TURN: Duration = Duration::from_millis(200);
/// An agent that does not know a job after this long will not.
const KNOWN_WITHIN: Duration = Duration::from_secs(5);

/// The exit status that an ending gives: the job's own code, 128 + n for signal n, 125 where it never ran.
pub(crate) fn exit_status(end: &End) -> u8 {
    let signal =
        end.outcome.signal.and_then(|signal| u8::try_from(signal).ok()).map(|signal| 128_u8.saturating_add(signal));
    // The kernel gives eight bits of a status to whoever waits.
    let code = end.outcome.code.map(|code| code.to_le_bytes()[0]);
    match end.outcome.kind {
        OutcomeKind::Exited => code.unwrap_or(ITSELF),
        OutcomeKind::Signaled => signal.unwrap_or(LOST),
        OutcomeKind::Lost => LOST,
        OutcomeKind::LaunchFailed => ITSELF,
        OutcomeKind::OutOfMemory | OutcomeKind::LimitReached => signal.or(code).unwrap_or(LOST),
    }
}

/// What comes after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This attempt.
    Attempt(u32),
    /// Nothing by itself: no agent runs, or the job is over for it.
    Nothing,
    /// A signal came while it was waited for.
    Signal,
}

/// Waits for what comes after an attempt. Without an agent nothing does.
pub(crate) fn next_attempt(state: &StateDir, job: &SubjectName, after: u32, signals: Option<&Signals>) -> Next {
    let known = Deadline::after(KNOWN_WITHIN);
    loop {
        if let Some(next) = newer(state, job, after) {
            return Next::Attempt(next);
        }
        match agent_status(state, job) {
            Asked::NoAgent => return Next::Nothing,
            Asked::Unknown if known.has_passed() => return Next::Nothing,
            Asked::Unknown => {}
            Asked::Status(status) if status.attempt >= after && is_over(&status) => {
                return newer(state, job, after).map_or(Next::Nothing, Next::Attempt);
            }
            Asked::Status(_) => {}
        }
        if rest(signals) {
            return Next::Signal;
        }
    }
}

fn newer(state: &StateDir, job: &SubjectName, after: u32) -> Option<u32> {
    records::attempt_numbers(&state.job(job)).ok()?.into_iter().find(|number| *number > after)
}

/// Waits a turn; true when a signal came.
fn rest(signals: Option<&Signals>) -> bool {
    let descriptors: Vec<_> = signals.iter().map(|signals| signals.as_fd()).collect();
    Deadline::NEVER.any_readable(&descriptors, TURN);
    signals.and_then(Signals::next).is_some()
}

/// What an agent says of a job.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Nobody answers.
    NoAgent,
    /// It does not know the job.
    Unknown,
    /// Its status.
    Status(Box<SubjectStatus>),
}

/// Asks the agent for one job.
pub(crate) fn agent_status(state: &StateDir, job: &SubjectName) -> Asked {
    let request = control::Request::Status { subjects: vec![job.clone()] };
    match client::ask_agent(state, request, AGENT_WITHIN) {
        Ok(control::Answer::Status { document }) => {
            match document.subjects.into_iter().find(|status| status.name == *job) {
                Some(status) => Asked::Status(Box::new(status)),
                None => Asked::Unknown,
            }
        }
        Ok(_) => Asked::Unknown,
        Err(_) => Asked::NoAgent,
    }
}

/// True when nothing more comes of it by itself.
pub(crate) fn is_over(status: &SubjectStatus) -> bool {
    match status.phase {
        Phase::Ended | Phase::Held | Phase::Stuck => true,
        Phase::Pending
        | Phase::Queued
        | Phase::Launching
        | Phase::Running
        | Phase::Draining
        | Phase::BackingOff
        | Phase::Paused => false,
    }
}
