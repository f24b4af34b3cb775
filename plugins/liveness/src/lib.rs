//! A rule that finds subjects that need somebody: by their verdict, by where they are in latido's hands, by what they
//! say themselves, and by their errors.

mod errors;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "alert-rule" });
    use super::Liveness;
    export!(Liveness with_types_in self);
}

use std::sync::{Mutex, OnceLock, PoisonError};

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Finding, Guest as Rule, PluginError, Severity, Subject};
use bindings::latido::plugin::types::Verdict;
use serde_json::Value;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

/// What is found, and how bad it is unless the settings say otherwise. The order is that of the table in the README.
const CONDITIONS: [(&str, Option<Severity>); 13] = [
    ("missing", Some(Severity::Warning)),
    ("stale", Some(Severity::Warning)),
    ("hung", Some(Severity::Warning)),
    ("failing", Some(Severity::Warning)),
    ("orphaned", Some(Severity::Warning)),
    ("dead", Some(Severity::Warning)),
    ("unknown", Some(Severity::Warning)),
    ("held", Some(Severity::Critical)),
    ("stuck", Some(Severity::Critical)),
    ("failed", Some(Severity::Warning)),
    ("needs-person", Some(Severity::Warning)),
    ("errors", Some(Severity::Warning)),
    ("late", None),
];

type Severities = [(&'static str, Option<Severity>); CONDITIONS.len()];

/// The word by which a job says of itself that it waits for a person.
const NEEDS_PERSON: &str = "needs-person";

/// What the settings decide.
#[derive(Clone, Copy)]
struct Settings {
    severities: Severities,
    errors: errors::Limits,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
static ERRORS: Mutex<errors::Counts> = Mutex::new(errors::Counts::new());

struct Liveness;

impl Lifecycle for Liveness {
    fn describe() -> Description {
        Description {
            name: "liveness".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Finds subjects that need somebody: silent, still, dead, given up, waiting, counting errors"
                .into(),
            settings_schema: schema(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings = read_settings(&settings).map_err(PluginError::InvalidConfig)?;
        SETTINGS.set(settings).map_err(|_| PluginError::Other("configured twice".into()))
    }
}

impl Rule for Liveness {
    fn evaluate(now: u64, subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let default = Settings { severities: CONDITIONS, errors: errors::Limits::DEFAULT };
        let settings = SETTINGS.get().copied().unwrap_or(default);
        let mut counts = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(subjects.iter().flat_map(|subject| judge(subject, now, &settings, &mut counts)).collect())
    }
}

/// The findings about one subject, one for each cause.
fn judge(subject: &Subject, now: u64, settings: &Settings, counts: &mut errors::Counts) -> Vec<Finding> {
    let says = |key: &str| {
        let found = subject.attributes.iter().find(|attribute| attribute.key == key);
        found.map(|attribute| attribute.value.as_str())
    };
    if says("phase") == Some("paused") {
        return Vec::new();
    }
    let state =
        condition(subject.verdict, says("phase"), says("class")).map(|condition| (condition, subject.reason.clone()));
    let is_over = matches!(subject.verdict, Verdict::Ended | Verdict::Dead);
    let waits =
        (!is_over && says("state") == Some(NEEDS_PERSON)).then(|| (NEEDS_PERSON, "it says so itself".to_owned()));
    let grown = counts.growth(&subject.name, subject.errors, now, settings.errors);
    let errors = grown.map(|grown| ("errors", format!("{grown} more within {} s", settings.errors.for_s)));
    let found = [state, waits, errors].into_iter().flatten();
    found.filter_map(|(condition, reason)| finding(subject, condition, &reason, &settings.severities)).collect()
}

fn finding(subject: &Subject, condition: &str, reason: &str, severities: &Severities) -> Option<Finding> {
    let severity = severities.iter().find(|(name, _)| *name == condition).and_then(|(_, severity)| *severity)?;
    let summary = match condition {
        NEEDS_PERSON => format!("{} waits for a person: {reason}", subject.name),
        "errors" => format!("the errors of {} grow: {reason}", subject.name),
        "failed" => format!("{} has failed and is not resumed: {reason}", subject.name),
        condition => format!("{} is {condition}: {reason}", subject.name),
    };
    Some(Finding { key: condition.into(), subject: subject.name.clone(), severity, summary, attributes: Vec::new() })
}

/// What is wrong with a subject. A job that was given up or waits for a person matters more than its verdict.
fn condition(verdict: Verdict, phase: Option<&str>, class: Option<&str>) -> Option<&'static str> {
    match phase {
        Some("stuck") => return Some("stuck"),
        Some("held") => return Some("held"),
        Some(_) | None => {}
    }
    match verdict {
        Verdict::Missing => Some("missing"),
        Verdict::Stale => Some("stale"),
        Verdict::Hung => Some("hung"),
        Verdict::Failing => Some("failing"),
        Verdict::Orphaned => Some("orphaned"),
        Verdict::Dead => Some("dead"),
        Verdict::Unknown => Some("unknown"),
        Verdict::Late => Some("late"),
        Verdict::Ended if phase == Some("ended") && matches!(class, Some("failed" | "lost" | "limit")) => {
            Some("failed")
        }
        Verdict::Waiting | Verdict::Alive | Verdict::Ended | Verdict::Other => None,
    }
}

/// Reads `{"severity": {"stale": "critical", "unknown": "off"}, "errors_min": 10, "errors_for_s": 600}` over the defaults.
fn read_settings(settings: &str) -> Result<Settings, String> {
    let settings: serde_json::Map<String, Value> = serde_json::from_str(settings).map_err(|error| error.to_string())?;
    let mut severities = CONDITIONS;
    let mut errors = errors::Limits::DEFAULT;
    for (key, value) in &settings {
        if let Some(limit) = errors.limit_mut(key) {
            let number = value.as_u64().filter(|number| *number > 0);
            *limit = number.ok_or_else(|| format!("`{key}` is {value}; it is a number of at least 1"))?;
            continue;
        }
        let Some(chosen) = value.as_object().filter(|_| key == "severity") else {
            return Err(format!(
                "unknown setting `{key}`; known: `severity`, a table, and the numbers `errors_min` and `errors_for_s`"
            ));
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
    Ok(Settings { severities, errors })
}

/// The schema of the settings, made from the conditions.
fn schema() -> String {
    let level = serde_json::json!({ "enum": ["info", "warning", "critical", "off"] });
    let number = serde_json::json!({ "type": "integer", "minimum": 1 });
    let conditions: serde_json::Map<String, Value> =
        CONDITIONS.iter().map(|(name, _)| ((*name).to_owned(), level.clone())).collect();
    serde_json::json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "severity": { "type": "object", "additionalProperties": false, "properties": conditions },
            "errors_min": number,
            "errors_for_s": number
        }
    })
    .to_string()
}
