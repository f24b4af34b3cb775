//! `latido plugin test`.

use std::path::PathBuf;
use std::process::ExitCode;

use latido_plugin_kit::{Outcome, Plan, Report, Watcher, junit, tap, test};
use latido_protocol::FORMAT_VERSION;
use serde::Serialize;

use super::tried::{Tried, workshop};
use crate::args::{PluginTestArgs, TestFormat};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::print;

const WHAT: &str = "test the plugin";

/// Lines of a plugin's log that are shown with a case that does not pass.
const LOGS_SHOWN: usize = 10;

/// `latido plugin test --json`.
#[derive(Serialize)]
struct Listing<'a> {
    version: u32,
    passes: bool,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// Carries the command out.
pub(super) fn run(args: &PluginTestArgs, context: &Context) -> Result<ExitCode, Failure> {
    if args.watch {
        return watch(args, context);
    }
    once(args, context)
}

fn once(args: &PluginTestArgs, context: &Context) -> Result<ExitCode, Failure> {
    let tried = Tried::open(&args.plugin, WHAT)?;
    let cases = args.cases.clone().unwrap_or(tried.cases);
    if args.cases.as_ref().is_some_and(|cases| !cases.is_dir()) {
        let why = format!("{} is no folder", cases.display());
        return Err(Failure::usage(format!("cannot {WHAT}"), why, "name the folder that the cases lie in"));
    }
    let plan = Plan {
        cases: Some(cases).filter(|_| !args.conformance),
        update: args.update,
        conformance: !args.cases_only,
        only: args.only.clone(),
    };
    let outcome = test(&workshop(context, WHAT)?, &tried.plugin, &plan).map_err(|error| {
        let next = "mend what it says; the plugin was not run";
        Failure::refused(format!("cannot {WHAT}"), format!("cannot {}", chain(&error)), next)
    })?;
    show(args, &outcome)?;
    Ok(if outcome.passes() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tests, and tests again with every change, until it is interrupted.
fn watch(args: &PluginTestArgs, context: &Context) -> Result<ExitCode, Failure> {
    let paths: Vec<PathBuf> = [Some(args.plugin.clone()), args.cases.clone()].into_iter().flatten().collect();
    let watcher = Watcher::new(&paths).map_err(|error| {
        let next = "test without --watch";
        Failure::itself("cannot watch the plugin", format!("cannot {}", chain(&error)), next)
    })?;
    loop {
        if let Err(failure) = once(args, context) {
            if failure.kind() == crate::failure::FailureKind::ReaderGone {
                return Err(failure);
            }
            print::failure(&failure);
        }
        print::note("waiting for a change; Ctrl-C ends it");
        match watcher.changed() {
            Some(path) => print::note(&format!("changed: {}", path.display())),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn show(args: &PluginTestArgs, outcome: &Outcome) -> Result<(), Failure> {
    let format = if args.json { TestFormat::Json } else { args.format };
    match format {
        TestFormat::Json => print::json(&Listing { version: FORMAT_VERSION, passes: outcome.passes(), outcome }),
        TestFormat::Tap => print::out(&tap(outcome)),
        TestFormat::Junit => {
            let document = junit(outcome).map_err(|why| {
                Failure::itself("cannot write the outcome as JUnit", why, "take another format, and report this")
            })?;
            print::out(&document)
        }
        TestFormat::Human => print::out(&human(outcome, args.logs)),
    }
}

fn human(outcome: &Outcome, logs: bool) -> String {
    let mut text = format!("{} ({})\n", outcome.plugin, outcome.kind);
    for report in &outcome.cases {
        text.push_str(&lines(report, true, logs));
    }
    if !outcome.conformance.is_empty() {
        text.push_str(&format!("what every {} has to bear\n", outcome.kind));
    }
    for report in &outcome.conformance {
        text.push_str(&lines(report, false, logs));
    }
    let passing = |reports: &[Report]| reports.iter().filter(|report| report.passes()).count();
    let (cases, suite) = (&outcome.cases, &outcome.conformance);
    let mut sums = vec![format!("{} of {} cases pass", passing(cases), cases.len())];
    if !suite.is_empty() {
        sums.push(format!("{} of {} trials of the suite", passing(suite), suite.len()));
    }
    text.push_str(&format!("{}\n", sums.join(", ")));
    text
}

fn lines(report: &Report, is_case: bool, logs: bool) -> String {
    let word = if report.passes() { "ok  " } else { "FAIL" };
    let mut text = format!("  {word}  {}", report.name);
    if is_case && report.fuel > 0 {
        let Report { fuel, memory, capabilities, took_ms, .. } = report;
        text.push_str(&format!(
            "  ({fuel} fuel, {} KiB, {capabilities} capability calls, {took_ms} ms)",
            memory.div_ceil(1024)
        ));
    }
    if report.updated {
        text.push_str("  golden file written");
    }
    text.push('\n');
    for line in report.faults.iter().flat_map(|fault| fault.lines()) {
        text.push_str(&format!("        {line}\n"));
    }
    if logs || !report.passes() {
        let skipped = if logs { 0 } else { report.logs.len().saturating_sub(LOGS_SHOWN) };
        for line in report.logs.iter().skip(skipped) {
            text.push_str(&format!("        log {}\n", crate::table::one_line(line)));
        }
    }
    text
}
