//! `latido stop`.

use std::process::ExitCode;

use crate::args::StopArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &StopArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido stop`", "this build does not have it", "use a complete build of latido"))
}
