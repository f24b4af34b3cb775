//! Runs plugins: WebAssembly components inside limits, with what they were granted and nothing else.
//!
//! This crate knows nothing of the agent. It starts no process, reads no file but the components' cache and what the
//! operator granted, and takes time from nobody: deadlines are durations that its callers set. No plugin can stop or
//! delay a caller beyond the wall limit of its call, and none of its faults costs more than its instance.
//!
//! ```no_run
//! # async fn example(component: Vec<u8>, batch: Vec<latido_plugin_host::Entry>) -> Result<(), Box<dyn std::error::Error>> {
//! use latido_plugin_host::{Host, HostSettings, Kind, PluginSpec};
//!
//! let host = Host::new(HostSettings { cache: "/var/cache/latido".into() })?;
//! let mut spec = PluginSpec::new("history", Kind::Sink, component);
//! spec.grants.sql.insert("main".to_owned(), "history.db".into());
//! let mut sink = host.load_sink(spec).await?;
//! let acknowledged = sink.write(&batch).await?;
//! # Ok(()) }
//! ```

mod bindings;
mod cache;
mod capability;
mod clock;
mod delivery;
mod engine;
mod error;
mod guest;
mod host;
mod instance;
mod manifest;
mod plugins;
mod spec;
mod state;
mod world;

pub use bindings::PACKAGE_VERSION;
pub use delivery::{Delivery, Next, Progress as DeliveryProgress};
pub use error::{CallError, Fault, FaultKind, HostError, LoadError, PluginError};
pub use host::{Host, HostSettings};
pub use manifest::{MANIFEST_SECTION, Manifest};
pub use plugins::{Output, Rule, Sink, Strategy};
pub use spec::{Durability, FileGrant, Grants, Kind, Limits, PluginSpec, SqlGrant};
pub use state::{MemoryState, SHARE, StateFault, StateStore};
pub use world::Description;

pub use bindings::v0::rule::exports::latido::plugin::rule::Finding;
pub use bindings::v0::sink::latido::plugin::journal::{
    Alert, AlertState, AttemptEnded, AttemptStarted, Beat, Body, Entry, OtherEntry, Reap, Severity, Transition,
};
pub use bindings::v0::sink::latido::plugin::types::{
    Attribute, Outcome, Progress, Subject, SubjectKind, Usage, Verdict,
};
pub use bindings::v0::strategy::exports::latido::plugin::strategy::{
    Budget, Command, Decision, EnvironmentValue, EnvironmentVariable, Observation, PastAttempt, QuietKind, Situation,
};
