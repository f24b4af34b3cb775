//! Turns entries into rows: one statement for each kind, so that a row carries only the columns its kind has.

use super::bindings::exports::latido::plugin::sink::Entry;
use super::bindings::latido::plugin::journal::{AlertState, Body, Severity};
use super::bindings::latido::plugin::sql::Value;
use super::bindings::latido::plugin::types::{Attribute, Outcome, Progress, Usage, Verdict};
use super::integer;

const BEAT: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, attempt, epoch, \
    fraction, done, total, step, checkpoint, turns, tokens, cost_usd, beat, state, errors) \
    VALUES (?, ?, ?, 'beat', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const TRANSITION: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, attempt, \
    epoch, previous_verdict, verdict, reason) VALUES (?, ?, ?, 'transition', ?, ?, ?, ?, ?, ?, ?)";
const ATTEMPT_STARTED: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, \
    attempt, epoch, reason) VALUES (?, ?, ?, 'attempt-started', ?, ?, ?, ?, ?)";
const ATTEMPT_ENDED: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, attempt, \
    epoch, fraction, done, total, step, checkpoint, turns, tokens, cost_usd, outcome, outcome_code, outcome_detail, \
    class, reason, started_ms) \
    VALUES (?, ?, ?, 'attempt-ended', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const ALERT: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, rule, \
    fingerprint, severity, alert_state, reason, started_ms) VALUES (?, ?, ?, 'alert', ?, ?, ?, ?, ?, ?, ?, ?)";
const REAP: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, attempt, epoch, \
    previous_holder, silence_ms, pickups) VALUES (?, ?, ?, 'lease-expired', ?, ?, ?, ?, ?, ?, ?)";
const OTHER: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, attributes, subject, attempt, epoch, \
    reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// The parameters of the widest statement, that of an attempt's end.
const WIDEST: usize = 21;

type Rows = Vec<Vec<Value>>;

/// Sorts a batch by statement; statements without rows are left out.
pub(crate) fn by_statement(batch: Vec<Entry>) -> impl Iterator<Item = (&'static str, Rows)> {
    let (mut beats, mut transitions, mut started, mut ended) = (Rows::new(), Rows::new(), Rows::new(), Rows::new());
    let (mut alerts, mut reaps, mut others) = (Rows::new(), Rows::new(), Rows::new());
    for entry in batch {
        let Entry { sequence, agent, at, body, attributes } = entry;
        let mut row = Vec::with_capacity(WIDEST);
        row.extend([Value::Text(agent), integer(sequence), integer(at)]);
        let attributes = attributes_json(&attributes);
        match body {
            Body::Beat(beat) => {
                row.extend([attributes, Value::Text(beat.subject), integer(beat.attempt.into()), integer(beat.epoch)]);
                extent(&mut row, beat.progress, beat.usage);
                row.extend([integer(beat.sequence), text(beat.state), integer(beat.errors)]);
                beats.push(row);
            }
            Body::Transition(change) => {
                row.extend([attributes, Value::Text(change.subject), integer(change.attempt.into())]);
                row.extend([integer(change.epoch), verdict(change.previous), verdict(change.current)]);
                row.push(Value::Text(change.reason));
                transitions.push(row);
            }
            Body::AttemptStarted(start) => {
                row.extend([attributes, Value::Text(start.subject), integer(start.attempt.into())]);
                row.extend([integer(start.epoch), Value::Text(start.reason)]);
                started.push(row);
            }
            Body::AttemptEnded(end) => {
                row.extend([attributes, Value::Text(end.subject), integer(end.attempt.into()), integer(end.epoch)]);
                extent(&mut row, end.progress, end.usage);
                row.extend(outcome(end.outcome));
                row.extend([Value::Text(end.class), Value::Text(end.reason), integer(end.started)]);
                ended.push(row);
            }
            Body::Alert(alert) => {
                let own = attributes_json(&alert.attributes);
                row.extend([if matches!(own, Value::Null) { attributes } else { own }, Value::Text(alert.subject)]);
                row.extend([Value::Text(alert.rule), Value::Text(alert.fingerprint), severity(alert.severity)]);
                row.extend([alert_state(alert.state), Value::Text(alert.summary), integer(alert.started)]);
                alerts.push(row);
            }
            Body::Reap(reap) => {
                row.extend([attributes, Value::Text(reap.subject), integer(reap.attempt.into()), integer(reap.epoch)]);
                row.extend([text(reap.previous_holder), integer(reap.silence), integer(reap.pickups.into())]);
                reaps.push(row);
            }
            Body::Other(other) => {
                row.extend([Value::Text(other.kind), attributes, text(other.subject)]);
                row.push(other.attempt.map_or(Value::Null, |attempt| integer(attempt.into())));
                row.extend([other.epoch.map_or(Value::Null, integer), Value::Text(other.detail)]);
                others.push(row);
            }
        }
    }
    [
        (BEAT, beats),
        (TRANSITION, transitions),
        (ATTEMPT_STARTED, started),
        (ATTEMPT_ENDED, ended),
        (ALERT, alerts),
        (REAP, reaps),
        (OTHER, others),
    ]
    .into_iter()
    .filter(|(_, rows)| !rows.is_empty())
}

/// Adds the eight columns of progress and usage.
fn extent(row: &mut Vec<Value>, progress: Option<Progress>, usage: Option<Usage>) {
    match progress {
        Some(progress) => row.extend([
            progress.fraction.map_or(Value::Null, Value::Real),
            progress.done.map_or(Value::Null, integer),
            progress.total.map_or(Value::Null, integer),
            text(progress.step),
            text(progress.checkpoint),
        ]),
        None => row.extend([Value::Null, Value::Null, Value::Null, Value::Null, Value::Null]),
    }
    match usage {
        Some(usage) => row.extend([
            usage.turns.map_or(Value::Null, integer),
            usage.tokens.map_or(Value::Null, integer),
            usage.cost_usd.map_or(Value::Null, Value::Real),
        ]),
        None => row.extend([Value::Null, Value::Null, Value::Null]),
    }
}

/// The outcome's kind, its number and its words.
fn outcome(outcome: Outcome) -> [Value; 3] {
    let (kind, code, detail) = match outcome {
        Outcome::Exited(status) => ("exited", Some(status), None),
        Outcome::Signaled(signal) => ("signaled", Some(signal), None),
        Outcome::Lost(how) => ("lost", None, Some(how)),
        Outcome::Stopped(by) => ("stopped", None, Some(by)),
        Outcome::LaunchFailed(why) => ("launch-failed", None, Some(why)),
        Outcome::OutOfMemory => ("out-of-memory", None, None),
        Outcome::LimitReached(which) => ("limit-reached", None, Some(which)),
        Outcome::Other(what) => ("other", None, Some(what)),
    };
    [Value::Text(kind.into()), code.map_or(Value::Null, |code| Value::Integer(code.into())), text(detail)]
}

fn text(value: Option<String>) -> Value {
    value.map_or(Value::Null, Value::Text)
}

fn verdict(verdict: Verdict) -> Value {
    let name = match verdict {
        Verdict::Waiting => "waiting",
        Verdict::Missing => "missing",
        Verdict::Alive => "alive",
        Verdict::Late => "late",
        Verdict::Stale => "stale",
        Verdict::Hung => "hung",
        Verdict::Failing => "failing",
        Verdict::Orphaned => "orphaned",
        Verdict::Dead => "dead",
        Verdict::Unknown => "unknown",
        Verdict::Ended => "ended",
    };
    Value::Text(name.into())
}

fn severity(severity: Severity) -> Value {
    let name = match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    };
    Value::Text(name.into())
}

fn alert_state(state: AlertState) -> Value {
    let name = match state {
        AlertState::Firing => "firing",
        AlertState::Resolved => "resolved",
    };
    Value::Text(name.into())
}

/// The attributes as a JSON object, or NULL where there are none.
fn attributes_json(attributes: &[Attribute]) -> Value {
    if attributes.is_empty() {
        return Value::Null;
    }
    let object: serde_json::Map<_, _> =
        attributes.iter().map(|attribute| (attribute.key.clone(), attribute.value.clone().into())).collect();
    Value::Text(serde_json::Value::Object(object).to_string())
}
