//! What a plugin's author needs: a project to begin with, the component made from it, and proof that it works.
//!
//! This crate knows nothing of a running agent and asks none. It prints nothing and ends no process: whoever calls it shows
//! what it answers. A plugin runs here as it runs in the agent, by `latido-plugin-host`, inside the same limits.

mod bench;
mod build;
mod case;
mod chaos;
mod check;
mod clock;
mod conformance;
mod delivery;
mod feed;
mod format;
mod inputs;
mod inspect;
mod install;
mod interfaces;
mod key;
mod matching;
mod new;
mod onlooker;
mod pack;
mod plugin;
mod project;
mod record;
mod replay;
mod seal;
mod stage;
mod suite;
mod told;
mod tool;
mod trial;
mod trust;
mod watch;
mod whole;

pub use bench::{BenchError, Excess, Figures, bench};
pub use build::{BuildError, Built, build, is_stale};
pub use case::{Case, CaseError, NOW_MS};
pub use chaos::{ChaosPlan, Mishap, Round, chaos};
pub use check::{Checked, Described, chain, check, describe, explain};
pub use delivery::Delivered;
pub use feed::{Answered, Fed, FeedError, ask, feed};
pub use format::{junit, tap};
pub use inspect::{Inspection, SectionSize, inspect};
pub use install::{InstallError, install, installed};
pub use interfaces::differences;
pub use key::{KeyError, KeySource, PublicKey, SigningKey};
pub use new::{NewError, NewProject, WIT, create};
pub use pack::{Pack, PackError, pack};
pub use plugin::{Plugin, PluginError};
pub use project::{Language, NAME_RULE, Project, ProjectError, is_name};
pub use record::{Clean, Recorded, Recorder};
pub use replay::{ReplayError, Replayed, recorded_of, replay};
pub use seal::{Digest, SIGNATURE_SECTION, Seal, SealError};
pub use stage::{StageError, Workshop};
pub use suite::{Outcome, Plan, TestError, case_settings, test};
pub use tool::Toolbox;
pub use trial::Report;
pub use trust::{Trust, TrustError};
pub use watch::{WatchError, Watcher};
pub use whole::{write_private, write_whole};
