//! `latido plugin check`.

use std::process::ExitCode;

use latido::component_spec;
use latido::settings::{PluginSettings, PluginSource, Settings};
use latido_plugin_host::Kind;
use latido_plugin_kit::{Checked, Inspection, check, inspect};
use latido_protocol::FORMAT_VERSION;
use serde::Serialize;

use super::file::{Source, host, runtime};
use crate::args::plugin_file::PluginCheckArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;

/// `latido plugin check --json`.
#[derive(Serialize)]
struct Document<'c> {
    version: u32,
    file: String,
    #[serde(flatten)]
    checked: &'c Checked,
}

/// Carries the command out.
pub(super) fn run(args: &PluginCheckArgs, context: &Context) -> Result<ExitCode, Failure> {
    let source = Source::open(&args.path)?;
    let seen = inspect(&source.read()?);
    let (settings, kind) = match &args.name {
        Some(name) => {
            // With this file in the place of its own.
            let (mut plugin, kind) = configured(&context.settings, name)?;
            plugin.source = PluginSource::File(source.component.clone());
            (plugin, kind)
        }
        None => (PluginSettings::of_file(&source.name(), &source.component), kind_of(&seen, &source)?),
    };
    let checked = judged(&settings, kind, context)?;
    let file = source.component.display().to_string();
    if args.json {
        print::json(&Document { version: FORMAT_VERSION, file, checked: &checked })?;
    } else {
        print::out(&shown(&file, &checked, args.name.is_some()))?;
    }
    // Without its table nothing is granted yet: what it asks for is told, and is no fault.
    let is_fine = checked.problem.is_none() && (args.name.is_none() || checked.missing.is_empty());
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Loads it as the agent does, beginning with the words of its config.
fn judged(settings: &PluginSettings, kind: Kind, context: &Context) -> Result<Checked, Failure> {
    let spec = match component_spec(settings, kind, &context.state) {
        Ok(spec) => spec,
        Err(problem) => {
            let (name, problem) = (settings.name.clone(), Some(problem));
            return Ok(Checked { name, kind: kind.name(), interface: None, missing: Vec::new(), problem });
        }
    };
    let host = host(context)?;
    runtime()?.block_on(check(&host, spec)).map_err(|error| {
        Failure::itself(
            "cannot check the plugin",
            error.to_string(),
            "free some room in the folder for temporary files",
        )
    })
}

/// The plugin's table in the config.
pub(super) fn configured(settings: &Settings, name: &str) -> Result<(PluginSettings, Kind), Failure> {
    let sinks = settings.sinks.iter().map(|sink| (&sink.plugin, Kind::Sink));
    let rules = settings.rules.iter().map(|rule| (rule, Kind::Rule));
    let strategies = settings.strategies.iter().map(|strategy| (strategy, Kind::Strategy));
    let mut all = sinks.chain(rules).chain(strategies);
    if let Some((plugin, kind)) = all.clone().find(|(plugin, _)| plugin.name == name) {
        return Ok((plugin.clone(), kind));
    }
    let known: Vec<String> = all.by_ref().map(|(plugin, _)| format!("`{}`", plugin.name)).collect();
    Err(Failure::usage(
        format!("cannot find the plugin `{name}` in the config"),
        if known.is_empty() { "the config has no plugins".to_owned() } else { format!("it has {}", known.join(", ")) },
        "name one of these, or another config with --config FILE",
    ))
}

fn kind_of(seen: &Inspection, source: &Source) -> Result<Kind, Failure> {
    seen.kind().ok_or_else(|| {
        let why = seen.problems.first().map(|problem| format!("cannot {problem}"));
        Failure::no(
            format!("cannot tell what {} is to be used as", source.component.display()),
            why.unwrap_or_else(|| {
                "it exports none of the interfaces sink, rule and strategy of `latido:plugin`".to_owned()
            }),
            "`latido plugin inspect` shows what it has",
        )
    })
}

fn shown(file: &str, checked: &Checked, is_configured: bool) -> String {
    let Checked { name, kind, interface, missing, problem } = checked;
    let mut lines = Vec::new();
    match (problem, interface) {
        (Some(problem), _) => {
            lines.push(format!("{file}: no, it would not be loaded as {kind} `{name}`"));
            lines.push(format!("  cannot {}", problem.replace('\n', "\n  ")));
        }
        (None, Some(interface)) => {
            lines.push(format!(
                "{file}: it loads as {kind} `{name}`, by latido:plugin@{interface}, and takes its settings"
            ));
        }
        (None, None) => lines.push(format!("{file}: it was not loaded")),
    }
    if !missing.is_empty() {
        let what = if is_configured { "it asks for more than is granted" } else { "it asks for" };
        lines.push(format!("  {what}; the lines of its table in latido.toml:"));
        lines.extend(missing.iter().map(|line| format!("    {line}")));
    }
    format!("{}\n", lines.join("\n"))
}
