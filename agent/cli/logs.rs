//! `latido logs`.

use std::process::ExitCode;

use crate::args::LogsArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &LogsArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido logs`", "this build does not have it", "use a complete build of latido"))
}
