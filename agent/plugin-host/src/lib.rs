//! Runs plugins: WebAssembly components inside limits, with what they were granted and nothing else.
//!
//! This crate knows nothing of the agent. It starts no process, reads no file but the components' cache and what the
//! operator granted, and takes time from nobody: deadlines are durations that its callers set. No plugin can stop or
//! delay a caller beyond the wall limit of its call, and none of its faults costs more than its instance.
//!
//! ```no_run
//! # async fn example(component: Vec<u8>, entries: latido_plugin_host::Entries) -> Result<(), Box<dyn std::error::Error>> {
//! use latido_plugin_host::{Host, HostSettings, Kind, PluginSpec};
//!
//! let host = Host::new(HostSettings { cache: "/var/cache/latido".into(), compiler: None, metered: false })?;
//! let mut spec = PluginSpec::new("history", Kind::Sink, component);
//! spec.grants.sql.insert("main".to_owned(), "history.db".into());
//! let mut sink = host.load_sink(spec).await?;
//! let acknowledged = sink.write(&entries).await?.durable;
//! # Ok(()) }
//! ```

mod bindings;
mod cache;
mod capability;
mod clock;
mod costs;
mod delivery;
mod engine;
mod entries;
mod error;
mod fixed;
mod guest;
mod host;
mod instance;
mod manifest;
mod plugins;
mod probe;
mod spec;
mod state;
mod web;
mod world;

pub use bindings::{PACKAGE, PACKAGE_VERSIONS};
pub use cache::Compiler;
pub use capability::http::{Network, origin};
pub use costs::Costs;
pub use delivery::{Delivery, Next, Progress as DeliveryProgress};
pub use engine::compile;
pub use entries::{Entries, Entry, Field, Said, Says};
pub use error::{CallError, Fault, FaultKind, HostError, LoadError, PluginError};
pub use fixed::Fixed;
pub use host::{COMPONENT_MAX, Host, HostSettings};
pub use manifest::{MANIFEST_SECTION, Manifest};
pub use plugins::{Loaded, Rule, Sink, Strategy};
pub use probe::{Asked, Probe, RefusalKind, Ruling, Then};
pub use spec::{Durability, FileGrant, Grants, Kind, Limits, PluginSpec, SqlGrant, WorkspaceGrant};
pub use state::{MemoryState, SHARE, StateFault, StateStore};
pub use web::{HttpGrant, LookingUp, Names, Secret, SystemNames};
pub use world::Description;

pub use bindings::v0_2::rule::exports::latido::plugin::rule::Finding;
pub use bindings::v0_2::sink::exports::latido::plugin::sink::{Acknowledgement, Refusal};
pub use bindings::v0_2::sink::latido::plugin::journal::ValueKind;
pub use bindings::v0_2::sink::latido::plugin::types::{
    Attribute, Outcome, Progress, Severity, Subject, SubjectKind, Usage, Verdict,
};
pub use bindings::v0_2::strategy::exports::latido::plugin::strategy::{
    Budget, Command, Decision, EnvironmentValue, EnvironmentVariable, Observation, OtherDecision, Output, PastAttempt,
    Pause, QuietKind, Situation,
};
