//! `latido status`.

use std::process::ExitCode;

use crate::args::StatusArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &StatusArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido status`", "this build does not have it", "use a complete build of latido"))
}
