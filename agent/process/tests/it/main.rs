//! Real processes: identity, locks, running, and the tree of an attempt.

#![expect(clippy::unwrap_used, clippy::unwrap_in_result, reason = "a test ends where something is not as it should be")]

mod activity;
mod cgroup;
mod find;
mod identity;
mod lock;
mod recycled;
mod run;
mod support;
mod tree;
