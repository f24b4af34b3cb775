//! The agent as a library: what `latido agent` runs, and what the command line shares with it.
//!
//! [`settings`] reads the config, [`jobs`] changes jobs and their attempts on the disk, [`run`](run()) is one life of the
//! agent. Sources tell the driver's thread what they learn; it answers with orders; actions carry them out and tell
//! what came of it. Nothing else flows, and nothing but the policy decides.

mod actions;
mod clock;
pub mod compile;
mod configured;
mod driver_thread;
mod first_process;
mod found;
pub mod jobs;
mod journal;
pub mod kept_signals;
pub mod metrics;
mod place;
mod plugins;
pub mod recording;
mod reload;
pub mod replay;
mod run;
pub mod settings;
mod sources;
mod trim;

pub use latido_store::OpenError;
pub use place::PlaceError;
pub use plugins::{add_entry, component_spec, subject_of};
pub use reload::{Config, Reread};
pub use run::{AgentError, run};
