//! What plugins answer, as JSON: what cases are compared with and golden files hold.

use latido_plugin_host::{
    Acknowledgement, Attribute, CallError, Command, Decision, EnvironmentValue, Finding, Observation, PluginError,
    Progress, QuietKind, Severity, Usage,
};
use serde_json::{Map, Value, json};

/// What came of a call: the answer itself, or `{"error": {…}}`, or `{"fault": {…}}`.
pub(crate) fn outcome(answer: &Result<Value, CallError>) -> Value {
    match answer {
        Ok(answer) => answer.clone(),
        Err(CallError::Plugin { answer, .. }) => json!({ "error": error(answer) }),
        Err(CallError::Fault(fault)) => {
            json!({ "fault": { "class": fault.kind.class(), "in": fault.function, "what": fault.to_string() } })
        }
    }
}

/// A plugin's own error: its name with what it holds.
pub(crate) fn error(answer: &PluginError) -> Value {
    match answer {
        PluginError::InvalidConfig(why) => json!({ "invalid-config": why }),
        PluginError::RetryAfter(ms) => json!({ "retry-after": ms }),
        PluginError::Retry(why) => json!({ "retry": why }),
        PluginError::Permanent(why) => json!({ "permanent": why }),
        PluginError::Denied(what) => json!({ "denied": what }),
        PluginError::Other(why) => json!({ "other": why }),
    }
}

pub(crate) fn acknowledgement(said: &Acknowledgement) -> Value {
    let refused: Vec<Value> =
        said.refused.iter().map(|refusal| json!({ "sequence": refusal.sequence, "why": refusal.why })).collect();
    json!({ "durable": said.durable, "refused": refused })
}

pub(crate) fn findings(found: &[Finding]) -> Value {
    let finding = |finding: &Finding| {
        let severity = match finding.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        };
        json!({
            "key": finding.key, "subject": finding.subject, "severity": severity, "summary": finding.summary,
            "attributes": attributes(&finding.attributes),
        })
    };
    json!({ "findings": found.iter().map(finding).collect::<Vec<_>>() })
}

pub(crate) fn decision(decision: &Decision) -> Value {
    match decision {
        Decision::Launch(command) => json!({ "launch": self::command(command) }),
        Decision::Wait(pause) => json!({ "wait": { "length": pause.length, "why": pause.why } }),
        Decision::Hold(why) => json!({ "hold": why }),
        Decision::GiveUp(why) => json!({ "give-up": why }),
        Decision::Other(other) => {
            json!({ "other": { "name": other.name, "why": other.why, "attributes": attributes(&other.attributes) } })
        }
    }
}

fn command(command: &Command) -> Value {
    let variable = |value: &EnvironmentValue| match value {
        EnvironmentValue::Plain(text) => json!(text),
        EnvironmentValue::Withheld => json!({ "withheld": true }),
        EnvironmentValue::Secret(name) => json!({ "secret": name }),
    };
    let environment: Map<String, Value> =
        command.environment.iter().map(|one| (one.name.clone(), variable(&one.value))).collect();
    json!({
        "program": command.program, "arguments": command.arguments, "directory": command.directory,
        "environment": environment,
    })
}

pub(crate) fn observation(observation: Option<&Observation>) -> Value {
    let Some(observed) = observation else { return json!({ "none": true }) };
    let quiet = match observed.quiet {
        QuietKind::None => "none",
        QuietKind::External => "external",
        QuietKind::Human => "human",
        QuietKind::Other => "other",
    };
    json!({
        "progress": observed.progress.as_ref().map(progress), "usage": observed.usage.as_ref().map(usage),
        "notes": attributes(&observed.notes), "quiet": quiet, "quiet_until": observed.quiet_until,
        "finished": observed.finished, "attributes": attributes(&observed.attributes),
    })
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
    let pairs = attributes.iter().map(|attribute| (attribute.key.clone(), attribute.value.clone().into()));
    Value::Object(pairs.collect())
}
