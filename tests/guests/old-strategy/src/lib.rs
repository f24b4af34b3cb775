//! A strategy of 0.1. Settings: `{"decision": "launch" | "wait" | "hold" | "give-up"}`; what is not `launch` tells what it
//! was told. `observe` tells it too.

use std::sync::Mutex;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/released/latido-0.1.0.wit", world: "resume-strategy" });
    use super::Old;
    export!(Old with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::strategy::{
    Attribute, Decision, Guest as Strategy, Observation, PluginError, QuietKind, Situation,
};
use bindings::latido::plugin::workspace;

#[used]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static DECISION: Mutex<String> = Mutex::new(String::new());

struct Old;

impl Lifecycle for Old {
    fn describe() -> Description {
        Description {
            name: "old-strategy".into(),
            version: "0.1.0".into(),
            summary: "Decides as 0.1 does".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings: serde_json::Value =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        *DECISION.lock().unwrap() = settings["decision"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }
}

impl Strategy for Old {
    fn decide(situation: Situation) -> Result<Decision, PluginError> {
        let told = format!("{situation:?}");
        Ok(match DECISION.lock().unwrap().as_str() {
            "launch" => {
                let mut command = situation.command;
                command.arguments.push("--again".into());
                Decision::Launch(command)
            }
            "wait" => Decision::Wait((1500, told)),
            "hold" => Decision::Hold(seen()),
            _ => Decision::GiveUp(told),
        })
    }

    fn observe(
        subject: String,
        attempt: u32,
        epoch: u64,
        offset: u64,
        lines: Vec<String>,
    ) -> Result<Option<Observation>, PluginError> {
        Ok(Some(Observation {
            progress: None,
            usage: None,
            notes: vec![Attribute {
                key: "told".into(),
                value: format!("{subject} {attempt} {epoch} {offset} {lines:?} {}", seen()),
            }],
            quiet: QuietKind::Human,
            quiet_until: Some(7),
            finished: Some(false),
        }))
    }
}

/// What it sees of the job's directory.
fn seen() -> String {
    let look = workspace::look("state.json").map(|entry| entry.size);
    let read = workspace::read("state.json").map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let out = workspace::read("../secret").map(|_| ());
    format!("{look:?} {read:?} {out:?} {:?}", workspace::read("large").map(|_| ()))
}
