//! The agent over real jobs: killed at every level, and asked by clients of every kind.

mod alerts;
mod budgets;
mod children;
mod clients;
mod compile;
mod container;
mod doubt;
mod launches;
mod levels;
mod listening;
mod load;
mod metrics;
mod old_supervisor;
mod place;
mod plugins;
mod recovery;
mod reload;
mod replay;
mod saved;
mod saved_plugins;
mod self_watch;
mod sinks;
mod store;
mod waits;
mod watched;
mod ways;
mod webhook;

/// Quick resumes, for jobs that a test kills.
const QUICK: &[&str] = &["--backoff", "0s..0s", "--max-attempts", "20"];

/// No plugins but the strategy: what is under test is something else.
pub(crate) const BARE: &str = "sink = []\nrule = []\n";
