//! `latido fence`.

use std::process::ExitCode;

use crate::args::FenceArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &FenceArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido fence`", "this build does not have it", "use a complete build of latido"))
}
