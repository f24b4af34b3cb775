//! A replay in words.

use std::collections::BTreeMap;

use latido_driver::replay::{About, Afterwards, Difference, Side};
use latido_protocol::{Class, Span, WallTime};

use super::document::{Document, Shown};
use crate::table::Table;

/// The replay as people read it.
pub(super) fn text(document: &Document) -> String {
    let mut text = heading(document);
    match (&document.config, &document.decisions) {
        (Some(_), _) => text.push_str(&differences(document)),
        (None, Some(decisions)) => {
            let mut table = Table::new(&["AT", "SUBJECT", "ATTEMPT", "DECIDED", "BECAUSE"]);
            for decided in decisions {
                let (subject, attempt) = named(&decided.about);
                let (what, because) = (decided.what.to_string(), decided.because.clone());
                table.row([decided.at.to_string(), subject, attempt, what, because]);
            }
            if table.len() > 0 {
                text.push_str(&format!("\n{table}"));
            }
            if !document.as_recorded {
                text.push_str(&differences(document));
            }
        }
        (None, None) => {}
    }
    text
}

fn heading(document: &Document) -> String {
    let time = |at: Option<WallTime>| at.map(|at| at.to_string()).unwrap_or_default();
    let (from, until) = (time(document.from), time(document.until));
    let mut text = format!("recorded by latido {} from {from} until {until}\n", document.recorded_by);
    if document.in_the_middle > 0 {
        text.push_str("it begins in the middle of an agent's life, from what a restart would know\n");
    }
    text.push_str(if document.as_recorded {
        "the recorded settings decide what was recorded\n"
    } else {
        "the recorded settings do not decide what was recorded: another latido decided then, or a beginning is missing\n"
    });
    text
}

fn differences(document: &Document) -> String {
    let other = document.config.as_ref().map_or_else(|| "this latido".to_owned(), |file| file.display().to_string());
    if document.differences.is_empty() {
        return format!("{other} decides the same\n");
    }
    let mut text = String::new();
    let count = document.ended_alive;
    if count > 0 {
        let attempts = if count == 1 { "attempt that was" } else { "attempts that were" };
        text.push_str(&format!("{other} would have ended {count} {attempts} alive: what went on afterwards\n"));
    }
    for ((what, how), (count, alive)) in kinds(&document.differences) {
        let alive = if alive > 0 { format!(", and {alive} went on afterwards") } else { String::new() };
        text.push_str(&format!("{what}: {count} {how}{alive}\n"));
    }
    let mut table = Table::new(&["AT", "SUBJECT", "ATTEMPT", "DECISION", "THEN", "OTHERWISE", "BECAUSE", "AFTERWARDS"]);
    for Shown { difference, .. } in &document.differences {
        table.row(row(difference));
    }
    format!("{text}\n{table}")
}

/// How often each kind of decision is made otherwise, and how many of them were about what went on.
fn kinds(differences: &[Shown]) -> BTreeMap<(String, &'static str), (usize, usize)> {
    let mut kinds: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for Shown { difference, went_on } in differences {
        let how = match (&difference.then, &difference.other) {
            (None, _) => "more",
            (Some(_), None) => "fewer",
            (Some(_), Some(_)) if difference.is_sooner() => "sooner",
            (Some(_), Some(_)) => "later",
        };
        let (count, alive) = kinds.entry((difference.what.to_string(), how)).or_default();
        *count += 1;
        *alive += usize::from(*went_on && difference.is_sooner());
    }
    kinds
}

fn row(difference: &Difference) -> [String; 8] {
    let (subject, attempt) = named(&difference.about);
    let sides = [&difference.then, &difference.other];
    let first = sides.into_iter().flatten().min_by_key(|side| side.listened);
    let when = |side: &Option<Side>| side.as_ref().map_or_else(|| "-".to_owned(), |side| side.at.to_string());
    let because = difference.other.as_ref().or(difference.then.as_ref());
    [
        first.map(|side| side.at.to_string()).unwrap_or_default(),
        subject,
        attempt,
        difference.what.to_string(),
        when(&difference.then),
        when(&difference.other),
        because.map(|side| side.because.clone()).unwrap_or_default(),
        afterwards(difference.afterwards),
    ]
}

fn named(about: &About) -> (String, String) {
    let attempt = if about.attempt == 0 { "-".to_owned() } else { about.attempt.to_string() };
    (about.subject.clone(), attempt)
}

fn afterwards(afterwards: Afterwards) -> String {
    match afterwards {
        Afterwards::BeatAgain { after } => format!("beat {} later", Span(after)),
        Afterwards::MovedOn { after } => format!("moved on {} later", Span(after)),
        Afterwards::Ended { after, class: Class::Completed } => format!("completed {} later", Span(after)),
        Afterwards::Ended { after, class } => format!("ended {} later: {class}", Span(after)),
        Afterwards::Nothing => "-".to_owned(),
    }
}
