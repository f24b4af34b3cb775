//! A sink of 0.1: keeps each entry as a row and as a line, in the words of that version.
//!
//! Settings: `{"what": …}`: `refuse`, `forge-acknowledgement`, `acknowledge-less`, `loop`, `call-ungranted` or nothing.

use std::sync::Mutex;

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit/released/latido-0.1.0.wit", world: "storage-sink" });
    use super::Old;
    export!(Old with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Entry, Guest as Sink, PluginError};
use bindings::latido::plugin::{files, http, log, sql, state};

#[used]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static WHAT: Mutex<String> = Mutex::new(String::new());

struct Old;

impl Lifecycle for Old {
    fn describe() -> Description {
        Description {
            name: "old-sink".into(),
            version: "0.1.0".into(),
            summary: "Keeps entries as 0.1 has them".into(),
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

impl Sink for Old {
    fn write(batch: Vec<Entry>) -> Result<u64, PluginError> {
        let newest = batch.last().map_or(0, |entry| entry.sequence);
        match WHAT.lock().unwrap().as_str() {
            "refuse" => return Err(PluginError::RetryAfter(1500)),
            "forge-acknowledgement" => return Ok(newest + 1),
            "acknowledge-less" => return Ok(newest - 1),
            "loop" => endless(),
            "call-ungranted" => return Err(PluginError::Other(ungranted())),
            _ => keep(&batch)?,
        }
        Ok(newest)
    }

    fn flush() -> Result<(), PluginError> {
        Ok(())
    }
}

fn keep(batch: &[Entry]) -> Result<(), PluginError> {
    let failed = |error: sql::SqlError| PluginError::Other(format!("{error:?}"));
    let table =
        "CREATE TABLE IF NOT EXISTS entries (sequence INTEGER, agent TEXT, at INTEGER, body TEXT, attributes TEXT)";
    sql::execute("main", table, &[Vec::new()]).map_err(failed)?;
    let text = |text: String| sql::Value::Text(text);
    let row = |entry: &Entry| {
        let attributes: Vec<String> =
            entry.attributes.iter().map(|each| format!("{}={}", each.key, each.value)).collect();
        vec![
            sql::Value::Integer(entry.sequence as i64),
            text(entry.agent.clone()),
            sql::Value::Integer(entry.at as i64),
            text(format!("{:?}", entry.body)),
            text(attributes.join(" ")),
        ]
    };
    let rows: Vec<Vec<sql::Value>> = batch.iter().map(row).collect();
    let changed = sql::execute("main", "INSERT INTO entries VALUES (?, ?, ?, ?, ?)", &rows).map_err(failed)?;
    let lines: Vec<String> = batch.iter().map(|entry| format!("{} of {changed}", entry.sequence)).collect();
    files::append("main", &lines).map_err(|error| PluginError::Other(format!("{error:?}")))?;
    log::write(log::Level::Info, &format!("kept {changed}"));
    Ok(())
}

/// Calls what is not granted, and what a line may not hold, and writes down the answers.
fn ungranted() -> String {
    let request = http::Request {
        method: "GET".into(),
        url: vec![http::Part::Plain("http://127.0.0.1/".into())],
        headers: Vec::new(),
        body: Vec::new(),
        signature: None,
    };
    [
        format!("{:?}", sql::execute("other", "CREATE TABLE t (x)", &[Vec::new()])),
        format!("{:?}", sql::query("main", "ATTACH 'other.db' AS o", &[])),
        format!("{:?}", files::append("other", &["line".into()])),
        format!("{:?}", http::send(&request)),
        format!("{:?}", state::get("key")),
        format!("{:?}", files::append("main", &["two\nlines".into()])),
    ]
    .join("\n")
}

fn endless() -> ! {
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}
