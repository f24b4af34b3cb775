//! @NAME@: a sink for latido.

/// Written by `latido plugin build`.
#[path = "../bindings/storage_sink.rs"]
mod bindings;
mod entries;

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError};
use bindings::latido::plugin::files::{self, FileError};
use bindings::latido::plugin::log::{self, Level};

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

/// The granted file, by this plugin's name for it.
const FILE: &str = "main";

/// How long to wait when the disk is full, in milliseconds: somebody has to make room first.
const FULL_RETRY_MS: u64 = 10_000;

impl Lifecycle for Plugin {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Appends each entry to a file, as one line".into(),
            settings_schema: r#"{"type":"object","additionalProperties":false,"properties":{}}"#.into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        // A panic ends in a trap, and a module without WASI has no stderr: its words go into the log instead.
        std::panic::set_hook(Box::new(|panic| log::write(Level::Error, &panic.to_string())));
        let settings: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        match settings.keys().next() {
            Some(key) => Err(PluginError::InvalidConfig(format!("unknown setting `{key}`; this sink has none"))),
            None => Ok(()),
        }
    }
}

impl Sink for Plugin {
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        let mut lines = String::new();
        for entry in entries::of(&batch) {
            let says: String = entry.fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let line = format!("{} {} {}{says}", entry.sequence, entry.at, entry.kind);
            lines.push_str(&line.replace(['\n', '\r'], " "));
            lines.push('\n');
        }
        // Delivery is at least once: what is not acknowledged comes again.
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
