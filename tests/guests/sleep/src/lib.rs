//! A sink whose `write` sleeps for a minute in a host call (field case C250): no guest code runs meanwhile.

mod wasi {
    wit_bindgen::generate!({ path: "wit", world: "sleeper", generate_all });
}

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "storage-sink" });
    use super::Sleep;
    export!(Sleep with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError};

/// How long `write` sleeps, in nanoseconds; the settings hold another number of milliseconds, or nothing.
const MINUTE_NS: u64 = 60_000_000_000;

static SLEEP_NS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(MINUTE_NS);

struct Sleep;

impl Lifecycle for Sleep {
    fn describe() -> Description {
        Description {
            name: "sleep".into(),
            version: "0.1.0".into(),
            summary: "Sleeps".into(),
            settings_schema: "{}".into(),
        }
    }

    /// Takes `{"ms":1500}`.
    fn configure(settings: String) -> Result<(), PluginError> {
        let digits: String = settings.chars().filter(char::is_ascii_digit).collect();
        if let Ok(ms) = digits.parse::<u64>() {
            SLEEP_NS.store(ms * 1_000_000, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Sink for Sleep {
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        let ns = SLEEP_NS.load(std::sync::atomic::Ordering::Relaxed);
        wasi::wasi::clocks::monotonic_clock::subscribe_duration(ns).block();
        Ok(Acknowledgement { durable: batch.sequences.last().copied().unwrap_or(0), refused: Vec::new() })
    }

    fn flush() -> Result<(), PluginError> {
        Ok(())
    }
}
