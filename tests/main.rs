//! The integration tests: one binary, one line per suite.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, and a helper of a test is part of it")]

mod agent;
mod cli;
mod faults;
mod plugins;
mod support;
