//! `latido agent`.

use std::cell::Cell;
use std::io::IsTerminal;
use std::process::ExitCode;

use latido::compile::OwnProgram;
use latido::settings::Settings;
use latido::{AgentError, Config, OpenError, PlaceError};
use tracing_subscriber::EnvFilter;

use crate::args::{AgentArgs, GlobalArgs};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::run::NOT_EXPOSED;

/// Variable that chooses what is logged, in the words of `tracing`: `info`, `debug`, `latido=trace` …
const LOG_VARIABLE: &str = "LATIDO_LOG";

/// Carries the command out.
pub(crate) fn run(args: &AgentArgs, global: &GlobalArgs, context: &Context) -> Result<ExitCode, Failure> {
    let filter = EnvFilter::builder().with_env_var(LOG_VARIABLE).try_from_env().unwrap_or_else(|_| "info".into());
    // A second subscriber cannot be: this is the only command that sets one.
    let _already = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    let file = Settings::file_to_load(global.config.as_deref());
    let had_file = Cell::new(context.settings.file.is_some());
    let reread = || match Context::load(global) {
        // No config at all is a config as well, but not where one is in force: its file is being replaced, or was moved.
        Ok(again) if had_file.get() && again.settings.file.is_none() => Err("its file is gone".to_owned()),
        Ok(again) if again.state.path() != context.state.path() => {
            let other = again.state.path().display();
            Err(format!("it names another state directory, {other}; that takes another agent"))
        }
        Ok(again) => {
            had_file.set(again.settings.file.is_some());
            Ok(again.settings)
        }
        Err(failure) => Err(failure.render().trim_end().replace('\n', ";")),
    };
    let config = Config { file: file.as_ref(), compiler: Some(OwnProgram::running()), reread: &reread };
    latido::run(context.settings.clone(), context.state.clone(), args.once, &config)
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| failure(&error))
}

fn failure(error: &AgentError) -> Failure {
    let what = "cannot run the agent";
    let why = format!("cannot {}", chain(error));
    match error {
        AgentError::Place(PlaceError::Taken { .. }) => Failure::refused(
            what,
            why,
            "use the agent that runs (`latido status`), or stop it with SIGTERM first; jobs run on meanwhile",
        ),
        AgentError::Place(PlaceError::NotASocket { .. }) => {
            Failure::refused(what, why, "move away what lies there; latido removes nothing that it did not make")
        }
        AgentError::Place(PlaceError::Unsafe { .. }) => Failure::refused(what, why, NOT_EXPOSED),
        AgentError::Place(_) => {
            Failure::itself(what, why, "make the directory writable, or name another with --state-dir")
        }
        AgentError::OpenStore(OpenError::NewerVersion { .. }) => {
            Failure::refused(what, why, "run the latido that wrote it, or a newer one; nothing was changed")
        }
        AgentError::OpenStore(OpenError::Full { .. }) => {
            Failure::itself(what, why, "free space on the disk, then start the agent again; jobs run on meanwhile")
        }
        AgentError::OpenStore(OpenError::Locked { .. }) => {
            Failure::itself(what, why, "close the program that keeps it open, then start the agent again")
        }
        AgentError::OpenStore(_)
        | AgentError::ReadStore { .. }
        | AgentError::SetAside { .. }
        | AgentError::Unrecovered { .. } => Failure::itself(
            what,
            why,
            "make the state directory readable and writable; `latido doctor` shows what is wrong with it",
        ),
        AgentError::TakenOver { .. } => Failure::refused(
            what,
            why,
            "nothing: the other agent watches this state directory (`latido status`), and nothing was written over. Find out \
             what removed this agent's lock",
        ),
        AgentError::System { .. } => Failure::itself(what, why, "look at the limits of this host with `latido doctor`"),
        AgentError::Panicked | AgentError::PartEnded { .. } => {
            Failure::itself(what, why, "start the agent again and report the message above it; jobs run on")
        }
        _ => Failure::itself(what, why, "look at `latido doctor`"),
    }
}
