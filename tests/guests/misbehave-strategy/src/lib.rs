//! A strategy that does what it must not. Settings: `{"where": "decide" | "observe", "what": "loop" | "trap"}`.

use std::sync::Mutex;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "resume-strategy" });
    use super::Misbehave;
    export!(Misbehave with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::strategy::{
    Decision, Guest as Strategy, Observation, Output, PluginError, Situation,
};
use bindings::latido::plugin::{state, workspace};

static PLAN: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

struct Misbehave;

impl Lifecycle for Misbehave {
    fn describe() -> Description {
        Description {
            name: "misbehave-strategy".into(),
            version: "0.1.0".into(),
            summary: "Does what it must not".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings: serde_json::Value =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        let text = |key: &str| settings[key].as_str().unwrap_or_default().to_owned();
        *PLAN.lock().unwrap() = (text("where"), text("what"));
        Ok(())
    }
}

impl Strategy for Misbehave {
    fn decide(situation: Situation) -> Result<Decision, PluginError> {
        misbehave("decide");
        Ok(Decision::Hold(format!(
            "{:?} {:?} {:?} {}",
            workspace::look("."),
            workspace::read("secret", 0, 100),
            state::get("key"),
            situation.subject.name
        )))
    }

    fn observe(_output: Output) -> Result<Option<Observation>, PluginError> {
        misbehave("observe");
        Ok(None)
    }
}

fn misbehave(place: &str) {
    let (planned, what) = PLAN.lock().unwrap().clone();
    if planned != place {
        return;
    }
    match what.as_str() {
        "trap" => panic!("as the settings ask"),
        "loop" => {
            let mut number = 0_u64;
            loop {
                number = std::hint::black_box(number.wrapping_add(1));
            }
        }
        _ => {}
    }
}
