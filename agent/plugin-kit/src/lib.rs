//! What a plugin's author needs: a project to begin with, the component made from it, and proof that it works.
//!
//! This crate knows nothing of a running agent and asks none. It prints nothing and ends no process: whoever calls it shows
//! what it answers. A plugin runs here as it runs in the agent, by `latido-plugin-host`, inside the same limits.

mod bench;
mod case;
mod chaos;
mod clock;
mod conformance;
mod delivery;
mod feed;
mod format;
mod matching;
mod onlooker;
mod plugin;
mod project;
mod stage;
mod suite;
mod told;
mod trial;
mod watch;

pub use bench::{BenchError, Excess, Figures, bench};
pub use case::{Case, CaseError, NOW_MS};
pub use chaos::{ChaosPlan, Mishap, Round, chaos};
pub use delivery::Delivered;
pub use feed::{Answered, Fed, FeedError, ask, feed};
pub use format::{junit, tap};
pub use plugin::{Plugin, PluginError};
pub use project::{Language, Project, ProjectError};
pub use stage::{StageError, Workshop};
pub use suite::{Outcome, Plan, TestError, case_settings, test};
pub use trial::Report;
pub use watch::{WatchError, Watcher};
