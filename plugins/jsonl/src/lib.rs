//! A sink that appends the journal to a file, one JSON object a line, in the shape of `latido events --json`.
//!
//! Delivery is at least once: after a crash at the wrong moment the last lines may come again, and `agent` with
//! `sequence` tells them apart.

#[path = "../../guest/entries.rs"]
mod entries;
mod line;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "storage-sink" });
    use super::Jsonl;
    export!(Jsonl with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError};
use bindings::latido::plugin::files::{self, FileError};

/// The name of the granted file.
const FILE: &str = "main";

/// How long to wait when the disk is full, in milliseconds: somebody has to make room first.
const FULL_RETRY_MS: u64 = 10_000;

/// About how long a line is, in bytes: what is set aside for a batch.
const LINE: usize = 256;

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
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        let mut lines = String::with_capacity(batch.sequences.len() * LINE);
        let mut writer = line::Lines::of(&batch);
        for entry in entries::of(&batch) {
            writer.add(&mut lines, &entry);
        }
        let durable = batch.sequences.last().copied().unwrap_or(0);
        if lines.is_empty() {
            return Ok(Acknowledgement { durable, refused: Vec::new() });
        }
        match files::append(FILE, &lines) {
            Ok(()) => Ok(Acknowledgement { durable, refused: Vec::new() }),
            Err(FileError::Denied(what)) => Err(PluginError::Denied(what)),
            Err(FileError::Full) => Err(PluginError::RetryAfter(FULL_RETRY_MS)),
            Err(FileError::Failed(why)) => Err(PluginError::Retry(why)),
        }
    }

    fn flush() -> Result<(), PluginError> {
        Ok(()) // nothing is buffered
    }
}
