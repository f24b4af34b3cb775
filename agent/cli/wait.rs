//! `latido wait`.

use std::process::ExitCode;

use crate::args::WaitArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &WaitArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido wait`", "this build does not have it", "use a complete build of latido"))
}
