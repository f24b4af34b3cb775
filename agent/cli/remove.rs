//! `latido remove`.

use std::process::ExitCode;

use latido::jobs::client::{self, POKE_WITHIN};
use latido::jobs::remove::{self, RemoveError};

use crate::args::RemoveArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::subject;

/// Carries the command out.
pub(crate) fn run(args: &RemoveArgs, context: &Context) -> Result<ExitCode, Failure> {
    let job = &args.job;
    subject::known(&context.state, job, "remove")?;
    remove::remove(&context.state, job, "latido remove", subject::at())
        .map_err(|error| failure(args, context, &error))?;
    client::poke_agent(&context.state, job, POKE_WITHIN);
    Ok(ExitCode::SUCCESS)
}

fn failure(args: &RemoveArgs, context: &Context, error: &RemoveError) -> Failure {
    let job = &args.job;
    // Somebody else removed it meanwhile, whatever met whom first.
    if !context.state.job(job).path().exists() {
        return subject::unknown(&context.state, job, "remove");
    }
    let (what, why) = subject::parts(error);
    match error {
        RemoveError::NoJob { .. } => subject::unknown(&context.state, job, "remove"),
        RemoveError::Lives { .. } => Failure::refused(what, why, format!("stop it first: `latido stop {job}`")),
        RemoveError::Unknown { .. } => {
            Failure::refused(what, why, format!("`latido why {job}` shows what is known of it"))
        }
        RemoveError::Recover { .. } | RemoveError::Ledger { .. } | RemoveError::Files { .. } => Failure::itself(
            what,
            why,
            format!("look at {}: is it writable, is its disk full?", context.state.path().display()),
        ),
        _ => Failure::itself(what, why, format!("`latido why {job}` shows what is known of it")),
    }
}
