//! Components from text, and a job that died.

use std::sync::Arc;

use latido_plugin_host::{Budget, Command, Situation, Subject, SubjectKind, Verdict};

pub(crate) use crate::ground::{World, builtin, guest};

/// A component from its text.
pub(crate) fn component(text: &str) -> Arc<[u8]> {
    wat::parse_str(format!("(component {text})")).unwrap().into()
}

/// A job that died once.
pub(crate) fn situation() -> Situation {
    Situation {
        now: 1,
        subject: Subject {
            name: "night".to_owned(),
            kind: SubjectKind::Job,
            host: "host".to_owned(),
            policy: "default".to_owned(),
            verdict: Verdict::Dead,
            since: 1,
            reason: "because".to_owned(),
            last_beat: None,
            silence: None,
            progress: None,
            progress_changed: None,
            usage: None,
            attempt: 1,
            epoch: 1,
            errors: 0,
            attributes: Vec::new(),
        },
        command: Command {
            program: "work".to_owned(),
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
