//! Entries as 0.1 has them, a record each, from the columns of 0.2.

use super::super::v0_2::sink::latido::plugin::journal::{Batch, ValueKind};
use super::sink::latido::plugin::journal::{
    Alert, AlertState, AttemptEnded, AttemptStarted, Beat, Body, Entry, OtherEntry, Reap, Severity, Transition,
};
use super::sink::latido::plugin::types::{Attribute, Outcome, Progress, SubjectKind, Usage, Verdict};
use crate::entries::Field;

/// The entries of a batch. What has no field in 0.1 stands in the attributes.
pub(super) fn of(batch: &Batch) -> Vec<Entry> {
    let mut texts = batch.texts.split_terminator('\0');
    let mut numbers = batch.numbers.iter().copied();
    let mut places = batch.field.iter().copied();
    let entries = batch.sequences.iter().zip(&batch.times).zip(batch.kind_of.iter().zip(&batch.fields_of));
    let entry = |((sequence, at), (kind, count)): ((&u64, &u64), (&u16, &u16))| {
        let mut said = Vec::with_capacity(usize::from(*count));
        for place in places.by_ref().take(usize::from(*count)) {
            let Some(field) = batch.fields.get(usize::from(place)) else { continue };
            let value = match field.holds {
                ValueKind::Text => texts.next().map(Value::Text),
                ValueKind::Whole | ValueKind::Real | ValueKind::Flag | ValueKind::Time | ValueKind::Duration => {
                    numbers.next().map(Value::Number)
                }
            };
            said.extend(value.map(|value| (field.name.as_str(), value)));
        }
        let mut said = Said(said);
        let kind = batch.kinds.get(usize::from(*kind)).map_or("", String::as_str);
        let body = said.body(kind);
        Entry { sequence: *sequence, agent: batch.journal.clone(), at: *at, body, attributes: said.attributes() }
    };
    entries.map(entry).collect()
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    Number(f64),
}

/// What an entry says, of which each thing is taken once.
struct Said<'a>(Vec<(&'a str, Value<'a>)>);

impl<'a> Said<'a> {
    fn take(&mut self, field: Field) -> Option<Value<'a>> {
        let place = self.0.iter().position(|(name, _)| *name == field.name())?;
        Some(self.0.remove(place).1)
    }

    fn text(&mut self, field: Field) -> Option<String> {
        match self.take(field)? {
            Value::Text(text) => Some(text.to_owned()),
            Value::Number(number) => Some(number.to_string()),
        }
    }

    fn words(&mut self, field: Field) -> String {
        self.text(field).unwrap_or_default()
    }

    fn real(&mut self, field: Field) -> Option<f64> {
        match self.take(field)? {
            Value::Text(_) => None,
            Value::Number(number) => Some(number),
        }
    }

    fn whole(&mut self, field: Field) -> Option<u64> {
        self.real(field).map(|number| number as u64)
    }

    /// A number that is there, or 0.
    fn count(&mut self, field: Field) -> u64 {
        self.whole(field).unwrap_or(0)
    }

    fn small(&mut self, field: Field) -> u32 {
        u32::try_from(self.count(field)).unwrap_or(u32::MAX)
    }

    fn body(&mut self, kind: &str) -> Body {
        match kind {
            "beat" => Body::Beat(self.beat()),
            "transition" => Body::Transition(self.transition()),
            "attempt-started" => Body::AttemptStarted(AttemptStarted {
                subject: self.words(Field::Subject),
                attempt: self.small(Field::Attempt),
                epoch: self.count(Field::Epoch),
                reason: self.words(Field::Reason),
            }),
            "attempt-ended" => Body::AttemptEnded(self.attempt_ended()),
            "alert" => Body::Alert(self.alert()),
            "lease-expired" => Body::Reap(Reap {
                subject: self.words(Field::Subject),
                attempt: self.small(Field::Attempt),
                epoch: self.count(Field::Epoch),
                previous_holder: self.text(Field::PreviousHolder),
                silence: self.count(Field::Silence),
                pickups: self.small(Field::Pickups),
            }),
            _ => Body::Other(self.other(kind)),
        }
    }

    fn beat(&mut self) -> Beat {
        Beat {
            subject: self.words(Field::Subject),
            attempt: self.small(Field::Attempt),
            epoch: self.count(Field::Epoch),
            sequence: self.count(Field::Beat),
            progress: self.progress(),
            usage: self.usage(),
            state: self.text(Field::State),
            errors: self.count(Field::Errors),
        }
    }

    fn transition(&mut self) -> Transition {
        Transition {
            subject: self.words(Field::Subject),
            kind: subject_kind(&self.words(Field::Kind)),
            attempt: self.small(Field::Attempt),
            epoch: self.count(Field::Epoch),
            previous: verdict(&self.words(Field::Previous)),
            current: verdict(&self.words(Field::Current)),
            reason: self.words(Field::Reason),
        }
    }

    fn attempt_ended(&mut self) -> AttemptEnded {
        let class = self.words(Field::OutcomeClass);
        let reason = self.words(Field::OutcomeDetail);
        AttemptEnded {
            subject: self.words(Field::Subject),
            attempt: self.small(Field::Attempt),
            epoch: self.count(Field::Epoch),
            outcome: self.outcome(&class, &reason),
            class,
            reason,
            started: self.count(Field::Started),
            progress: self.progress(),
            usage: self.usage(),
        }
    }

    fn outcome(&mut self, class: &str, detail: &str) -> Outcome {
        let status = |number: Option<f64>, absent: i32| number.map_or(absent, |number| number as i32);
        let (kind, words) = (self.words(Field::OutcomeKind), detail.to_owned());
        let (code, signal) = (self.real(Field::OutcomeCode), self.real(Field::OutcomeSignal));
        match (kind.as_str(), class) {
            (_, "stopped") => Outcome::Stopped(words),
            ("exited", _) => Outcome::Exited(status(code, -1)),
            ("signaled", _) => Outcome::Signaled(status(signal, 0)),
            ("lost", _) => Outcome::Lost(words),
            ("launch-failed", _) => Outcome::LaunchFailed(words),
            ("out-of-memory", _) => Outcome::OutOfMemory,
            ("limit-reached", _) => Outcome::LimitReached(words),
            (other, _) => Outcome::Other(format!("{other}: {words}")),
        }
    }

    fn alert(&mut self) -> Alert {
        Alert {
            rule: self.words(Field::Rule),
            fingerprint: self.words(Field::Fingerprint),
            subject: self.words(Field::Subject),
            severity: match self.words(Field::Severity).as_str() {
                "info" => Severity::Info,
                "warning" => Severity::Warning,
                _ => Severity::Critical,
            },
            state: match self.words(Field::State).as_str() {
                "resolved" => AlertState::Resolved,
                _ => AlertState::Firing,
            },
            summary: self.words(Field::Summary),
            started: self.count(Field::Started),
            attributes: self.attributes(),
        }
    }

    /// What 0.1 has no case for: in words, and whole in the attributes.
    fn other(&mut self, kind: &str) -> OtherEntry {
        let words = |field: Field| {
            let found = self.0.iter().find(|(name, _)| *name == field.name());
            found.map(|(_, value)| value.to_text())
        };
        let what = words(Field::Phase).or(words(Field::What));
        let why = words(Field::Reason).or(words(Field::Detail));
        OtherEntry {
            kind: kind.to_owned(),
            detail: [what, why].into_iter().flatten().collect::<Vec<_>>().join(": "),
            subject: self.text(Field::Subject),
            attempt: self.whole(Field::Attempt).map(|attempt| u32::try_from(attempt).unwrap_or(u32::MAX)),
            epoch: self.whole(Field::Epoch),
        }
    }

    fn progress(&mut self) -> Option<Progress> {
        let progress = Progress {
            fraction: self.real(Field::ProgressFraction),
            done: self.whole(Field::ProgressDone),
            total: self.whole(Field::ProgressTotal),
            step: self.text(Field::ProgressStep),
            checkpoint: self.text(Field::ProgressCheckpoint),
        };
        let nothing = Progress { fraction: None, done: None, total: None, step: None, checkpoint: None };
        (progress != nothing).then_some(progress)
    }

    fn usage(&mut self) -> Option<Usage> {
        let usage = Usage {
            turns: self.whole(Field::UsageTurns),
            tokens: self.whole(Field::UsageTokens),
            cost_usd: self.real(Field::UsageCost),
        };
        (usage != Usage { turns: None, tokens: None, cost_usd: None }).then_some(usage)
    }

    /// What was not taken.
    fn attributes(&mut self) -> Vec<Attribute> {
        let attribute = |(name, value): (&str, Value<'_>)| Attribute { key: name.to_owned(), value: value.to_text() };
        self.0.drain(..).map(attribute).collect()
    }
}

impl Value<'_> {
    fn to_text(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Number(number) => number.to_string(),
        }
    }
}

fn subject_kind(word: &str) -> SubjectKind {
    match word {
        "job" => SubjectKind::Job,
        "worker" => SubjectKind::Worker,
        "check" => SubjectKind::Check,
        _ => SubjectKind::Process,
    }
}

fn verdict(word: &str) -> Verdict {
    match word {
        "waiting" => Verdict::Waiting,
        "missing" => Verdict::Missing,
        "alive" => Verdict::Alive,
        "late" => Verdict::Late,
        "stale" => Verdict::Stale,
        "hung" => Verdict::Hung,
        "failing" => Verdict::Failing,
        "orphaned" => Verdict::Orphaned,
        "dead" => Verdict::Dead,
        "ended" => Verdict::Ended,
        _ => Verdict::Unknown,
    }
}
