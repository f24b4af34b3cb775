//! `latido agent`.

use std::process::ExitCode;

use crate::args::AgentArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(args: &AgentArgs, context: &Context) -> Result<ExitCode, Failure> {
    let once = if args.once { " --once" } else { "" };
    Err(Failure::itself(
        format!("cannot run `latido agent{once}` over {}", context.state.path().display()),
        "this build has no agent",
        "use a complete build of latido; run, status, logs, stop and resume work without an agent",
    ))
}
