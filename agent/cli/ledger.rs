//! `latido ledger`.

use std::process::ExitCode;

use crate::args::LedgerArgs;
use crate::context::Context;
use crate::failure::Failure;

/// Carries the command out.
pub(crate) fn run(_args: &LedgerArgs, _context: &Context) -> Result<ExitCode, Failure> {
    Err(Failure::itself("cannot carry out `latido ledger`", "this build does not have it", "use a complete build of latido"))
}
