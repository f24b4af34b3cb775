//! A sink that tries what the settings say and tells what was answered.
//!
//! Settings: `{"execute": [statement, …], "query": [statement, …], "append": [line, …], "database": …, "file": …,
//! "state": [[key, value or null], …], "requests": [request, …]}`. `write` answers `other` with one line for each try.

use std::sync::Mutex;

mod requests;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "storage-sink" });
    use super::Probe;
    export!(Probe with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError};
use bindings::latido::plugin::{files, log, sql, state};
use serde_json::Value;

#[used]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static SETTINGS: Mutex<Value> = Mutex::new(Value::Null);

struct Probe;

impl Lifecycle for Probe {
    fn describe() -> Description {
        Description {
            name: "probe".into(),
            version: "0.1.0".into(),
            summary: "Tries and tells".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        *SETTINGS.lock().unwrap() =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        Ok(())
    }
}

impl Sink for Probe {
    fn write(_batch: Batch) -> Result<Acknowledgement, PluginError> {
        let settings = SETTINGS.lock().unwrap().clone();
        let list = |key: &str| settings[key].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let database = settings["database"].as_str().unwrap_or("main");
        let mut told = Vec::new();
        for statement in list("execute") {
            told.push(format!("{:?}", sql::execute(database, &text(&statement), &[])));
        }
        for statement in list("query") {
            let answer = sql::query(database, &text(&statement), &[]);
            told.push(match answer {
                Ok(rows) if rows.len() > 20 => format!("Ok({} rows)", rows.len()),
                other => format!("{other:?}"),
            });
        }
        let lines: String = list("append").iter().map(text).collect();
        if !lines.is_empty() {
            told.push(format!("{:?}", files::append(settings["file"].as_str().unwrap_or("main"), &lines)));
        }
        for request in list("requests") {
            told.push(requests::sent(&request));
        }
        for pair in list("state") {
            let key = text(&pair[0]);
            told.push(format!("{:?}", state::set(&key, pair[1].as_str().map(str::as_bytes))));
            told.push(format!("{:?}", state::get(&key)));
        }
        log::write(log::Level::Debug, "tried");
        Err(PluginError::Other(told.join("\n")))
    }

    fn flush() -> Result<(), PluginError> {
        Ok(())
    }
}
