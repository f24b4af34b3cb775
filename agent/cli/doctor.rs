//! `latido doctor`.

use std::process::ExitCode;

use crate::args::{DoctorArgs, GlobalArgs};
use crate::context::Context;
use crate::failure::Failure;

/// Looks for what would keep latido from working here.
pub(crate) fn run(_args: &DoctorArgs, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    Context::load(global).map(|_| ExitCode::SUCCESS)
}
