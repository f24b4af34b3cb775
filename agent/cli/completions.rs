//! `latido completions`.

use std::process::ExitCode;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Failure;
use crate::print;

/// Prints the completions for one shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "latido", &mut text);
    print::bytes(&text)?;
    Ok(ExitCode::SUCCESS)
}
