//! A sink that appends the journal to a file, one JSON object a line, in the shape of `latido events --json`.
//!
//! Delivery is at least once: after a crash at the wrong moment the last lines may come again, and `agent` with
//! `sequence` tells them apart.

mod line;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "storage-sink" });
    use super::Jsonl;
    export!(Jsonl with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Entry, Guest as Sink, PluginError};
use bindings::latido::plugin::files::{self, FileError};

/// The name of the granted file.
const FILE: &str = "main";

/// How long to wait when the disk is full, in milliseconds: somebody has to make room first.
const FULL_RETRY_MS: u64 = 10_000;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

struct Jsonl;

impl Lifecycle for Jsonl {
    fn describe() -> Description {
        Description {
            name: "jsonl".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Appends the journal to a file, one JSON object a line".into(),
            settings_schema: r#"{"type":"object","additionalProperties":false,"properties":{}}"#.into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        match settings.keys().next() {
            Some(key) => Err(PluginError::InvalidConfig(format!("unknown setting `{key}`; this sink has none"))),
            None => Ok(()),
        }
    }
}

impl Sink for Jsonl {
    fn write(batch: Vec<Entry>) -> Result<u64, PluginError> {
        let Some(newest) = batch.iter().map(|entry| entry.sequence).max() else { return Ok(0) };
        let lines: Vec<String> = batch.into_iter().map(line::of).collect();
        match files::append(FILE, &lines) {
            Ok(()) => Ok(newest),
            Err(FileError::Denied(what)) => Err(PluginError::Denied(what)),
            Err(FileError::Full) => Err(PluginError::RetryAfter(FULL_RETRY_MS)),
            Err(FileError::Failed(why)) => Err(PluginError::Retry(why)),
        }
    }

    fn flush() -> Result<(), PluginError> {
        Ok(()) // nothing is buffered
    }
}
