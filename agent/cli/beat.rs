//! `latido beat`.

use std::process::ExitCode;

use crate::args::BeatArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &BeatArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido beat`", "this build does not have it", "use a complete build of latido"))
}
