//! `latido stop`.

use std::process::ExitCode;

use latido::jobs::client::{self, POKE_WITHIN};
use latido::jobs::recover::OrphanError;
use latido::jobs::stop::{self, StopError, StopOrder, Stopped};

use crate::args::StopArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::{print, subject};

/// Carries the command out.
pub(crate) fn run(args: &StopArgs, context: &Context) -> Result<ExitCode, Failure> {
    let job = &args.job;
    subject::known(&context.state, job, "stop")?;
    let order = StopOrder { grace: args.grace.map(|grace| grace.0), force: args.force, by: "latido stop".to_owned() };
    let stopped = stop::stop(&context.state, job, &order, subject::at());
    client::poke_agent(&context.state, job, POKE_WITHIN);
    let text = match stopped.map_err(|error| failure(args, context, &error))? {
        Stopped::NeverStarted => format!("job {job} had not been started, and will not be"),
        Stopped::HadEnded(end) => format!("job {job} had ended before: {}", end.outcome.detail),
        Stopped::WasLost(end) => format!("job {job} was dead already: {}", end.outcome.detail),
        Stopped::Ended(end) => format!("job {job} has ended: {}", end.outcome.detail),
    };
    print::note(&text);
    Ok(ExitCode::SUCCESS)
}

fn failure(args: &StopArgs, context: &Context, error: &StopError) -> Failure {
    let job = &args.job;
    let (what, why) = subject::parts(error);
    match error {
        StopError::NoJob { .. } => subject::unknown(&context.state, job, "stop"),
        StopError::Wanted { .. } | StopError::Recover { .. } => Failure::itself(
            what,
            why,
            format!("look at {}: is it writable, is its disk full?", context.state.path().display()),
        ),
        StopError::Unanswered { supervisor, .. } => Failure::unreachable(
            what,
            why,
            format!(
                "is process {supervisor} stopped? continue it with `kill -CONT {supervisor}`, or end both with \
                 `latido stop {job} --force`"
            ),
        ),
        StopError::Orphan { source: OrphanError::Survivors { .. }, .. } | StopError::StillThere { .. } => Failure::no(
            what,
            why,
            format!("`latido stop {job} --force` kills at once; what the kernel does not end is named in the cause"),
        ),
        StopError::Refused { .. } | StopError::Unknown { .. } | StopError::Orphan { .. } => {
            Failure::refused(what, why, format!("`latido why {job}` shows what is known of it"))
        }
        _ => Failure::itself(what, why, format!("`latido why {job}` shows what is known of it")),
    }
}
