//! The command line: one file per command, named as it is typed.

use std::process::ExitCode;

use clap::Parser;

mod agent;
mod alerts;
mod args;
mod assign;
mod beat;
mod claim;
mod completions;
mod config;
mod context;
mod doctor;
mod drain;
mod events;
mod failure;
mod fence;
mod follow;
mod group;
mod harmless;
mod ledger;
mod logs;
mod man;
mod metrics;
mod orphans;
mod outcome;
mod pause;
mod plugin;
mod print;
mod registry;
mod release;
mod remove;
mod replay;
mod resume;
mod run;
mod signal;
mod status;
mod stop;
mod subject;
mod table;
mod wait;
mod why;
mod worker;

use args::{Cli, Command};
use clap::error::{ContextKind, ErrorKind};
use context::Context;
use failure::Failure;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == latido::compile::WORD) {
        return latido::compile::child(words);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return usage(&message),
    };
    match carry_out(&cli) {
        Ok(code) => code,
        Err(failure) => {
            print::failure(&failure);
            failure.exit_code()
        }
    }
}

/// Help and version go to stdout with 0; wrong use goes to stderr with 2.
fn usage(message: &clap::Error) -> ExitCode {
    if matches!(message.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        let failure = unusable_value(message);
        print::failure(&failure);
        return failure.exit_code();
    }
    // What cannot be printed here cannot be reported either: a reader that has gone is no failure.
    let _ = message.print();
    ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2))
}

/// What was given for an option or an argument, and why it cannot be taken.
fn unusable_value(message: &clap::Error) -> Failure {
    let told = |kind| message.get(kind).map(ToString::to_string).unwrap_or_default();
    let what = format!("cannot take {:?} for {}", told(ContextKind::InvalidValue), told(ContextKind::InvalidArg));
    let why = std::error::Error::source(message).map_or_else(
        || {
            let text = message.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        },
        ToString::to_string,
    );
    Failure::usage(what, why, "give another value; `--help` behind the command shows what it takes")
}

fn carry_out(cli: &Cli) -> Result<ExitCode, Failure> {
    let load = || Context::load(&cli.global);
    match &cli.command {
        Command::Run(args) => run::run(args, &load()?),
        Command::Wait(args) => wait::run(args, &load()?),
        Command::Status(args) => status::run(args, &load()?),
        Command::Why(args) => why::run(args, &load()?),
        Command::Logs(args) => logs::run(args, &load()?),
        Command::Stop(args) => stop::run(args, &load()?),
        Command::Resume(args) => resume::run(args, &load()?),
        Command::Pause(args) => pause::pause(args, &load()?),
        Command::Unpause(args) => pause::unpause(args, &load()?),
        Command::Remove(args) => remove::run(args, &load()?),
        Command::Beat(args) => beat::run(args, &Context::load_or_default(&cli.global)?),
        Command::Fence(args) => fence::run(args, &Context::load_or_default(&cli.global)?),
        Command::Worker(args) => worker::run(args, &load()?),
        Command::Group(args) => group::run(args, &load()?),
        Command::Claim(args) => claim::run(args, &load()?),
        Command::Assign(args) => assign::run(args, &load()?),
        Command::Release(args) => release::run(args, &load()?),
        Command::Drain(args) => drain::run(args, &load()?),
        Command::Ledger(args) => ledger::run(args, &load()?),
        Command::Events(args) => events::run(args, &load()?),
        Command::Alerts(args) => alerts::run(args, &load()?),
        Command::Orphans(args) => orphans::run(args, &load()?),
        Command::Metrics => metrics::run(&load()?),
        Command::Plugin(args) => plugin::run(args, &cli.global),
        Command::Agent(args) => agent::run(args, &cli.global, &load()?),
        Command::Replay(args) => replay::run(args, &cli.global),
        Command::Config(args) => config::run(args, &cli.global),
        Command::Doctor(args) => doctor::run(args, &cli.global),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
    }
}
