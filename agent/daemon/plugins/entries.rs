//! Journal entries as sinks are given them.

use latido_plugin_host::{self as types, Entries, Field, Says};
use latido_protocol::files::Spent;
use latido_protocol::journal::{AlertState, AlertTold, Body, Entry, Severity};
use latido_protocol::status::{SubjectKind, Verdict};
use latido_protocol::{Outcome, OutcomeKind, Progress, Span};

/// Adds an entry to a batch. Its fields come in the order of `latido events --json`.
pub fn add(batch: &mut Entries, entry: &Entry) {
    let mut says = batch.add(entry.sequence, entry.at.as_millis(), entry.body.kind());
    match &entry.body {
        Body::Beat { subject, attempt, epoch, beat, progress, state, errors, spent } => {
            attempt_of(&mut says, subject.as_str(), *attempt, *epoch).whole(Field::Beat, *beat);
            say_progress(&mut says, progress.as_ref());
            say_usage(&mut says, *spent);
            say_text(&mut says, Field::State, state.as_deref());
            says.whole(Field::Errors, *errors);
        }
        Body::Transition { subject, kind, attempt, epoch, previous, current, reason } => {
            says.text(Field::Subject, subject.as_str()).text(Field::Kind, kind.as_str());
            says.whole(Field::Attempt, (*attempt).into()).whole(Field::Epoch, *epoch);
            says.text(Field::Previous, previous.as_str()).text(Field::Current, current.as_str());
            says.text(Field::Reason, reason);
        }
        Body::Phase { subject, attempt, epoch, phase, reason } => {
            attempt_of(&mut says, subject.as_str(), *attempt, *epoch);
            says.text(Field::Phase, &phase.to_string()).text(Field::Reason, reason);
        }
        Body::AttemptStarted { subject, attempt, epoch, reason } => {
            attempt_of(&mut says, subject.as_str(), *attempt, *epoch).text(Field::Reason, reason);
        }
        Body::AttemptEnded { subject, attempt, epoch, outcome, started, progress, spent } => {
            attempt_of(&mut says, subject.as_str(), *attempt, *epoch);
            say_outcome(&mut says, outcome);
            says.whole(Field::Started, started.as_millis());
            say_progress(&mut says, progress.as_ref());
            say_usage(&mut says, *spent);
        }
        Body::LeaseExpired { subject, attempt, epoch, previous_holder, target, silence_s, pickups } => {
            attempt_of(&mut says, subject.as_str(), *attempt, *epoch);
            say_text(&mut says, Field::PreviousHolder, previous_holder.as_deref());
            say_text(&mut says, Field::Target, target.as_ref().map(ToString::to_string).as_deref());
            says.whole(Field::Silence, millis(*silence_s)).whole(Field::Pickups, (*pickups).into());
        }
        Body::Alert(told) => say_alert(&mut says, told),
        Body::Agent { what, detail } => drop(says.text(Field::What, what).text(Field::Detail, detail)),
    }
}

/// Says what entries about an attempt begin with.
fn attempt_of<'a, 'b>(says: &'a mut Says<'b>, subject: &str, attempt: u32, epoch: u64) -> &'a mut Says<'b> {
    says.text(Field::Subject, subject).whole(Field::Attempt, attempt.into()).whole(Field::Epoch, epoch)
}

fn say_text(says: &mut Says<'_>, field: Field, value: Option<&str>) {
    if let Some(value) = value {
        says.text(field, value);
    }
}

fn say_progress(says: &mut Says<'_>, progress: Option<&Progress>) {
    let Some(Progress { fraction, done, total, step, checkpoint }) = progress else { return };
    if let Some(fraction) = fraction {
        says.real(Field::ProgressFraction, *fraction);
    }
    for (field, count) in [(Field::ProgressDone, done), (Field::ProgressTotal, total)] {
        if let Some(count) = count {
            says.whole(field, *count);
        }
    }
    say_text(says, Field::ProgressStep, step.as_deref());
    say_text(says, Field::ProgressCheckpoint, checkpoint.as_deref());
}

fn say_usage(says: &mut Says<'_>, spent: Spent) {
    let Some(types::Usage { turns, tokens, cost_usd }) = usage(spent) else { return };
    for (field, count) in [(Field::UsageTurns, turns), (Field::UsageTokens, tokens)] {
        if let Some(count) = count {
            says.whole(field, count);
        }
    }
    if let Some(cost) = cost_usd {
        says.real(Field::UsageCost, cost);
    }
}

fn say_outcome(says: &mut Says<'_>, outcome: &Outcome) {
    says.text(Field::OutcomeKind, outcome.kind.as_str());
    if let Some(code) = outcome.code {
        says.real(Field::OutcomeCode, code.into());
    }
    if let Some(signal) = outcome.signal {
        says.real(Field::OutcomeSignal, signal.into());
    }
    says.text(Field::OutcomeClass, &outcome.class.to_string()).text(Field::OutcomeDetail, &outcome.detail);
}

fn say_alert(says: &mut Says<'_>, told: &AlertTold) {
    let severity = match told.severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    };
    let state = match told.state {
        AlertState::Firing => "firing",
        AlertState::Resolved => "resolved",
    };
    says.text(Field::Rule, &told.rule).text(Field::Fingerprint, &told.fingerprint);
    says.text(Field::Subject, &told.subject).text(Field::Severity, severity).text(Field::State, state);
    says.text(Field::Summary, &told.summary).whole(Field::Started, told.started.as_millis());
    says.text(Field::Telling, &told.telling.to_string()).text(Field::Reason, &told.reason);
    says.whole(Field::Comings, told.comings.into()).whole(Field::Subjects, told.subjects.into());
    if !told.who.is_empty() {
        says.text(Field::Who, &told.who.join(" "));
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
