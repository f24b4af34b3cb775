//! A sink that acknowledges what it has not stored. It appends the texts of a batch to its file, and settings say when it
//! acknowledges: `{"how": "early"}` before it writes, with the next batch, otherwise whatever the file answered.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "storage-sink" });
    use super::Forgetful;
    export!(Forgetful with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError};
use bindings::latido::plugin::files;

#[used]
#[unsafe(link_section = "latido:manifest")]
static MANIFEST: [u8; include_bytes!("../plugin.toml").len()] = *include_bytes!("../plugin.toml");

static EARLY: AtomicBool = AtomicBool::new(false);
static KEPT: Mutex<String> = Mutex::new(String::new());

struct Forgetful;

impl Lifecycle for Forgetful {
    fn describe() -> Description {
        Description {
            name: "forgetful".into(),
            version: "0.1.0".into(),
            summary: "Acknowledges what it has not stored".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        EARLY.store(settings.contains("early"), Ordering::Relaxed);
        Ok(())
    }
}

impl Sink for Forgetful {
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        let mut kept = KEPT.lock().unwrap();
        if EARLY.load(Ordering::Relaxed) {
            store(&kept);
            kept.clear();
            kept.push_str(&batch.texts);
        } else {
            store(&batch.texts);
        }
        Ok(Acknowledgement { durable: batch.sequences.last().copied().unwrap_or(0), refused: Vec::new() })
    }

    fn flush() -> Result<(), PluginError> {
        let mut kept = KEPT.lock().unwrap();
        store(&kept);
        kept.clear();
        Ok(())
    }
}

/// Appends a line of texts, and does not look whether that went well.
fn store(texts: &str) {
    if !texts.is_empty() {
        let _ = files::append("main", &format!("{}\n", texts.replace(['\0', '\n'], " ")));
    }
}
