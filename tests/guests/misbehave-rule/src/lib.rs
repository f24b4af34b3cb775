//! A rule that does what it must not. Settings: `{"what": …}`.

use std::sync::Mutex;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "alert-rule" });
    use super::Misbehave;
    export!(Misbehave with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::rule::{Finding, Guest as Rule, PluginError, Severity, Subject};

static WHAT: Mutex<String> = Mutex::new(String::new());

struct Misbehave;

impl Lifecycle for Misbehave {
    fn describe() -> Description {
        Description {
            name: "misbehave-rule".into(),
            version: "0.1.0".into(),
            summary: "Does what it must not".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings: serde_json::Value =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        *WHAT.lock().unwrap() = settings["what"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }
}

impl Rule for Misbehave {
    fn evaluate(_now: u64, _subjects: Vec<Subject>) -> Result<Vec<Finding>, PluginError> {
        let what = WHAT.lock().unwrap().clone();
        match what.as_str() {
            "huge-list" => Ok(vec![finding(""); 500_000]),
            "foreign-subject" => Ok(vec![finding("nobody asked about this one")]),
            "loop" => {
                let mut number = 0_u64;
                loop {
                    number = std::hint::black_box(number.wrapping_add(1));
                }
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn finding(subject: &str) -> Finding {
    Finding {
        key: String::new(),
        subject: subject.into(),
        severity: Severity::Info,
        summary: String::new(),
        attributes: Vec::new(),
    }
}
