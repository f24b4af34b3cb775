//! `latido plugin replay`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use latido::component_spec;
use latido_plugin_host::Kind;
use latido_plugin_kit::{Plugin, Replayed, Workshop, chain, recorded_of, replay};
use latido_protocol::FORMAT_VERSION;
use serde::Serialize;

use super::check::configured;
use crate::args::plugin_file::PluginReplayArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;

/// `latido plugin replay --json`.
#[derive(Serialize)]
struct Document<'r> {
    version: u32,
    case: &'r Path,
    #[serde(flatten)]
    replayed: &'r Replayed,
}

/// Carries the command out.
pub(super) fn run(args: &PluginReplayArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("cannot replay {}", args.case.display());
    let plugin = plugin(args, context)?;
    let failure = |why: String, next: &str| Failure::usage(what.clone(), format!("cannot {why}"), next);
    let workshop = Workshop::open(&context.state.plugins().join("compiled"))
        .map_err(|error| failure(chain(&error), "make the state directory yours alone"))?;
    let replayed = replay(&workshop, &plugin, &args.case).map_err(|error| {
        failure(chain(&error), "name the .toml that `latido plugin record` wrote, beside its .golden.json")
    })?;
    let is_same = replayed.differences.is_empty();
    if args.json {
        print::json(&Document { version: FORMAT_VERSION, case: &args.case, replayed: &replayed })?;
    } else {
        print::out(&shown(&args.case, plugin.name(), &replayed))?;
    }
    Ok(if is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(case: &Path, plugin: &str, replayed: &Replayed) -> String {
    let Replayed { calls, differences } = replayed;
    if differences.is_empty() {
        return format!("{}: `{plugin}` answers {calls} calls as it was recorded\n", case.display());
    }
    let mut text = format!("{}: `{plugin}` does something else than was recorded\n", case.display());
    for difference in differences {
        text.push_str(&format!("  {}\n", difference.trim_end().replace('\n', "\n  ")));
    }
    text
}

/// The component that was named, else the one that the config has under the name that was recorded.
fn plugin(args: &PluginReplayArgs, context: &Context) -> Result<Plugin, Failure> {
    if let Some(path) = &args.plugin {
        return read(path);
    }
    let Some(name) = recorded_of(&args.case) else {
        return Err(Failure::usage(
            format!("cannot tell which plugin {} is of", args.case.display()),
            "it does not begin as `latido plugin record` begins a case",
            "name a component with --plugin FILE",
        ));
    };
    let (settings, kind): (_, Kind) = configured(&context.settings, &name)?;
    let spec = component_spec(&settings, kind, &context.state).map_err(|why| {
        Failure::no(
            format!("cannot load plugin `{name}`"),
            format!("cannot {why}"),
            "name a component with --plugin FILE",
        )
    })?;
    let path = PathBuf::from(&name);
    Plugin::from_bytes(&path, spec.component).map_err(|error| not_taken(&path, &chain(&error)))
}

fn read(path: &Path) -> Result<Plugin, Failure> {
    Plugin::read(path).map_err(|error| not_taken(path, &chain(&error)))
}

fn not_taken(path: &Path, why: &str) -> Failure {
    Failure::usage(
        format!("cannot take {} for a plugin", path.display()),
        format!("cannot {why}"),
        "`latido plugin inspect` shows what it is",
    )
}
