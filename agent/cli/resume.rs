//! `latido resume`.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client;
use latido::jobs::inspect::{self, AttemptState, Living};
use latido::jobs::launch::{LaunchError, Launched};
use latido::jobs::resume::{self, ResumeError, Resumed};
use latido_protocol::SubjectName;

use crate::args::ResumeArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::outcome::{self, Asked};
use crate::{print, run, subject};

/// Who asks, in the records.
const BY: &str = "latido resume";
/// Who vouches for a loss, in the records.
const PRESUMED_BY: &str = "latido resume --presume-lost";
/// An agent that does not say how it sees the change was not there a moment ago either.
const POKE_WITHIN: Duration = Duration::from_millis(300);

/// Carries the command out.
pub(crate) fn run(args: &ResumeArgs, context: &Context) -> Result<ExitCode, Failure> {
    let job = &args.job;
    subject::known(&context.state, job, "resume")?;
    resume::give(&context.state, job, args.budget.overrides(), subject::at())
        .map_err(|source| failure(args, context, &ResumeError::Wanted { job: job.clone(), source }))?;
    if args.presume_lost {
        resume::presume_lost(&context.state, job, PRESUMED_BY, subject::at())
            .map_err(|error| failure(args, context, &error))?;
    }
    let left = left_behind(context, job);
    let resumed = if client::agent_answers(&context.state) {
        resume::resume_through_agent(&context.state, job, BY, subject::at())
    } else {
        let resumed = resume::resume(&context.state, job, BY, "resumed by hand");
        client::poke_agent(&context.state, job, POKE_WITHIN);
        resumed
    };
    match resumed.map_err(|error| failure(args, context, &error))? {
        Resumed::RunsAlready { attempt } => print::note(&format!("job {job} is running already as attempt {attempt}")),
        Resumed::Waits { why } => print::note(&format!("job {job} waits: {why}")),
        Resumed::Launched(Launched::Started { attempt, .. }) => {
            // A launch proves that nothing of it lives, so it is told of what was ended for it.
            if let Some((before, living)) = left {
                print::note(&format!(
                    "attempt {before} of job {job} had lost its supervisor: {} was ended first",
                    inspect::list(&living)
                ));
            }
            print::note(&format!("job {job} runs as attempt {attempt}"));
        }
        Resumed::Launched(Launched::Failed { detail, attempt, .. }) => {
            return Err(Failure::itself(
                format!("cannot start attempt {attempt} of `{job}`"),
                detail,
                format!("mend what the cause names, and run `latido resume {job}` again"),
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The latest attempt and its processes, where they have lost their supervisor.
fn left_behind(context: &Context, job: &SubjectName) -> Option<(u32, Vec<Living>)> {
    let latest = inspect::inspect(&context.state, job)?.latest?;
    match latest.state {
        AttemptState::Orphaned { living } => Some((latest.records.number, living)),
        AttemptState::Launching
        | AttemptState::Running
        | AttemptState::Dead { .. }
        | AttemptState::Ended
        | AttemptState::Unknown { .. } => None,
    }
}

fn failure(args: &ResumeArgs, context: &Context, error: &ResumeError) -> Failure {
    let job = &args.job;
    let (what, why) = subject::parts(error);
    let why_shows = format!("`latido why {job}` shows what is known of it");
    match error {
        ResumeError::NoJob { .. } => subject::unknown(&context.state, job, "resume"),
        ResumeError::BudgetUsedUp { .. } => {
            Failure::refused(what, why, format!("give more of it: `latido resume {job} --budget-…` (see its --help)"))
        }
        ResumeError::Refused { .. } => Failure::refused(what, why, why_shows),
        ResumeError::Unknown { .. } => Failure::refused(
            what,
            why,
            format!("{why_shows}; if you know that nothing of it lives: `latido resume {job} --presume-lost`"),
        ),
        ResumeError::Orphan { .. } | ResumeError::NotLost { .. } => Failure::refused(what, why, why_shows),
        ResumeError::Launch { source, .. } if matches!(**source, LaunchError::NoJob { .. }) => {
            Failure::refused(what, why, "its job.json is needed; `latido remove` frees the name")
        }
        ResumeError::Launch { source, .. } => run::launch_failure(job, source),
        ResumeError::Wanted { .. } => Failure::itself(
            what,
            why,
            format!("look at {}: is it writable, is its disk full?", context.state.path().display()),
        ),
        ResumeError::AgentDidNot { .. } => {
            let failure = Failure::refused(what, why, why_shows);
            match outcome::agent_status(&context.state, job) {
                Asked::Status(status) => failure.and_why(format!("the agent says {}: {}", status.phase, status.reason)),
                Asked::Unknown | Asked::NoAgent => failure,
            }
        }
        _ => Failure::itself(what, why, why_shows),
    }
}
