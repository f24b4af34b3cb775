//! One entry as a line.

use serde_json::{Map, Value, json};

use super::bindings::exports::latido::plugin::sink::Entry;
use super::bindings::latido::plugin::journal::{AlertState, Body, Severity};
use super::bindings::latido::plugin::types::{Attribute, Outcome, Progress, SubjectKind, Usage, Verdict};

/// Writes an entry as one JSON object without line feeds.
pub(crate) fn of(entry: Entry) -> String {
    let (kind, fields) = fields(entry.body);
    let mut line = Map::new();
    line.insert("sequence".into(), entry.sequence.into());
    line.insert("agent".into(), entry.agent.into());
    line.insert("at".into(), rfc3339(entry.at).into());
    line.insert("type".into(), kind.into());
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    if !entry.attributes.is_empty() {
        line.insert("attributes".into(), attributes(entry.attributes));
    }
    Value::Object(line).to_string()
}

fn fields(body: Body) -> (String, Value) {
    match body {
        Body::Beat(beat) => (
            "beat".into(),
            json!({
                "subject": beat.subject, "attempt": beat.attempt, "epoch": beat.epoch, "beat": beat.sequence,
                "progress": progress(beat.progress), "usage": usage(beat.usage), "state": beat.state,
                "errors": beat.errors,
            }),
        ),
        Body::Transition(change) => (
            "transition".into(),
            json!({
                "subject": change.subject, "kind": kind(change.kind), "attempt": change.attempt,
                "epoch": change.epoch, "previous": verdict(change.previous), "current": verdict(change.current),
                "reason": change.reason,
            }),
        ),
        Body::AttemptStarted(start) => (
            "attempt-started".into(),
            json!({
                "subject": start.subject, "attempt": start.attempt, "epoch": start.epoch, "reason": start.reason,
            }),
        ),
        Body::AttemptEnded(end) => (
            "attempt-ended".into(),
            json!({
                "subject": end.subject, "attempt": end.attempt, "epoch": end.epoch,
                "outcome": outcome(end.outcome, end.class, end.reason), "started": rfc3339(end.started),
                "progress": progress(end.progress), "usage": usage(end.usage),
            }),
        ),
        Body::Alert(alert) => (
            "alert".into(),
            json!({
                "rule": alert.rule, "fingerprint": alert.fingerprint, "subject": alert.subject,
                "severity": severity(alert.severity), "state": alert_state(alert.state), "summary": alert.summary,
                "started": rfc3339(alert.started), "attributes": attributes(alert.attributes),
            }),
        ),
        Body::Reap(reap) => (
            "lease-expired".into(),
            json!({
                "subject": reap.subject, "attempt": reap.attempt, "epoch": reap.epoch,
                "previous_holder": reap.previous_holder, "silence_s": seconds(reap.silence), "pickups": reap.pickups,
            }),
        ),
        Body::Other(other) => (
            other.kind,
            json!({
                "subject": other.subject, "attempt": other.attempt, "epoch": other.epoch, "detail": other.detail,
            }),
        ),
    }
}

fn outcome(outcome: Outcome, class: String, detail: String) -> Value {
    let (kind, code, signal) = match outcome {
        Outcome::Exited(status) => ("exited", Some(status), None),
        Outcome::Signaled(signal) => ("signaled", None, Some(signal)),
        Outcome::Lost(_) => ("lost", None, None),
        Outcome::Stopped(_) => ("stopped", None, None),
        Outcome::LaunchFailed(_) => ("launch-failed", None, None),
        Outcome::OutOfMemory => ("out-of-memory", None, None),
        Outcome::LimitReached(_) => ("limit-reached", None, None),
        Outcome::Other(_) => ("other", None, None),
    };
    json!({ "kind": kind, "code": code, "signal": signal, "class": class, "detail": detail })
}

fn progress(progress: Option<Progress>) -> Value {
    progress.map_or(Value::Null, |progress| {
        json!({
            "fraction": progress.fraction, "done": progress.done, "total": progress.total, "step": progress.step,
            "checkpoint": progress.checkpoint,
        })
    })
}

fn usage(usage: Option<Usage>) -> Value {
    usage.map_or(
        Value::Null,
        |usage| json!({ "turns": usage.turns, "tokens": usage.tokens, "cost_usd": usage.cost_usd }),
    )
}

fn attributes(attributes: Vec<Attribute>) -> Value {
    attributes.into_iter().map(|attribute| (attribute.key, Value::from(attribute.value))).collect::<Map<_, _>>().into()
}

fn kind(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::Job => "job",
        SubjectKind::Worker => "worker",
        SubjectKind::Check => "check",
        SubjectKind::Process => "process",
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
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
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

fn alert_state(state: AlertState) -> &'static str {
    match state {
        AlertState::Firing => "firing",
        AlertState::Resolved => "resolved",
    }
}

/// A duration in seconds: whole ones as whole numbers.
fn seconds(millis: u64) -> Value {
    if millis.is_multiple_of(1000) { (millis / 1000).into() } else { (millis as f64 / 1000.0).into() }
}

/// A moment in UTC, with milliseconds. The calendar is Howard Hinnant's `civil_from_days`.
fn rfc3339(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let shifted = days + 719_468; // days since 0000-03-01
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}
