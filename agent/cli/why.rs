//! `latido why`.

use std::process::ExitCode;

use crate::args::WhyArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &WhyArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido why`", "this build does not have it", "use a complete build of latido"))
}
