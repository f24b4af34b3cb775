//! `latido plugin inspect`.

use std::process::ExitCode;
use std::sync::Arc;

use latido_plugin_kit::{Described, Inspection, describe, inspect};
use latido_protocol::FORMAT_VERSION;
use serde::Serialize;
use serde_json::Value;

use super::file::{Source, host, runtime};
use crate::args::plugin_file::PluginInspectArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;

/// `latido plugin inspect --json`.
#[derive(Serialize)]
struct Document<'i> {
    version: u32,
    file: String,
    #[serde(flatten)]
    seen: &'i Inspection,
}

/// Carries the command out.
pub(super) fn run(args: &PluginInspectArgs, context: &Context) -> Result<ExitCode, Failure> {
    let source = Source::open(&args.path)?;
    let component: Arc<[u8]> = source.read()?.into();
    let mut seen = inspect(&component);
    let host = host(context)?;
    runtime()?.block_on(describe(&host, &source.name(), component, &mut seen));
    let file = source.component.display().to_string();
    if args.json {
        print::json(&Document { version: FORMAT_VERSION, file, seen: &seen })?;
    } else {
        print::out(&shown(&file, &seen))?;
    }
    Ok(if seen.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(file: &str, seen: &Inspection) -> String {
    let mut lines = vec![title(seen), row("file", &format!("{file}, {} bytes", seen.bytes))];
    if let Some(version) = &seen.interface {
        lines.push(row("interface", &format!("latido:plugin@{version}")));
    }
    lines.extend(rows("imports", &seen.imports));
    lines.extend(rows("exports", &seen.exports));
    lines.extend(rows("asks for", &seen.asks));
    lines.extend(rows("settings", &seen.description.as_ref().map(settings).unwrap_or_default()));
    let sizes: Vec<String> =
        seen.sections.iter().map(|section| format!("{:>9} bytes  {}", section.bytes, section.name)).collect();
    lines.extend(rows("size", &sizes));
    if let Some(digest) = &seen.digest {
        lines.push(row("digest", digest));
        let signature = seen.signer.as_ref().map(|key| format!("by {key}, valid"));
        lines.push(row("signature", &signature.unwrap_or_else(|| "none".to_owned())));
    }
    for problem in &seen.problems {
        lines.push(row("problem", &format!("cannot {problem}").replace('\n', &format!("\n{}", row("", "")))));
    }
    format!("{}\n", lines.join("\n"))
}

fn title(seen: &Inspection) -> String {
    let about = seen.manifest.as_ref().map(|manifest| &manifest.plugin);
    let (name, version) = match (&seen.description, about) {
        (Some(said), _) => (said.name.as_str(), said.version.as_str()),
        (None, Some(about)) => (about.name.as_str(), about.version.as_str()),
        (None, None) => ("a file without a name", ""),
    };
    let kind = seen.kind.map_or_else(|| "no plugin".to_owned(), |kind| format!("a {kind}"));
    let summary = seen.description.as_ref().map(|said| format!(": {}", said.summary)).unwrap_or_default();
    format!("{}, {kind}{summary}", format!("{name} {version}").trim_end())
}

fn row(name: &str, text: &str) -> String {
    format!("  {name:<11}{text}")
}

/// Several rows, of which the first alone has the name.
fn rows(name: &str, texts: &[String]) -> Vec<String> {
    texts.iter().enumerate().map(|(index, text)| row(if index == 0 { name } else { "" }, text)).collect()
}

/// A line for each setting that the schema names.
fn settings(said: &Described) -> Vec<String> {
    let schema = &said.settings_schema;
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let setting = |(name, about): (&String, &Value)| {
        let mut text = name.clone();
        if let Some(kind) = about["type"].as_str() {
            text.push_str(&format!(" ({kind})"));
        }
        if required.contains(&name.as_str()) {
            text.push_str(", required");
        }
        if let Some(default) = about.get("default") {
            text.push_str(&format!(", {default} by default"));
        }
        if let Some(description) = about["description"].as_str() {
            text.push_str(&format!(": {description}"));
        }
        text
    };
    properties.iter().map(setting).collect()
}
