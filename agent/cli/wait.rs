//! `latido wait`.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::clock::Deadline;
use latido::jobs::inspect::{self, AttemptState, JobFacts};
use latido_process::Pidfd;
use latido_protocol::{Class, Limit, SubjectName};
use std::os::fd::{AsFd, BorrowedFd};

use crate::args::WaitArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::outcome::{self, Asked};
use crate::{print, subject};

/// The longest turn: the end of a supervisor is announced, what an agent does next is asked for.
const TURN: Duration = Duration::from_millis(500);

/// Carries the command out.
pub(crate) fn run(args: &WaitArgs, context: &Context) -> Result<ExitCode, Failure> {
    for job in &args.jobs {
        subject::known(&context.state, job, "wait for")?;
    }
    let deadline = match args.wait_for {
        Limit::None => Deadline::NEVER,
        Limit::After(span) => Deadline::after(span),
    };
    let mut all_completed = true;
    for job in &args.jobs {
        match wait_for(context, job, deadline)? {
            Some(Ended { completed, detail }) => {
                print::note(&format!("job {job} has ended: {detail}"));
                all_completed &= completed;
            }
            None => {
                print::note(&format!("job {job} has not ended"));
                all_completed = false;
            }
        }
    }
    Ok(if all_completed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

struct Ended {
    completed: bool,
    detail: String,
}

/// Waits for one job; `None` when the time was over.
fn wait_for(context: &Context, job: &SubjectName, deadline: Deadline) -> Result<Option<Ended>, Failure> {
    loop {
        let Some(facts) = inspect::inspect(&context.state, job) else {
            return Err(subject::unknown(&context.state, job, "wait for"));
        };
        if let Some(ended) = ended(context, &facts) {
            return Ok(Some(ended));
        }
        if deadline.has_passed() {
            return Ok(None);
        }
        let supervisor = facts
            .latest
            .as_ref()
            .filter(|latest| latest.state == AttemptState::Running)
            .and_then(|latest| inspect::supervisor(&facts.folder, &latest.records))
            .and_then(|supervisor| Pidfd::open(&supervisor).ok().flatten());
        let descriptors: Vec<BorrowedFd<'_>> = supervisor.iter().map(AsFd::as_fd).collect();
        deadline.any_readable(&descriptors, TURN);
    }
}

/// How a job has ended for good, if it has: without an agent by its latest attempt, with one by its phase.
fn ended(context: &Context, facts: &JobFacts) -> Option<Ended> {
    let latest = facts.latest.as_ref()?;
    match &latest.state {
        AttemptState::Launching | AttemptState::Running => return None,
        AttemptState::Ended
        | AttemptState::Orphaned { .. }
        | AttemptState::Dead { .. }
        | AttemptState::Unknown { .. } => {}
    }
    match outcome::agent_status(&context.state, &facts.name) {
        // An answer about an older attempt is older than the files.
        Asked::Status(status) if status.attempt < latest.records.number || !outcome::is_over(&status) => return None,
        Asked::Status(status) => {
            let completed = status.outcome.as_ref().is_some_and(|outcome| outcome.class == Class::Completed);
            let detail = status.outcome.map_or(status.reason, |outcome| outcome.detail);
            return Some(Ended { completed, detail });
        }
        Asked::NoAgent | Asked::Unknown => {}
    }
    match (&latest.state, &latest.records.end) {
        (_, Some(end)) => {
            Some(Ended { completed: end.outcome.class == Class::Completed, detail: end.outcome.detail.clone() })
        }
        (AttemptState::Dead { proof }, None) => Some(Ended { completed: false, detail: format!("lost: {proof}") }),
        // Its job lives on, and may yet come to its end.
        (
            AttemptState::Orphaned { .. }
            | AttemptState::Unknown { .. }
            | AttemptState::Launching
            | AttemptState::Running
            | AttemptState::Ended,
            None,
        ) => None,
    }
}
