//! `latido plugin bench`.

use std::path::Path;
use std::process::ExitCode;

use latido_plugin_kit::{Excess, Figures, bench};
use latido_protocol::FORMAT_VERSION;
use serde::{Deserialize, Serialize};

use super::tried::{Tried, not_run};
use crate::args::PluginBenchArgs;
use crate::failure::Failure;
use crate::print;
use crate::table::Table;

const WHAT: &str = "measure the plugin";

/// `latido plugin bench --json`, which is also a baseline.
#[derive(Serialize, Deserialize)]
struct Listing {
    version: u32,
    #[serde(flatten)]
    figures: Figures,
    #[serde(default, skip_deserializing)]
    above_budget: Vec<Excess>,
    #[serde(default, skip_deserializing)]
    above_baseline: Vec<Excess>,
}

/// Carries the command out.
pub(super) fn run(args: &PluginBenchArgs) -> Result<ExitCode, Failure> {
    let tried = Tried::open(&args.plugin, WHAT)?;
    let baseline = args.baseline.as_deref().map(read).transpose()?;
    let settings = tried.settings(args.settings.as_ref(), WHAT)?;
    let rounds = usize::try_from(args.rounds).unwrap_or(usize::MAX);
    let figures = bench(&tried.plugin, settings.as_ref(), rounds).map_err(|error| not_run(WHAT, &error))?;
    let budget = args.budget.iter().cloned().collect();
    let above_budget = figures
        .above(&budget)
        .map_err(|why| Failure::usage("cannot compare with the budget", why, "name one of these figures"))?;
    let above_baseline = baseline.map(|baseline| figures.grown(&baseline)).unwrap_or_default();
    let is_within = above_budget.is_empty() && above_baseline.is_empty();
    let listing = Listing { version: FORMAT_VERSION, figures, above_budget, above_baseline };
    if args.json {
        print::json(&listing)?;
    } else {
        print::out(&human(&listing))?;
    }
    Ok(if is_within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> Result<Figures, Failure> {
    let failure = |why: String| {
        let next = "give a file that `latido plugin bench --json` wrote";
        Failure::usage(format!("cannot compare with {}", path.display()), why, next)
    };
    let text = std::fs::read_to_string(path).map_err(|error| failure(error.to_string()))?;
    let listing: Listing = serde_json::from_str(&text).map_err(|error| failure(error.to_string()))?;
    Ok(listing.figures)
}

fn human(listing: &Listing) -> String {
    let mut table = Table::new(&["FIGURE", "VALUE"]);
    for (name, value) in &listing.figures.figures {
        table.row([name.clone(), value.to_string()]);
    }
    let mut text = table.to_string();
    for (what, excesses) in [("budget", &listing.above_budget), ("baseline", &listing.above_baseline)] {
        for Excess { name, found, limit } in excesses {
            text.push_str(&format!("ABOVE the {what}: {name} is {found}, at most {limit}\n"));
        }
    }
    text
}
