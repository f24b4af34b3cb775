//! @NAME@: a rule for latido.

/// Written by `latido plugin build`.
#[path = "../bindings/alert_rule.rs"]
mod bindings;

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Finding, Guest as Rule, PluginError, Severity, Subject};
use bindings::latido::plugin::log::{self, Level};
use serde::Deserialize;
use std::sync::OnceLock;

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

const SCHEMA: &str = r#"{
    "type": "object",
    "additionalProperties": false,
    "properties": {
        "silence_s": {
            "type": "number",
            "minimum": 1,
            "default": 120,
            "description": "how long a subject may be silent, in seconds"
        }
    }
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    silence_s: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { silence_s: 120.0 }
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

impl Lifecycle for Plugin {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Finds what is silent for too long".into(),
            settings_schema: SCHEMA.into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        // A panic ends in a trap, and a module without WASI has no stderr: its words go into the log instead.
        std::panic::set_hook(Box::new(|panic| log::write(Level::Error, &panic.to_string())));
        let settings: Settings =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        if settings.silence_s < 1.0 {
            return Err(PluginError::InvalidConfig("`silence_s` is at least 1".into()));
        }
        log::write(Level::Debug, &format!("silent is what says nothing for {} s", settings.silence_s));
        let _first = SETTINGS.set(settings);
        Ok(())
    }
}

impl Rule for Plugin {
    fn evaluate(_now: u64, subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let limit_s = SETTINGS.get_or_init(Settings::default).silence_s;
        let mut findings = Vec::new();
        for subject in subjects {
            let Some(silence) = subject.silence.filter(|silence| *silence as f64 >= limit_s * 1000.0) else { continue };
            findings.push(Finding {
                key: "silent".into(),
                summary: format!("{} has been silent for {} s", subject.name, silence / 1000),
                subject: subject.name,
                severity: Severity::Warning,
                attributes: Vec::new(),
            });
        }
        Ok(findings)
    }
}
