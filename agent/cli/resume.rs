//! `latido resume`.

use std::process::ExitCode;

use crate::args::ResumeArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &ResumeArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido resume`", "this build does not have it", "use a complete build of latido"))
}
