//! What plugins are called with, as cases have it.

use latido_plugin_host::{
    Attribute, Budget, Command, Entries, EnvironmentValue, Outcome, PastAttempt, Progress, Said, Situation, Subject,
    SubjectKind, Usage, Verdict,
};
use serde_json::{Map, Value, json};

use crate::case::{KINDS, VERDICTS, field_name};

/// `write`
pub(crate) fn batch(entries: &Entries) -> Value {
    let each = entries.each().into_iter().map(|entry| {
        let mut table = Map::new();
        table.insert("sequence".to_owned(), entry.sequence.into());
        table.insert("at".to_owned(), entry.at_ms.into());
        table.insert("kind".to_owned(), entry.kind.into());
        for (field, said) in entry.says {
            let value = match said {
                Said::Text(text) => text.into(),
                Said::Number(number) => self::number(number),
            };
            table.insert(field_name(field).to_owned(), value);
        }
        Value::Object(table)
    });
    json!({ "journal": entries.journal(), "entries": each.collect::<Vec<_>>() })
}

/// A number that is whole as that.
#[expect(clippy::cast_possible_truncation, reason = "it is whole, and far below 2^53")]
fn number(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
    if is_whole { (number as i64).into() } else { number.into() }
}

/// `evaluate`
pub(crate) fn evaluation(now: u64, subjects: &[Subject]) -> Value {
    json!({ "now": now, "subjects": subjects.iter().map(subject).collect::<Vec<_>>() })
}

fn subject(subject: &Subject) -> Value {
    json!({
        "name": subject.name, "kind": kind(subject.kind), "host": subject.host, "policy": subject.policy,
        "verdict": verdict(subject.verdict), "since": subject.since, "reason": subject.reason,
        "last_beat": subject.last_beat, "silence_s": subject.silence.map(seconds),
        "progress": subject.progress.as_ref().map(progress), "progress_changed": subject.progress_changed,
        "usage": subject.usage.as_ref().map(usage), "attempt": subject.attempt, "epoch": subject.epoch,
        "errors": subject.errors, "attributes": attributes(&subject.attributes),
    })
}

fn kind(kind: SubjectKind) -> &'static str {
    KINDS.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}

fn verdict(verdict: Verdict) -> &'static str {
    VERDICTS.iter().find(|(_, known)| *known == verdict).map_or("other", |(name, _)| name)
}

#[expect(clippy::cast_precision_loss, reason = "no length of time of the agent reaches 2^53 ms")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn progress(progress: &Progress) -> Value {
    json!({
        "fraction": progress.fraction, "done": progress.done, "total": progress.total, "step": progress.step,
        "checkpoint": progress.checkpoint,
    })
}

fn usage(usage: &Usage) -> Value {
    json!({ "turns": usage.turns, "tokens": usage.tokens, "cost_usd": usage.cost_usd })
}

fn attributes(attributes: &[Attribute]) -> Value {
    Value::Object(attributes.iter().map(|one| (one.key.clone(), one.value.clone().into())).collect())
}

/// `decide`
pub(crate) fn situation(situation: &Situation) -> Value {
    json!({
        "name": situation.subject.name, "now": situation.now, "subject": subject(&situation.subject),
        "command": command(&situation.command),
        "attempts": situation.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "budget": budget(&situation.budget), "attributes": attributes(&situation.attributes),
    })
}

fn command(command: &Command) -> Value {
    let variable = |value: &EnvironmentValue| match value {
        // The agent gives none; no value of a variable is ever taken down.
        EnvironmentValue::Plain(_) | EnvironmentValue::Withheld => json!({ "withheld": true }),
        EnvironmentValue::Secret(name) => json!({ "secret": name }),
    };
    let environment: Map<String, Value> =
        command.environment.iter().map(|one| (one.name.clone(), variable(&one.value))).collect();
    json!({
        "program": command.program, "arguments": command.arguments, "directory": command.directory,
        "environment": environment,
    })
}

fn attempt(attempt: &PastAttempt) -> Value {
    json!({
        "number": attempt.number, "started": attempt.started, "ended": attempt.ended,
        "outcome": attempt.outcome.as_ref().map(outcome), "class": attempt.class,
        "progress": attempt.progress.as_ref().map(progress), "usage": attempt.usage.as_ref().map(usage),
        "notes": attributes(&attempt.notes), "attributes": attributes(&attempt.attributes),
    })
}

fn outcome(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Exited(status) => json!({ "exited": status }),
        Outcome::Signaled(signal) => json!({ "signaled": signal }),
        Outcome::Lost(how) => json!({ "lost": how }),
        Outcome::Stopped(whose) => json!({ "stopped": whose }),
        Outcome::LaunchFailed(why) => json!({ "launch-failed": why }),
        Outcome::OutOfMemory => json!("out-of-memory"),
        Outcome::LimitReached(which) => json!({ "limit-reached": which }),
        Outcome::Other(words) => json!({ "other": words }),
    }
}

fn budget(budget: &Budget) -> Value {
    json!({
        "attempts_left": budget.attempts_left, "turns_left": budget.turns_left,
        "cost_left_usd": budget.cost_left_usd, "time_left_s": budget.time_left.map(seconds),
        "attributes": attributes(&budget.attributes),
    })
}
