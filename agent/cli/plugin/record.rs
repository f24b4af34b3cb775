//! `latido plugin record`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, AskError};
use latido_plugin_kit::write_private;
use latido_protocol::control::{Answer, Request};

use super::unreachable;
use crate::args::plugin_file::PluginRecordArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;

/// The plugin is loaded twice, and may have to be compiled: a minute is what the agent gives that.
const LOADS_WITHIN: Duration = Duration::from_secs(180);

/// Carries the command out.
pub(super) fn run(args: &PluginRecordArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("record plugin `{}`", args.plugin);
    if args.output.extension().is_none_or(|ending| ending != "toml") {
        return Err(Failure::usage(
            format!("cannot write the case to {}", args.output.display()),
            "a case's file ends in .toml",
            "name another file with -o",
        ));
    }
    let request = Request::RecordPlugin { plugin: args.plugin.clone(), length: args.record_for };
    let within = args.record_for.0.saturating_add(LOADS_WITHIN);
    let (case, golden, calls, is_cut) = match client::ask_agent(&context.state, request, within) {
        Ok(Answer::Recorded { case, golden, calls, is_cut }) => (case, golden, calls, is_cut),
        Ok(_) => return Err(unreachable(&what, &AskError::OtherAnswer)),
        Err(AskError::Refused { message } | AskError::Unknown { message }) => {
            return Err(Failure::refused(
                format!("cannot {what}"),
                format!("the agent cannot {message}"),
                "mend what it says; `latido plugin list` shows all plugins",
            ));
        }
        Err(error) => return Err(unreachable(&what, &error)),
    };
    if calls == 0 {
        return Err(Failure::no(
            format!("cannot {what}"),
            format!("it was not called within {}", args.record_for),
            "record it for longer, or do meanwhile what it is called for",
        ));
    }
    let beside = args.output.with_extension("golden.json");
    write(&args.output, &case)?;
    write(&beside, &golden)?;
    let cut = if is_cut { "; more of them do not fit into a record" } else { "" };
    print::out(&format!("{}: {calls} calls{cut}, answers in {}\n", args.output.display(), beside.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_private(path, text.as_bytes()).map_err(|error| {
        Failure::itself(
            format!("cannot write {}", path.display()),
            error.to_string(),
            "name another file with -o, or make room",
        )
    })
}
