//! `latido plugin chaos`.

use std::process::ExitCode;

use latido_plugin_kit::{ChaosPlan, Mishap, Round, chaos};
use latido_protocol::FORMAT_VERSION;
use serde::Serialize;

use super::tried::{Tried, not_run, workshop};
use crate::args::PluginChaosArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::print;
use crate::table::one_line;

const WHAT: &str = "let things go wrong at the plugin";

/// `latido plugin chaos --json`.
#[derive(Serialize)]
struct Listing {
    version: u32,
    seed: u64,
    recovers: bool,
    rounds: Vec<Round>,
}

/// Carries the command out.
pub(super) fn run(args: &PluginChaosArgs, context: &Context) -> Result<ExitCode, Failure> {
    let tried = Tried::open(&args.plugin, WHAT)?;
    let plan = ChaosPlan {
        what: args.what.clone(),
        at: args.at.clone(),
        seed: args.seed,
        rounds: args.rounds,
        settings: tried.settings(args.settings.as_ref(), WHAT)?,
    };
    let rounds = chaos(&workshop(context, WHAT)?, &tried.plugin, &plan).map_err(|error| not_run(WHAT, &error))?;
    let recovers = rounds.iter().all(|round| round.recovers);
    if args.json {
        print::json(&Listing { version: FORMAT_VERSION, seed: args.seed, recovers, rounds })?;
    } else {
        print::out(&human(&rounds))?;
    }
    Ok(if recovers { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn human(rounds: &[Round]) -> String {
    let mut text = String::new();
    for round in rounds {
        let mishaps: Vec<String> =
            round.mishaps.iter().map(|(at, mishap)| format!("{} at call {at}", Mishap::name(*mishap))).collect();
        let word = if round.recovers { "ok  " } else { "LOST" };
        text.push_str(&format!("  {word}  {}{}\n", mishaps.join(", "), notes(round)));
        if !round.recovers {
            for failure in &round.failures {
                text.push_str(&format!("        {}\n", one_line(failure)));
            }
        }
    }
    if rounds.is_empty() {
        text.push_str("the plugin calls no capability: there is nothing to go wrong\n");
    }
    let ok = rounds.iter().filter(|round| round.recovers).count();
    let twice = rounds.iter().filter(|round| !round.twice.is_empty()).count();
    text.push_str(&format!("{ok} of {} rounds lost nothing; in {twice} entries are there twice\n", rounds.len()));
    text
}

/// What a round did to entries and answers.
fn notes(round: &Round) -> String {
    let mut notes = Vec::new();
    for (what, entries) in [
        ("acknowledged and nowhere", &round.lost),
        ("twice", &round.twice),
        ("never delivered", &round.undelivered),
        ("set aside", &round.aside),
    ] {
        if !entries.is_empty() {
            notes.push(format!("{what}: {}", spans(entries)));
        }
    }
    if !round.other_answers.is_empty() {
        notes.push(format!("{} other answers", round.other_answers.len()));
    }
    if round.stops > 0 {
        notes.push("it stood until somebody acted".to_owned());
    }
    if notes.is_empty() { String::new() } else { format!(": {}", notes.join("; ")) }
}

/// Numbers in their order, neighbours together: `1-3, 7`.
fn spans(numbers: &[u64]) -> String {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => spans.push((*number, *number)),
        }
    }
    let span = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    spans.iter().map(span).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::spans;

    #[test]
    fn neighbours_stand_together() {
        assert_eq!(spans(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
    }
}
