//! The agent over real jobs: killed at every level, and asked by clients of every kind.

mod alerts;
mod budgets;
mod clients;
mod levels;
mod listening;
mod place;
mod plugins;
mod sinks;
mod store;
mod waits;
mod watched;

/// Quick resumes, for jobs that a test kills.
const QUICK: &[&str] = &["--backoff", "0s..0s", "--max-attempts", "20"];

/// No plugins but the strategy: what is under test is something else.
const BARE: &str = "sink = []\nrule = []\n";
