//! `latido plugin …`, one file for each command.

mod bench;
mod build;
mod chaos;
mod check;
mod file;
mod inspect;
mod install;
mod list;
mod new;
mod pack;
mod record;
mod reload;
mod replay;
mod run;
mod test;
mod tried;
mod verify;

use std::process::ExitCode;

use latido::jobs::client::AskError;

use crate::args::{GlobalArgs, PluginArgs, PluginCommand};
use crate::context::Context;
use crate::failure::{Failure, chain};

/// Carries the command out.
pub(crate) fn run(args: &PluginArgs, global: &GlobalArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        PluginCommand::List(args) => list::run(args, &Context::load(global)?),
        PluginCommand::Reload(args) => reload::run(args, &Context::load(global)?),
        PluginCommand::Test(args) => test::run(args, &Context::load(global)?),
        PluginCommand::Chaos(args) => chaos::run(args, &Context::load(global)?),
        PluginCommand::Bench(args) => bench::run(args),
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build(args) => build::run(args),
        PluginCommand::Run(args) => run::run(args, &Context::load(global)?),
        PluginCommand::Inspect(args) => inspect::run(args, &Context::load_or_default(global)?),
        PluginCommand::Check(args) => check::run(args, &Context::load(global)?),
        PluginCommand::Pack(args) => pack::run(args),
        PluginCommand::Verify(args) => verify::run(args),
        PluginCommand::Install(args) => install::run(args, &Context::load(global)?),
        PluginCommand::Record(args) => record::run(args, &Context::load(global)?),
        PluginCommand::Replay(args) => replay::run(args, &Context::load(global)?),
    }
}

fn unreachable(what: &str, error: &AskError) -> Failure {
    Failure::unreachable(
        format!("cannot {what}"),
        format!("cannot {}", chain(error)),
        "start the agent with `latido agent`: it alone runs plugins",
    )
}
