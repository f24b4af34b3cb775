//! A sink that does what it must not. Settings: `{"where": "configure" | "write" | "flush", "what": …}`.
//!
//! It has no manifest: whatever it calls, it has not asked for.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

mod bindings {
    wit_bindgen::generate!({ path: "../../../wit", world: "storage-sink" });
    use super::Misbehave;
    export!(Misbehave with_types_in self);
}

use bindings::exports::latido::plugin::lifecycle::{Description, Guest as Lifecycle};
use bindings::exports::latido::plugin::sink::{Acknowledgement, Batch, Guest as Sink, PluginError, Refusal};
use bindings::latido::plugin::{files, http, log, sql, state};

/// Where it misbehaves, and what it does there.
static PLAN: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

/// How often it was given a batch.
static CALLS: AtomicU64 = AtomicU64::new(0);

struct Misbehave;

impl Lifecycle for Misbehave {
    fn describe() -> Description {
        Description {
            name: "misbehave".into(),
            version: "0.1.0".into(),
            summary: "Does what it must not".into(),
            settings_schema: "{}".into(),
        }
    }

    fn configure(settings: String) -> Result<(), PluginError> {
        std::panic::set_hook(Box::new(|panic| log::write(log::Level::Error, &panic.to_string())));
        let settings: serde_json::Value =
            serde_json::from_str(&settings).map_err(|error| PluginError::InvalidConfig(error.to_string()))?;
        let text = |key: &str| settings[key].as_str().unwrap_or_default().to_owned();
        *PLAN.lock().unwrap() = (text("where"), text("what"));
        misbehave("configure", &[])
    }
}

impl Sink for Misbehave {
    fn write(batch: Batch) -> Result<Acknowledgement, PluginError> {
        misbehave("write", &batch.sequences)?;
        let newest = batch.sequences.last().copied().unwrap_or(0);
        let what = PLAN.lock().unwrap().1.clone();
        let durable = match what.as_str() {
            "forge-acknowledgement" => newest + 1,
            "acknowledge-less" => newest.saturating_sub(CALLS.fetch_add(1, Ordering::Relaxed)),
            _ => newest,
        };
        let refused = match what.as_str() {
            "refuse-third" => batch.sequences.iter().filter(|sequence| **sequence % 10 == 3).copied().collect(),
            "refuse-foreign" => vec![newest + 7],
            _ => Vec::new(),
        };
        let refused = refused.into_iter().map(|sequence| Refusal { sequence, why: "not\nthis one".into() }).collect();
        Ok(Acknowledgement { durable, refused })
    }

    fn flush() -> Result<(), PluginError> {
        misbehave("flush", &[])
    }
}

fn misbehave(place: &str, batch: &[u64]) -> Result<(), PluginError> {
    let (planned, what) = PLAN.lock().unwrap().clone();
    if planned != place {
        return Ok(());
    }
    match what.as_str() {
        "trap" => panic!("as the settings ask"),
        "loop" => endless(),
        "grow" => grow(),
        "recurse" => {
            log::write(log::Level::Info, &recurse(1).to_string());
        }
        "flood-log" => {
            for number in 0..100_000_u32 {
                log::write(log::Level::Info, &format!("line {number}\nFORGED \u{1b}[31m{}", "x".repeat(1000)));
            }
        }
        "chatter" => (0..100).for_each(|number| log::write(log::Level::Info, &format!("line {number}"))),
        "huge-text" => return Err(PluginError::Other("x".repeat(48 << 20))),
        "panic-on-third" if batch.iter().any(|sequence| sequence % 10 == 3) => panic!("entry 3 cannot be borne"),
        "refuse" => return Err(PluginError::Permanent("never".into())),
        "refuse-settings" => return Err(PluginError::InvalidConfig("not these".into())),
        "retry-later" => return Err(PluginError::RetryAfter(1500)),
        "call-ungranted" => return Err(PluginError::Other(call_everything())),
        _ => {}
    }
    Ok(())
}

fn endless() -> ! {
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_add(1));
    }
}

fn grow() {
    let mut kept: Vec<Vec<u8>> = Vec::new();
    loop {
        kept.push(vec![1; 1 << 20]);
        std::hint::black_box(&kept);
    }
}

#[expect(unconditional_recursion, reason = "what it must not do")]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    recurse(frame[0] + 1) + frame[63]
}

/// Calls one function of each capability and writes down the answers.
fn call_everything() -> String {
    let request = http::Request {
        method: "GET".into(),
        url: vec![http::Part::Plain("http://127.0.0.1/".into())],
        headers: Vec::new(),
        body: Vec::new(),
        signature: None,
        within: None,
        redirects: 0,
    };
    [
        format!("{:?}", sql::execute("main", "CREATE TABLE t (x)", &[])),
        format!("{:?}", sql::query("main", "SELECT 1", &[])),
        format!("{:?}", files::append("main", "line\n")),
        format!("{:?}", http::send(&request)),
        format!("{:?}", state::get("key")),
        format!("{:?}", state::set("key", Some(b"value"))),
    ]
    .join("\n")
}
