//! `latido events`.

use std::process::ExitCode;

use crate::args::EventsArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &EventsArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido events`", "this build does not have it", "use a complete build of latido"))
}
