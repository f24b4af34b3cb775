//! The real supervisor binary with real jobs, in a state directory made by hand.

#![expect(clippy::unwrap_used, clippy::unwrap_in_result, reason = "a test ends where something is not as it should be")]

mod beat;
mod binary;
mod cgroup;
mod control;
mod ending;
mod hook;
mod launch;
mod output;
mod pid1;
mod setup;
mod stop;
mod support;
