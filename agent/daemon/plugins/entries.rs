//! Journal entries as sinks are given them.

use latido_plugin_host::{self as guest, self as types};
use latido_protocol::files::Spent;
use latido_protocol::journal::{AlertState, AlertTold, Body, Entry, Severity};
use latido_protocol::status::{SubjectKind, Verdict};
use latido_protocol::{Outcome, OutcomeKind, Progress, Span};

/// An entry in the package's words.
pub(crate) fn to_guest(entry: Entry) -> guest::Entry {
    guest::Entry {
        sequence: entry.sequence,
        agent: entry.agent,
        at: entry.at.as_millis(),
        attributes: attributes(&entry.body),
        body: body(entry.body),
    }
}

/// What has no field of its own in the package.
fn attributes(body: &Body) -> Vec<guest::Attribute> {
    let Body::LeaseExpired { target: Some(target), .. } = body else { return Vec::new() };
    vec![guest::Attribute { key: "target".to_owned(), value: target.to_string() }]
}

fn body(body: Body) -> guest::Body {
    match body {
        Body::Beat { subject, attempt, epoch, beat, progress: made, state, errors, spent } => {
            guest::Body::Beat(guest::Beat {
                subject: subject.into(),
                attempt,
                epoch,
                sequence: beat,
                progress: made.map(progress),
                usage: usage(spent),
                state,
                errors,
            })
        }
        Body::Transition { subject, kind, attempt, epoch, previous, current, reason } => {
            guest::Body::Transition(guest::Transition {
                subject: subject.into(),
                kind: subject_kind(kind),
                attempt,
                epoch,
                previous: verdict(previous),
                current: verdict(current),
                reason,
            })
        }
        Body::AttemptStarted { subject, attempt, epoch, reason } => {
            guest::Body::AttemptStarted(guest::AttemptStarted { subject: subject.into(), attempt, epoch, reason })
        }
        Body::AttemptEnded { subject, attempt, epoch, outcome: how, started, progress: made, spent } => {
            guest::Body::AttemptEnded(guest::AttemptEnded {
                subject: subject.into(),
                attempt,
                epoch,
                outcome: outcome(&how),
                class: how.class.to_string(),
                reason: how.detail.clone(),
                started: started.as_millis(),
                progress: made.map(progress),
                usage: usage(spent),
            })
        }
        Body::LeaseExpired { subject, attempt, epoch, previous_holder, silence_s, pickups, target: _ } => {
            guest::Body::Reap(guest::Reap {
                subject: subject.into(),
                attempt,
                epoch,
                previous_holder,
                silence: millis(silence_s),
                pickups,
            })
        }
        Body::Alert(told) => guest::Body::Alert(alert(*told)),
        Body::Phase { subject, attempt, epoch, phase, reason } => {
            other("phase", Some((subject.into(), attempt, epoch)), format!("{phase}: {reason}"))
        }
        Body::Agent { what, detail } => other("agent", None, format!("{what}: {detail}")),
    }
}

/// What the package has no case for: its kind, the attempt that it is about, and words.
fn other(kind: &str, about: Option<(String, u32, u64)>, detail: String) -> guest::Body {
    let (subject, attempt, epoch) =
        about.map_or((None, None, None), |(subject, attempt, epoch)| (Some(subject), Some(attempt), Some(epoch)));
    guest::Body::Other(guest::OtherEntry { kind: kind.to_owned(), subject, attempt, epoch, detail })
}

/// What has no field of its own in the package stands in the attributes.
fn alert(told: AlertTold) -> guest::Alert {
    let AlertTold { rule, fingerprint, subject, severity, state, summary, started, .. } = told;
    let attributes = [
        ("telling", told.telling.to_string()),
        ("reason", told.reason),
        ("comings", told.comings.to_string()),
        ("subjects", told.subjects.to_string()),
        ("who", told.who.join(" ")),
    ];
    guest::Alert {
        rule,
        fingerprint,
        subject,
        severity: match severity {
            Severity::Info => guest::Severity::Info,
            Severity::Warning => guest::Severity::Warning,
            Severity::Critical => guest::Severity::Critical,
        },
        state: match state {
            AlertState::Firing => guest::AlertState::Firing,
            AlertState::Resolved => guest::AlertState::Resolved,
        },
        summary,
        started: started.as_millis(),
        attributes: attributes
            .into_iter()
            .map(|(key, value)| guest::Attribute { key: key.to_owned(), value })
            .collect(),
    }
}

pub(crate) fn millis(span: Span) -> u64 {
    u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)
}

/// What was used up, as far as the work told: a counter that it never told of is 0 in our records.
pub(crate) fn usage(spent: Spent) -> Option<types::Usage> {
    let told = |count: u64| (count > 0).then_some(count);
    let usage =
        types::Usage { turns: told(spent.turns), tokens: told(spent.tokens), cost_usd: told(spent.money).map(units) };
    (!spent.is_nothing()).then_some(usage)
}

/// Money in units of what it is counted in.
#[expect(clippy::cast_precision_loss, reason = "2^53 millionths are nine thousand million units")]
pub(crate) fn units(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

pub(crate) fn progress(progress: Progress) -> types::Progress {
    types::Progress {
        fraction: progress.fraction,
        done: progress.done,
        total: progress.total,
        step: progress.step,
        checkpoint: progress.checkpoint,
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> types::Outcome {
    use latido_protocol::Class;
    match (outcome.kind, outcome.class) {
        (_, Class::Stopped) => types::Outcome::Stopped(outcome.detail.clone()),
        (OutcomeKind::Exited, _) => types::Outcome::Exited(outcome.code.unwrap_or(-1)),
        (OutcomeKind::Signaled, _) => types::Outcome::Signaled(outcome.signal.unwrap_or(0)),
        (OutcomeKind::Lost, _) => types::Outcome::Lost(outcome.detail.clone()),
        (OutcomeKind::LaunchFailed, _) => types::Outcome::LaunchFailed(outcome.detail.clone()),
        (OutcomeKind::OutOfMemory, _) => types::Outcome::OutOfMemory,
        (OutcomeKind::LimitReached, _) => types::Outcome::LimitReached(outcome.detail.clone()),
    }
}

pub(crate) fn subject_kind(kind: SubjectKind) -> types::SubjectKind {
    match kind {
        SubjectKind::Job => types::SubjectKind::Job,
        SubjectKind::Worker => types::SubjectKind::Worker,
        SubjectKind::Check => types::SubjectKind::Check,
        SubjectKind::Process => types::SubjectKind::Process,
    }
}

pub(crate) fn verdict(verdict: Verdict) -> types::Verdict {
    match verdict {
        Verdict::Waiting => types::Verdict::Waiting,
        Verdict::Missing => types::Verdict::Missing,
        Verdict::Alive => types::Verdict::Alive,
        Verdict::Late => types::Verdict::Late,
        Verdict::Stale => types::Verdict::Stale,
        Verdict::Hung => types::Verdict::Hung,
        Verdict::Failing => types::Verdict::Failing,
        Verdict::Orphaned => types::Verdict::Orphaned,
        Verdict::Dead => types::Verdict::Dead,
        Verdict::Unknown => types::Verdict::Unknown,
        Verdict::Ended => types::Verdict::Ended,
    }
}
