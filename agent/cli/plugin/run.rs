//! `latido plugin run`.

use std::path::Path;
use std::process::ExitCode;

use latido::{add_entry, subject_of};
use latido_plugin_host::Entries;
use latido_plugin_kit::{Answered, Fed, ask, feed};
use latido_protocol::FORMAT_VERSION;
use latido_protocol::journal::Entry;
use latido_protocol::status::StatusDocument;
use serde::Serialize;

use super::tried::{Tried, not_run, workshop};
use crate::args::PluginRunArgs;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::print;
use crate::table::one_line;

const WHAT: &str = "run the plugin";

/// `latido plugin run --json`.
#[derive(Serialize)]
struct Listing {
    version: u32,
    entries: usize,
    #[serde(flatten)]
    fed: Fed,
}

/// `latido plugin run --status --json`.
#[derive(Serialize)]
struct Answers {
    version: u32,
    #[serde(flatten)]
    answered: Answered,
}

/// Carries the command out.
pub(super) fn run(args: &PluginRunArgs, context: &Context) -> Result<ExitCode, Failure> {
    let tried = Tried::open(&args.plugin, WHAT)?;
    match (&args.status, &args.entries) {
        (Some(path), _) => rule(args, path, &tried, context),
        (None, Some(path)) => sink(args, path, &tried, context),
        (None, None) => {
            Err(Failure::usage(format!("cannot {WHAT}"), "nothing to run it on is given", "give --entries"))
        }
    }
}

/// Asks a rule about the subjects of status documents.
fn rule(args: &PluginRunArgs, path: &Path, tried: &Tried, context: &Context) -> Result<ExitCode, Failure> {
    let failure = |why: String| {
        let next = "give a file that `latido status --json` wrote";
        Failure::usage(format!("cannot read the status in {}", path.display()), why, next)
    };
    let text = std::fs::read_to_string(path).map_err(|error| failure(chain(&error)))?;
    let mut questions = Vec::new();
    for document in serde_json::Deserializer::from_str(&text).into_iter::<StatusDocument>() {
        let document = document.map_err(|error| failure(error.to_string()))?;
        questions.push((document.at.as_millis(), document.subjects.into_iter().map(subject_of).collect()));
    }
    let settings = tried.settings(args.settings.as_ref(), WHAT)?;
    let answered = ask(&workshop(context, WHAT)?, &tried.plugin, settings.as_ref(), questions)
        .map_err(|error| not_run(WHAT, &error))?;
    let is_well = answered.answers.iter().all(|answer| answer.get("findings").is_some());
    if args.json {
        print::json(&Answers { version: FORMAT_VERSION, answered })?;
    } else {
        let mut text = String::new();
        for (number, answer) in (1..).zip(&answered.answers) {
            text.push_str(&format!("{number}: {}\n", one_line(&answer.to_string())));
        }
        for line in &answered.logs {
            text.push_str(&format!("  log {}\n", one_line(line)));
        }
        text.push_str(&format!("{} fuel, {} KiB of memory\n", answered.fuel, answered.memory.div_ceil(1024)));
        print::out(&text)?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Feeds entries to a sink.
fn sink(args: &PluginRunArgs, path: &Path, tried: &Tried, context: &Context) -> Result<ExitCode, Failure> {
    let read = read(path)?;
    let settings = tried.settings(args.settings.as_ref(), WHAT)?;
    let batch = |skip: usize, count: usize| {
        let journal = read.first().map(|entry| entry.agent.as_str()).unwrap_or("recorded");
        let mut batch = Entries::new(journal);
        for entry in read.iter().skip(skip).take(count) {
            add_entry(&mut batch, entry);
        }
        batch
    };
    let size = (read.len(), usize::try_from(args.batch).unwrap_or(1));
    let workshop = workshop(context, WHAT)?;
    let fed = feed(&workshop, &tried.plugin, settings.as_ref(), size, &batch, args.keep.as_deref())
        .map_err(|error| not_run(WHAT, &error))?;
    let is_whole = fed.delivered.undelivered.is_empty() && fed.delivered.aside.is_empty();
    if args.json {
        print::json(&Listing { version: FORMAT_VERSION, entries: read.len(), fed })?;
    } else {
        print::out(&human(read.len(), &fed))?;
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads one entry a line; each is another's successor.
fn read(path: &Path) -> Result<Vec<Entry>, Failure> {
    let failure = |why: String| {
        let next = "give a file that `latido events --json` wrote";
        Failure::usage(format!("cannot read the entries in {}", path.display()), why, next)
    };
    let text = std::fs::read_to_string(path).map_err(|error| failure(chain(&error)))?;
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let entry: Entry = serde_json::from_str(line).map_err(|error| failure(format!("line {number}: {error}")))?;
        if let Some(last) = entries.last().filter(|last| last.sequence >= entry.sequence) {
            let why = format!("line {number}: entry {} comes after entry {}", entry.sequence, last.sequence);
            return Err(failure(why));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn human(count: usize, fed: &Fed) -> String {
    let Fed { delivered, capabilities, requests, logs, fuel, memory, kept } = fed;
    let mut text = format!(
        "{} of {count} entries are durable, {} set aside, {} never taken, in {} calls\n",
        delivered.acknowledged.len(),
        delivered.aside.len(),
        delivered.undelivered.len(),
        delivered.writes
    );
    for (name, count) in capabilities {
        text.push_str(&format!("  {name}: {count}\n"));
    }
    for request in requests {
        text.push_str(&format!("  request {}\n", one_line(&request.to_string())));
    }
    for failure in &delivered.failures {
        text.push_str(&format!("  failed: {}\n", one_line(failure)));
    }
    for line in logs {
        text.push_str(&format!("  log {}\n", one_line(line)));
    }
    text.push_str(&format!("{fuel} fuel, {} KiB of memory\n", memory.div_ceil(1024)));
    for path in kept {
        text.push_str(&format!("kept {}\n", path.display()));
    }
    text
}
