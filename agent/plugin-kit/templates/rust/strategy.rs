//! @NAME@: a strategy for latido.

/// Written by `latido plugin build`.
#[path = "../bindings/resume_strategy.rs"]
mod bindings;

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::strategy::{
    Decision, Guest as Strategy, Observation, Output, PluginError, Progress, QuietKind, Situation,
};
use bindings::latido::plugin::log::{self, Level};
use serde::Deserialize;
use std::sync::OnceLock;

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

const SCHEMA: &str = r#"{
    "type": "object",
    "additionalProperties": false,
    "properties": {
        "attempts_max": {
            "type": "integer",
            "minimum": 1,
            "default": 5,
            "description": "how many attempts may end before a person is asked"
        }
    }
}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    attempts_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { attempts_max: 5 }
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

impl Lifecycle for Plugin {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Launches a job again until it has died too often".into(),
            settings_schema: SCHEMA.into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        // A panic ends in a trap, and a module without WASI has no stderr: its words go into the log instead.
        std::panic::set_hook(Box::new(|panic| log::write(Level::Error, &panic.to_string())));
        let settings: Settings =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        if settings.attempts_max < 1 {
            return Err(PluginError::InvalidConfig("`attempts_max` is at least 1".into()));
        }
        let _first = SETTINGS.set(settings);
        Ok(())
    }
}

impl Strategy for Plugin {
    fn decide(situation: Situation) -> Result<Decision, PluginError> {
        let ended = situation.attempts.iter().filter(|attempt| attempt.outcome.is_some()).count();
        if ended >= SETTINGS.get_or_init(Settings::default).attempts_max {
            return Ok(Decision::Hold(format!("{ended} attempts have ended")));
        }
        Ok(Decision::Launch(situation.command))
    }

    /// A line such as `50%` says how far the work is.
    fn observe(output: Output) -> Result<Option<Observation>, PluginError> {
        let percent = output.lines.iter().rev().find_map(|line| line.trim().strip_suffix('%')?.parse::<f64>().ok());
        let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) else { return Ok(None) };
        Ok(Some(Observation {
            progress: Some(Progress {
                fraction: Some(percent / 100.0),
                done: None,
                total: None,
                step: None,
                checkpoint: None,
            }),
            usage: None,
            notes: Vec::new(),
            quiet: QuietKind::None,
            quiet_until: None,
            finished: None,
            attributes: Vec::new(),
        }))
    }
}
