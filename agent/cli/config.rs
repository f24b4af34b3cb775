//! `latido config`.

use std::process::ExitCode;

use latido::settings::Settings;

use crate::args::{ConfigArgs, ConfigCommand, GlobalArgs};
use crate::context::settings_failure;
use crate::failure::Failure;
use crate::print;

/// Checks, shows or describes the config.
pub(crate) fn run(args: &ConfigArgs, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    let file = match &args.command {
        ConfigCommand::Check(check) => check.file.as_deref().or(global.config.as_deref()),
        ConfigCommand::Show | ConfigCommand::Schema => global.config.as_deref(),
    };
    let settings = Settings::load(file).map_err(|error| settings_failure(&error))?;
    print::out(&format!("{settings:#?}\n"))?;
    Ok(ExitCode::SUCCESS)
}
