//! A sink that stores the journal in a SQLite database, each entry exactly once in effect.
//!
//! The key of a row is (agent, sequence), and an entry that comes again is ignored, so that a batch may be delivered
//! any number of times. The plugin keeps nothing between calls. The schema is described in the README.

mod columns;
#[path = "../../guest/entries.rs"]
mod entries;
mod retention;
#[path = "../../guest/rows.rs"]
mod rows;
mod schema;

#[expect(unsafe_code, reason = "generated: the exports of a component")]
mod bindings {
    wit_bindgen::generate!({ path: "../../wit", world: "storage-sink" });
    use super::Sqlite;
    export!(Sqlite with_types_in self);
}

use std::sync::OnceLock;

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError};
use bindings::latido::plugin::sql::{self, SqlError};
use retention::Retention;

/// The name of the granted database; the settings may choose another.
const DATABASE: &str = "main";

/// How long to wait when another process holds the database, in milliseconds.
const BUSY_RETRY_MS: u64 = 250;

/// How long to wait when the disk is full, in milliseconds: somebody has to make room first.
const FULL_RETRY_MS: u64 = 10_000;

#[used]
#[expect(unsafe_code, reason = "a custom section is how the host finds the manifest")]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static RETENTION: OnceLock<Retention> = OnceLock::new();

struct Sqlite;

impl Lifecycle for Sqlite {
    fn describe() -> Description {
        Description {
            name: "sqlite".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "Stores the journal in a SQLite database, each entry exactly once in effect".into(),
            settings_schema: retention::schema(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        let settings: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        let retention = Retention::read(&settings).map_err(PluginError::InvalidConfig)?;
        RETENTION.set(retention).map_err(|_| PluginError::Other("configured twice".into()))?;
        schema::migrate(DATABASE)
    }
}

impl Sink for Sqlite {
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        let durable = batch.sequences.last().copied().unwrap_or(0);
        store(&batch)?;
        Ok(Acknowledgement { durable, refused: Vec::new() })
    }

    fn flush() -> Result<(), PluginError> {
        Ok(()) // nothing is buffered
    }
}

/// Stores a batch, and takes out what is too old, in one transaction.
fn store(batch: &Batch) -> Result<(), PluginError> {
    if batch.sequences.is_empty() {
        return Ok(());
    }
    let mut steps = columns::steps(batch);
    steps.extend(RETENTION.get().copied().unwrap_or_default().steps(DATABASE, batch)?);
    sql::execute_all(DATABASE, &steps).map(drop).map_err(refusal)
}

/// Says to the agent what a database's refusal means for the batch.
fn refusal(error: SqlError) -> PluginError {
    match error {
        SqlError::Denied(what) => PluginError::Denied(what),
        SqlError::Busy => PluginError::RetryAfter(BUSY_RETRY_MS),
        SqlError::Full => PluginError::RetryAfter(FULL_RETRY_MS),
        SqlError::Failed(why) => PluginError::Retry(why),
    }
}
