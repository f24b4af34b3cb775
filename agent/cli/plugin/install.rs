//! `latido plugin install`.

use std::process::ExitCode;
use std::sync::Arc;

use latido_plugin_kit::{Inspection, InstallError, Trust, TrustError, chain, describe, inspect, install, is_name};

use super::file::{Source, host, runtime};
use super::pack::key_failure;
use crate::args::plugin_file::PluginInstallArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;

/// Carries the command out.
pub(super) fn run(args: &PluginInstallArgs, context: &Context) -> Result<ExitCode, Failure> {
    let source = Source::open(&args.path)?;
    let component: Arc<[u8]> = source.read()?.into();
    let trust = Trust { digest: args.digest, key: args.key.clone() };
    match trust.judge(&component) {
        Ok(()) => {}
        Err(TrustError::Key(error)) => return Err(key_failure(&error)),
        Err(error) => {
            let next = "ask who made it for the right file, or for the right key and digest";
            return Err(refused(&source, format!("cannot {}", chain(&error)), next));
        }
    }
    let mut seen = inspect(&component);
    let name = name(args, &seen, &source)?;
    // Asks it what it is, which compiles it into the agent's cache.
    runtime()?.block_on(describe(&host(context)?, &name, Arc::clone(&component), &mut seen));
    if let Some(problem) = seen.problems.first() {
        return Err(refused(&source, format!("cannot {problem}"), "`latido plugin inspect` shows what it has"));
    }
    let path = install(&context.state.installed_plugins(), &name, &component).map_err(|error| {
        let what = format!("cannot install {}", source.component.display());
        let why = format!("cannot {}", chain(&error));
        if let InstallError::Name { .. } = error {
            Failure::usage(what, why, "give it another name with --name NAME")
        } else {
            Failure::itself(what, why, "make the folder yours alone, or make room")
        }
    })?;
    print::note(&format!("installed {}; for the config:", path.display()));
    print::out(&lines(&name, &seen))?;
    Ok(ExitCode::SUCCESS)
}

fn refused(source: &Source, why: String, next: &str) -> Failure {
    Failure::refused(format!("cannot install {}", source.component.display()), why, next)
}

/// The name that was given, else the one that it has in its manifest, else its file's.
fn name(args: &PluginInstallArgs, seen: &Inspection, source: &Source) -> Result<String, Failure> {
    let own = seen.manifest.as_ref().map(|manifest| manifest.plugin.name.clone()).filter(|name| !name.is_empty());
    let name = args.name.clone().or(own).unwrap_or_else(|| source.name());
    if is_name(&name) {
        return Ok(name);
    }
    Err(Failure::usage(
        format!("cannot install {} as {name:?}", source.component.display()),
        latido_plugin_kit::NAME_RULE,
        "give it another name with --name NAME",
    ))
}

/// The table of the config, to paste.
fn lines(name: &str, seen: &Inspection) -> String {
    let kind = seen.kind.unwrap_or("sink");
    let mut text = format!("[[{kind}]]\nname = \"{name}\"\nsource = \"installed:{name}\"\n");
    if let Some(digest) = &seen.digest {
        text.push_str(&format!("digest = \"{digest}\"\n"));
    }
    if let Some(key) = &seen.signer {
        text.push_str(&format!("key = \"{key}\"\n"));
    }
    for line in &seen.asks {
        text.push_str(&format!("{line}\n"));
    }
    let required = seen.description.as_ref().and_then(|said| said.settings_schema["required"].as_array());
    for setting in required.into_iter().flatten().filter_map(serde_json::Value::as_str) {
        text.push_str(&format!("#settings.{setting} = … is needed: `latido plugin inspect` says what it is\n"));
    }
    text
}
