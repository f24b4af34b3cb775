//! `latido plugin …`, one file for each command.

mod bench;
mod chaos;
mod list;
mod reload;
mod run;
mod test;
mod tried;

use std::process::ExitCode;

use latido::jobs::client::AskError;

use crate::args::{PluginArgs, PluginCommand};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// Carries the command out.
pub(crate) fn run(args: &PluginArgs, context: &Context) -> Result<ExitCode, Failure> {
    match &args.command {
        PluginCommand::List(args) => list::run(args, context),
        PluginCommand::Reload(args) => reload::run(args, context),
        PluginCommand::Test(args) => test::run(args, context),
        PluginCommand::Chaos(args) => chaos::run(args, context),
        PluginCommand::Bench(args) => bench::run(args),
        PluginCommand::Run(args) => run::run(args, context),
    }
}

fn unreachable(what: &str, error: &AskError) -> Failure {
    Failure::unreachable(
        format!("cannot {what}"),
        format!("cannot {}", chain(error)),
        "start the agent with `latido agent`: it alone runs plugins",
    )
}
