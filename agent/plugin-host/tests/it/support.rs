//! Guests as the tests load them, subjects, entries.

use std::ops::RangeInclusive;
use std::time::Duration;

use latido_plugin_host::{
    Budget, CallError, Command, Entries, FaultKind, Field, Kind, Output, PluginError, PluginSpec, Says, Sink,
    Situation, Subject, SubjectKind, Verdict,
};
use serde_json::json;

pub(crate) use crate::ground::{World, builtin, guest};

/// The sink that misbehaves as it is told.
pub(crate) fn misbehaving(place: &str, what: &str) -> PluginSpec {
    let mut spec = PluginSpec::new("bad", Kind::Sink, guest("misbehave"));
    spec.settings = json!({ "where": place, "what": what });
    // Only what never ends is ended by its time; on a crowded machine all else would be too.
    let limit = if what == "loop" { Duration::from_millis(200) } else { Duration::from_secs(60) };
    spec.limits.cpu = limit;
    spec.limits.wall = spec.limits.wall.max(limit);
    spec
}

/// When the entry of this number was written.
pub(crate) fn at(sequence: u64) -> u64 {
    1_700_000_000_000 + sequence
}

/// No entries yet.
pub(crate) fn none() -> Entries {
    Entries::new("agent-1")
}

/// A beat with progress, as entries go.
pub(crate) fn beat(sequence: u64) -> Entries {
    beats(sequence..=sequence)
}

/// Beats with these numbers.
pub(crate) fn beats(sequences: RangeInclusive<u64>) -> Entries {
    let mut entries = none();
    for sequence in sequences {
        add_beat(&mut entries, sequence);
    }
    entries
}

pub(crate) fn add_beat(entries: &mut Entries, sequence: u64) {
    let mut says = entries.add(sequence, at(sequence), "beat");
    about_attempt(&mut says).whole(Field::Beat, sequence);
    says.real(Field::ProgressFraction, 0.5).whole(Field::ProgressDone, sequence);
    says.whole(Field::ProgressTotal, 1000).text(Field::ProgressStep, "hashing");
    says.text(Field::State, "walking").whole(Field::Errors, 0);
}

pub(crate) fn add_transition(entries: &mut Entries, sequence: u64) {
    let mut says = entries.add(sequence, at(sequence), "transition");
    says.text(Field::Subject, "catalogue").text(Field::Kind, "job").whole(Field::Attempt, 2).whole(Field::Epoch, 7);
    says.text(Field::Previous, "alive").text(Field::Current, "stale").text(Field::Reason, "silent for 181 s");
}

pub(crate) fn about_attempt<'a, 'b>(says: &'a mut Says<'b>) -> &'a mut Says<'b> {
    says.text(Field::Subject, "catalogue").whole(Field::Attempt, 2).whole(Field::Epoch, 7)
}

/// The sequence up to which a sink says that entries are durable.
pub(crate) async fn write(sink: &mut Sink, entries: &Entries) -> Result<u64, CallError> {
    sink.write(entries).await.map(|said| said.durable)
}

pub(crate) fn subject(name: &str, verdict: Verdict) -> Subject {
    Subject {
        name: name.into(),
        kind: SubjectKind::Job,
        host: "here".into(),
        policy: "default".into(),
        verdict,
        since: 0,
        reason: "because".into(),
        last_beat: None,
        silence: None,
        progress: None,
        progress_changed: None,
        usage: None,
        attempt: 1,
        epoch: 1,
        errors: 0,
        attributes: Vec::new(),
    }
}

/// What a strategy is asked about.
pub(crate) fn situation() -> Situation {
    Situation {
        now: 1_700_000_000_000,
        subject: subject("catalogue", Verdict::Dead),
        command: Command {
            program: "/bin/true".into(),
            arguments: Vec::new(),
            directory: None,
            environment: Vec::new(),
        },
        attempts: Vec::new(),
        budget: Budget {
            attempts_left: None,
            turns_left: None,
            cost_left_usd: None,
            time_left: None,
            attributes: Vec::new(),
        },
        attributes: Vec::new(),
    }
}

/// A line of a running attempt.
pub(crate) fn output() -> Output {
    Output {
        subject: "catalogue".into(),
        attempt: 1,
        epoch: 1,
        offset: 0,
        lines: vec!["line".into()],
        attributes: Vec::new(),
    }
}

/// What a guest that tries things was answered, a line each.
pub(crate) async fn told(sink: &mut Sink) -> Vec<String> {
    match sink.write(&beat(1)).await {
        Err(CallError::Plugin { answer: PluginError::Other(text), .. }) => text.lines().map(str::to_owned).collect(),
        other => panic!("{other:?}"),
    }
}

/// The kind of the fault that a call ended with.
#[track_caller]
pub(crate) fn fault<T: std::fmt::Debug>(result: Result<T, CallError>) -> FaultKind {
    match result {
        Err(CallError::Fault(fault)) => fault.kind,
        other => panic!("expected a fault, got {other:?}"),
    }
}
