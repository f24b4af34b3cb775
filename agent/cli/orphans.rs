//! `latido orphans`.

use std::process::ExitCode;

use crate::args::OrphansArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &OrphansArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido orphans`", "this build does not have it", "use a complete build of latido"))
}
