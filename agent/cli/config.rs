//! `latido config`.

use std::path::Path;
use std::process::ExitCode;

use latido::settings::{Settings, schema_text};

use crate::args::{ConfigArgs, ConfigCommand, GlobalArgs};
use crate::context::{Context, settings_failure};
use crate::failure::{Failure, chain};
use crate::print;

/// Checks, shows or describes the config.
pub(crate) fn run(args: &ConfigArgs, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        ConfigCommand::Check(args) => check(args.file.as_deref().or(global.config.as_deref())),
        ConfigCommand::Show => show(global),
        ConfigCommand::Schema => print::out(&schema_text()),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn check(file: Option<&Path>) -> Result<(), Failure> {
    let settings = Settings::load(file).map_err(|error| settings_failure(&error))?;
    for warning in &settings.warnings {
        print::warn(&warning.to_string());
    }
    print::out(&match &settings.file {
        Some(file) => format!("{}: fine\n", file.display()),
        None => "no config file: the defaults are in force\n".to_owned(),
    })
}

fn show(global: &GlobalArgs) -> Result<(), Failure> {
    let Context { settings, state } = Context::load(global)?;
    let config = match &settings.file {
        Some(file) => format!("{}, and the defaults for what it does not say", file.display()),
        None => "no file; all are defaults".to_owned(),
    };
    let directory = if global.state_dir.is_some() {
        "--state-dir"
    } else if settings.agent.state_dir.is_some() {
        "agent.state_dir"
    } else {
        "the environment"
    };
    let text = settings.to_toml().map_err(|error| {
        Failure::itself(
            "cannot write the settings as TOML",
            chain(&error),
            "look at the plugins' own settings for a value that TOML does not know",
        )
    })?;
    print::out(&format!(
        "# settings: {config}\n# state directory: {}, from {directory}\n\n{text}",
        state.path().display()
    ))
}
