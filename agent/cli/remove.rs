//! `latido remove`.

use std::process::ExitCode;

use crate::args::RemoveArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &RemoveArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido remove`", "this build does not have it", "use a complete build of latido"))
}
