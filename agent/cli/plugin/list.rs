//! `latido plugin list`.

use std::process::ExitCode;

use latido::jobs::client::{self, AGENT_WITHIN, AskError};
use latido_protocol::FORMAT_VERSION;
use latido_protocol::control::{Answer, Request};
use latido_protocol::status::PluginStatus;
use serde::Serialize;

use super::unreachable;
use crate::args::PluginListArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;
use crate::table::Table;

/// A state in which a plugin does its work, or soon will.
const WORKING: [&str; 2] = ["active", "loading"];

/// `latido plugin list --json`.
#[derive(Serialize)]
struct Listing {
    version: u32,
    plugins: Vec<PluginStatus>,
}

/// Carries the command out.
pub(super) fn run(args: &PluginListArgs, context: &Context) -> Result<ExitCode, Failure> {
    let answer = client::ask_agent(&context.state, Request::Status { subjects: Vec::new() }, AGENT_WITHIN);
    let document = match answer {
        Ok(Answer::Status { document }) => document,
        Ok(_) => return Err(unreachable("list the plugins", &AskError::OtherAnswer)),
        Err(error) => return Err(unreachable("list the plugins", &error)),
    };
    let plugins = document.agent.map(|agent| agent.plugins).unwrap_or_default();
    let all_work = plugins.iter().all(|plugin| WORKING.contains(&plugin.state.as_str()));
    if args.json {
        print::json(&Listing { version: FORMAT_VERSION, plugins })?;
    } else {
        show(&plugins)?;
    }
    Ok(if all_work { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(plugins: &[PluginStatus]) -> Result<(), Failure> {
    let mut table = Table::new(&["NAME", "KIND", "INTERFACE", "STATE", "FAULTS", "QUEUE", "CALLS", "BUSY", "MEMORY"]);
    let or_dash = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    for plugin in plugins {
        table.row([
            plugin.name.clone(),
            plugin.kind.clone(),
            if plugin.interface.is_empty() { "-".to_owned() } else { plugin.interface.clone() },
            plugin.state.clone(),
            faults(plugin),
            or_dash(plugin.queue),
            plugin.calls.to_string(),
            plugin.busy_s.to_string(),
            format!("{} KiB", plugin.memory_bytes / 1024),
        ]);
    }
    let mut text = table.to_string();
    for plugin in plugins {
        for line in notes(plugin) {
            text.push_str(&format!("\n{}: {}", plugin.name, crate::table::one_line(&line)));
        }
    }
    print::out(&format!("{}\n", text.trim_end()))
}

/// How many faults, and of which kinds.
fn faults(plugin: &PluginStatus) -> String {
    let kinds: Vec<String> = plugin.faults_by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if kinds.is_empty() { plugin.faults.to_string() } else { kinds.join(", ") }
}

/// What needs more words than a column has.
fn notes(plugin: &PluginStatus) -> Vec<String> {
    let mut notes = Vec::new();
    if plugin.set_aside > 0 {
        notes.push(format!("{} entries could not be delivered and are set aside", plugin.set_aside));
    }
    if plugin.lost > 0 {
        notes.push(format!("{} entries are lost: it was too far behind", plugin.lost));
    }
    notes.extend(plugin.detail.clone());
    notes.extend(plugin.reload_refused.clone());
    notes
}
