//! A rule that finds subjects that are missing, stale, hung, failing, orphaned, dead, unknown, held or stuck.

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "alert-rule" });
    use super::Liveness;
    export!(Liveness with_types_in self);
}

use std::sync::OnceLock;

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Finding, Guest as Rule, PluginError, Severity, Subject};
use bindings::latido::plugin::types::Verdict;
use serde_json::Value;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

/// What is found, and how bad it is unless the settings say otherwise. The order is that of the table in the README.
const CONDITIONS: [(&str, Option<Severity>); 10] = [
    ("missing", Some(Severity::Warning)),
    ("stale", Some(Severity::Warning)),
    ("hung", Some(Severity::Warning)),
    ("failing", Some(Severity::Warning)),
    ("orphaned", Some(Severity::Warning)),
    ("dead", Some(Severity::Warning)),
    ("unknown", Some(Severity::Warning)),
    ("held", Some(Severity::Critical)),
    ("stuck", Some(Severity::Critical)),
    ("late", None),
];

type Severities = [(&'static str, Option<Severity>); CONDITIONS.len()];

static SEVERITIES: OnceLock<Severities> = OnceLock::new();

struct Liveness;

impl Lifecycle for Liveness {
    fn describe() -> Description {
        Description {
            name: "liveness".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Finds subjects that are missing, stale, hung, failing, orphaned, dead, unknown, held or stuck"
                .into(),
            settings_schema: schema(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let severities = read_settings(&settings).map_err(PluginError::InvalidConfig)?;
        SEVERITIES.set(severities).map_err(|_| PluginError::Other("configured twice".into()))
    }
}

impl Rule for Liveness {
    fn evaluate(_now: u64, subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let severities = SEVERITIES.get().unwrap_or(&CONDITIONS);
        Ok(subjects.iter().filter_map(|subject| judge(subject, severities)).collect())
    }
}

/// The finding about one subject, if there is any. A subject has one condition at a time.
fn judge(subject: &Subject, severities: &Severities) -> Option<Finding> {
    let condition = condition(subject)?;
    let severity = severities.iter().find(|(name, _)| *name == condition).and_then(|(_, severity)| *severity)?;
    Some(Finding {
        key: condition.into(),
        subject: subject.name.clone(),
        severity,
        summary: format!("{} is {condition}: {}", subject.name, subject.reason),
        attributes: Vec::new(),
    })
}

/// What is wrong with a subject. A job that was given up or waits for a person matters more than its verdict.
fn condition(subject: &Subject) -> Option<&'static str> {
    match subject.attributes.iter().find(|attribute| attribute.key == "phase").map(|phase| phase.value.as_str()) {
        Some("stuck") => return Some("stuck"),
        Some("held") => return Some("held"),
        Some("paused") => return None,
        Some(_) | None => {}
    }
    match subject.verdict {
        Verdict::Missing => Some("missing"),
        Verdict::Stale => Some("stale"),
        Verdict::Hung => Some("hung"),
        Verdict::Failing => Some("failing"),
        Verdict::Orphaned => Some("orphaned"),
        Verdict::Dead => Some("dead"),
        Verdict::Unknown => Some("unknown"),
        Verdict::Late => Some("late"),
        Verdict::Waiting | Verdict::Alive | Verdict::Ended => None,
    }
}

/// Reads `{"severity": {"stale": "critical", "unknown": "off"}}` over the defaults.
fn read_settings(settings: &str) -> Result<Severities, String> {
    let settings: serde_json::Map<String, Value> = serde_json::from_str(settings).map_err(|error| error.to_string())?;
    let mut severities = CONDITIONS;
    for (key, value) in &settings {
        let Some(chosen) = value.as_object().filter(|_| key == "severity") else {
            return Err(format!("unknown setting `{key}`; known: `severity`, a table"));
        };
        for (condition, severity) in chosen {
            let Some(slot) = severities.iter_mut().find(|(name, _)| name == condition) else {
                let known: Vec<&str> = CONDITIONS.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown condition `{condition}` in `severity`; known: {}", known.join(", ")));
            };
            slot.1 = match severity.as_str() {
                Some("info") => Some(Severity::Info),
                Some("warning") => Some(Severity::Warning),
                Some("critical") => Some(Severity::Critical),
                Some("off") => None,
                Some(_) | None => {
                    return Err(format!("`severity.{condition}` is {severity}; known: info, warning, critical, off"));
                }
            };
        }
    }
    Ok(severities)
}

/// The schema of the settings, made from the conditions.
fn schema() -> String {
    let level = serde_json::json!({ "enum": ["info", "warning", "critical", "off"] });
    let conditions: serde_json::Map<String, Value> =
        CONDITIONS.iter().map(|(name, _)| ((*name).to_owned(), level.clone())).collect();
    serde_json::json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "severity": { "type": "object", "additionalProperties": false, "properties": conditions }
        }
    })
    .to_string()
}
