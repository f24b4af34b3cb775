//! Entries and rows: how what happened is written down.

use latido_policy::{BlackoutCause, BlackoutChange, Reason, SubjectView};
use latido_protocol::files::{End, Start, Status, Want, Wanted};
use latido_protocol::journal::Body;
use latido_protocol::{SubjectName, WallTime};
use latido_store::NewEntry;

use crate::fact::FoundJob;

/// An entry for the journal.
pub(crate) fn entry(at: WallTime, body: &Body) -> NewEntry {
    NewEntry {
        at_ms: at.as_millis(),
        kind: body.kind().to_owned(),
        subject: body.subject().map(str::to_owned),
        // Strings, numbers and options of our own: this cannot fail, and an empty object would show if it did.
        body: serde_json::to_string(body).unwrap_or_else(|_| "{}".to_owned()),
    }
}

pub(crate) fn attempt_started(start: &Start) -> Body {
    Body::AttemptStarted {
        subject: start.job.clone(),
        attempt: start.attempt,
        epoch: start.epoch,
        reason: start.because.clone(),
    }
}

pub(crate) fn attempt_ended(end: &End) -> Body {
    Body::AttemptEnded {
        subject: end.job.clone(),
        attempt: end.attempt,
        epoch: end.epoch,
        outcome: end.outcome.clone(),
        started: end.started_at.unwrap_or(end.ended_at),
        progress: end.progress.clone(),
        spent: end.spent,
    }
}

pub(crate) fn beat(status: &Status) -> Body {
    Body::Beat {
        subject: status.job.clone(),
        attempt: status.attempt,
        epoch: status.epoch,
        beat: status.sequence,
        progress: status.progress.clone(),
        state: status.state.clone(),
        errors: status.errors,
        spent: status.spent,
    }
}

/// Who held an attempt, in words for the entry `lease-expired`.
pub(crate) fn holder(start: &Start) -> Option<String> {
    start.supervisor.as_ref().map(|supervisor| format!("supervisor {} on {}", supervisor.pid, start.host))
}

/// What the store keeps of a subject beyond its columns.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(crate) struct RowState {
    pub(crate) journaled_start: u64,
    pub(crate) journaled_end: u64,
    /// what its strategy said of an ending that it will never work
    pub(crate) given_up: Option<GivenUp>,
    /// its endings in a row without a new checkpoint, of so many
    pub(crate) fruitless: u32,
    pub(crate) endings: u32,
    /// its place among all that ever waited to start, while it waits
    pub(crate) line: Option<u64>,
}

/// An answer of a strategy that outlives the agent which asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct GivenUp {
    /// of the attempt that ended
    epoch: u64,
    /// when a person said what was wanted then: who wants a resume later has not been answered
    wanted_at: WallTime,
}

impl GivenUp {
    /// What to remember, where its strategy has given it up.
    pub(crate) fn of(view: &SubjectView, wanted: &Wanted) -> Option<Self> {
        let is_given_up = view.phase_because == Reason::StrategyGaveUp;
        is_given_up.then_some(Self { epoch: view.attempt.epoch.0, wanted_at: wanted.at })
    }

    /// Whether it still holds for a job that was found.
    pub(crate) fn holds(self, found: &FoundJob) -> bool {
        let is_latest = found.attempt.as_ref().is_some_and(|attempt| attempt.start.epoch == self.epoch);
        is_latest && (found.wanted.want != Want::Resume || found.wanted.at == self.wanted_at)
    }
}

/// The agent about itself.
pub(crate) fn noted(what: &str, detail: String) -> Body {
    Body::Agent { what: what.to_owned(), detail }
}

/// A subject is gone, with its folder or from the config: whatever was said of it before, it is watched no more.
pub(crate) fn removed(kind: &str, name: &SubjectName) -> Body {
    noted("removed", format!("{kind} {name} was removed"))
}

/// How the journal tells that the agent doubts itself, or does no more.
pub(crate) fn blackout(change: BlackoutChange) -> (&'static str, String) {
    match change {
        BlackoutChange::Began(BlackoutCause::MassStaleness { stale, watched }) => (
            "blackout",
            format!(
                "{stale} of {watched} fell silent together, so the agent doubts itself first: nobody is ended for it, and \
                 silence counts from here"
            ),
        ),
        BlackoutChange::Began(BlackoutCause::StoreFailed) => (
            "blackout",
            "the store does not take what is recorded: nobody is ended for silence until it does".to_owned(),
        ),
        BlackoutChange::Ended => ("blackout-ended", "the agent trusts what it hears again".to_owned()),
    }
}

/// Text of a name, for rows.
pub(crate) fn text(name: &SubjectName) -> String {
    name.as_str().to_owned()
}
