//! A strategy that tries what the settings say and tells what was answered.
//!
//! Settings: `{"look": [path, …], "read": [[path, offset, length], …], "list": [path, …]}`. `decide` holds with one line for
//! each try, `observe` notes the same lines. `describe`, which is about no job, tells of a look at `.`.

use std::sync::Mutex;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "resume-strategy" });
    use super::Probe;
    export!(Probe with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::strategy::{
    Decision, Guest as Strategy, Observation, Output, PluginError, QuietKind, Situation,
};
use bindings::latido::plugin::types::Attribute;
use bindings::latido::plugin::workspace;
use serde_json::Value;

#[used]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static SETTINGS: Mutex<Value> = Mutex::new(Value::Null);

struct Probe;

impl Lifecycle for Probe {
    fn describe() -> Description {
        Description {
            name: "probe-strategy".into(),
            version: "0.1.0".into(),
            summary: format!("{:?}", workspace::look(".")),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        *SETTINGS.lock().unwrap() =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        Ok(())
    }
}

impl Strategy for Probe {
    fn decide(_situation: Situation) -> Result<Decision, PluginError> {
        Ok(Decision::Hold(tried().join("\n")))
    }

    fn observe(_output: Output) -> Result<Option<Observation>, PluginError> {
        Ok(Some(Observation {
            progress: None,
            usage: None,
            notes: tried().into_iter().map(|value| Attribute { key: "try".into(), value }).collect(),
            quiet: QuietKind::None,
            quiet_until: None,
            finished: None,
            attributes: Vec::new(),
        }))
    }
}

fn tried() -> Vec<String> {
    let settings = SETTINGS.lock().unwrap().clone();
    let list = |key: &str| settings[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut told = Vec::new();
    for path in list("look") {
        told.push(match workspace::look(&text(&path)) {
            Ok(entry) => format!("{} bytes, directory {}, since {}", entry.size, entry.directory, entry.modified),
            Err(error) => format!("{error:?}"),
        });
    }
    for read in list("read") {
        let (offset, length) = (read[1].as_u64().unwrap_or_default(), read[2].as_u64().unwrap_or_default() as u32);
        told.push(match workspace::read(&text(&read[0]), offset, length) {
            Ok(bytes) => format!("{:?}", String::from_utf8_lossy(&bytes)),
            Err(error) => format!("{error:?}"),
        });
    }
    for path in list("list") {
        told.push(match workspace::list(&text(&path)) {
            Ok(listed) => {
                let kind = |listed: &workspace::Listed| if listed.entry.directory { "/" } else { "" };
                let names: Vec<String> = listed.iter().map(|each| format!("{}{}", each.name, kind(each))).collect();
                format!("{}: {}", names.len(), names.join(" "))
            }
            Err(error) => format!("{error:?}"),
        });
    }
    told
}
