//! The settings: when silence is unusual.

use serde_json::{Map, Value, json};

use super::bindings::exports::latido::plugin::rule::Severity;

/// What the settings decide.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// silence is unusual when it is so many times as long as usual
    pub(crate) factor: f64,
    /// looks before anything is found
    pub(crate) looks_min: u64,
    /// shorter silence is never unusual, in milliseconds
    pub(crate) least_ms: u64,
    pub(crate) severity: Severity,
}

impl Settings {
    pub(crate) const DEFAULT: Self = Self { factor: 3.0, looks_min: 20, least_ms: 5_000, severity: Severity::Warning };
}

/// Reads `{"factor": 3, "looks_min": 20, "least_s": 5, "severity": "warning"}` over the defaults.
pub(crate) fn read(text: &str) -> Result<Settings, String> {
    let given: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut settings = Settings::DEFAULT;
    for (key, value) in &given {
        let number = |least: f64| {
            let number = value.as_f64().filter(|number| *number >= least);
            number.ok_or_else(|| format!("`{key}` is {value}; it is a number of at least {least}"))
        };
        match key.as_str() {
            "factor" => settings.factor = number(1.1)?,
            "looks_min" => settings.looks_min = number(2.0)? as u64,
            "least_s" => settings.least_ms = (number(0.0)? * 1000.0) as u64,
            "severity" => settings.severity = severity(value)?,
            other => return Err(format!("unknown setting `{other}`; known: factor, looks_min, least_s, severity")),
        }
    }
    Ok(settings)
}

fn severity(value: &Value) -> Result<Severity, String> {
    match value.as_str() {
        Some("info") => Ok(Severity::Info),
        Some("warning") => Ok(Severity::Warning),
        Some("critical") => Ok(Severity::Critical),
        Some(_) | None => Err(format!("`severity` is {value}; known: info, warning, critical")),
    }
}

/// The schema of the settings.
pub(crate) fn schema() -> String {
    let number = |least: f64, what: &str| json!({ "type": "number", "minimum": least, "description": what });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "factor": number(1.1, "silence is unusual when it is so many times as long as usual"),
            "looks_min": number(2.0, "looks before anything is found"),
            "least_s": number(0.0, "shorter silence is never unusual, in seconds"),
            "severity": { "enum": ["info", "warning", "critical"], "description": "how bad it is" },
        }
    })
    .to_string()
}
