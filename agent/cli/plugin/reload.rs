//! `latido plugin reload`.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, AskError};
use latido_protocol::control::{Answer, Request};

use super::unreachable;
use crate::args::PluginReloadArgs;
use crate::context::Context;
use crate::failure::Failure;

/// A large component may have to be compiled first: a minute is what the agent gives that.
const RELOAD_WITHIN: Duration = Duration::from_secs(90);

/// Carries the command out.
pub(super) fn run(args: &PluginReloadArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("reload plugin `{}`", args.plugin);
    let request = Request::ReloadPlugin { plugin: args.plugin.clone() };
    match client::ask_agent(&context.state, request, RELOAD_WITHIN) {
        Ok(Answer::Done) => Ok(ExitCode::SUCCESS),
        Ok(_) => Err(unreachable(&what, &AskError::OtherAnswer)),
        Err(AskError::Refused { message } | AskError::Unknown { message }) => Err(Failure::refused(
            format!("cannot {what}"),
            format!("the agent cannot {message}"),
            "mend what it says; `latido plugin list` shows all plugins",
        )),
        Err(error) => Err(unreachable(&what, &error)),
    }
}
