//! The numbers that a subject has.

use super::bindings::exports::latido::plugin::rule::Subject;
use super::bindings::latido::plugin::types::Verdict;

/// Facts that every subject may have. Any other name is that of an attribute whose value is a number.
pub(crate) const FACTS: [&str; 13] = [
    "silence-s",
    "last-beat-s",
    "progress.fraction",
    "progress.done",
    "progress.total",
    "progress.left",
    "progress.unchanged-s",
    "usage.turns",
    "usage.tokens",
    "usage.cost-usd",
    "attempt",
    "errors",
    "verdict-s",
];

/// A number of a subject; nothing where it has none of this name. Times count in seconds until `now`.
pub(crate) fn number(subject: &Subject, fact: &str, now: u64) -> Option<f64> {
    let progress = subject.progress.as_ref();
    let usage = subject.usage.as_ref();
    let whole = |count: Option<u64>| count.map(|count| count as f64);
    let age = |moment: Option<u64>| moment.map(|moment| seconds(now.saturating_sub(moment)));
    match fact {
        "silence-s" => subject.silence.map(seconds),
        "last-beat-s" => age(subject.last_beat),
        "progress.fraction" => progress.and_then(|progress| progress.fraction),
        "progress.done" => whole(progress.and_then(|progress| progress.done)),
        "progress.total" => whole(progress.and_then(|progress| progress.total)),
        "progress.left" => {
            let progress = progress?;
            whole(Some(progress.total?.saturating_sub(progress.done?)))
        }
        "progress.unchanged-s" => age(subject.progress_changed),
        "usage.turns" => whole(usage.and_then(|usage| usage.turns)),
        "usage.tokens" => whole(usage.and_then(|usage| usage.tokens)),
        "usage.cost-usd" => usage.and_then(|usage| usage.cost_usd),
        "attempt" => Some(subject.attempt.into()),
        "errors" => Some(subject.errors as f64),
        "verdict-s" => age(Some(subject.since)),
        other => {
            let attribute = subject.attributes.iter().find(|attribute| attribute.key == other)?;
            attribute.value.parse().ok().filter(|number: &f64| number.is_finite())
        }
    }
}

/// Whether nothing is expected of it: it has ended, or is paused.
pub(crate) fn is_at_rest(subject: &Subject) -> bool {
    let is_paused = subject.attributes.iter().any(|attribute| attribute.key == "phase" && attribute.value == "paused");
    is_paused || matches!(subject.verdict, Verdict::Ended)
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}
