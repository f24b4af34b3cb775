//! `latido run`.

use std::process::ExitCode;

use crate::args::RunArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &RunArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido run`", "this build does not have it", "use a complete build of latido"))
}
