//! Subjects as rules and strategies are given them.

use latido_plugin_host as types;
use latido_protocol::WallTime;
use latido_protocol::status::SubjectStatus;

use super::entries;

/// A subject in the package's words.
pub fn to_guest(status: SubjectStatus) -> types::Subject {
    let attribute = |key: &str, value: String| types::Attribute { key: key.to_owned(), value };
    let mut attributes =
        vec![attribute("phase", status.phase.to_string()), attribute("pickups", status.pickups.to_string())];
    if let Some(outcome) = &status.outcome {
        attributes.push(attribute("class", outcome.class.to_string()));
        attributes.push(attribute("outcome", outcome.detail.clone()));
    }
    attributes.extend(status.state.clone().map(|state| attribute("state", state)));
    types::Subject {
        name: status.name.into(),
        kind: entries::subject_kind(status.kind),
        host: status.host,
        policy: status.policy,
        verdict: entries::verdict(status.verdict),
        since: status.since.as_millis(),
        reason: status.reason,
        last_beat: status.last_beat.map(WallTime::as_millis),
        silence: status.silence_s.map(entries::millis),
        progress: status.progress.map(entries::progress),
        progress_changed: status.progress_changed.map(WallTime::as_millis),
        usage: entries::usage(status.spent),
        attempt: status.attempt,
        epoch: status.epoch,
        errors: status.errors,
        attributes,
    }
}
