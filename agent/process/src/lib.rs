//! Processes as latido sees them: identity, locks, pidfds, the tree of an attempt, and how the kinds of process
//! that latido starts are started.
//!
//! This crate decides nothing and believes nothing: every question is answered by looking. It needs no runtime, opens no
//! network and writes no file but a lock. Platform code lies in `sys/`, and `unsafe` nowhere else. It reads one clock,
//! the monotonic one, to bound its own waits.

pub mod activity;
pub mod at_work;
pub mod cgroup;
pub mod datagram;
pub mod descriptors;
pub mod find;
#[cfg(test)]
mod fuzz;
pub mod identity;
pub mod limited;
pub mod lock;
mod pidfd;
mod proc;
pub mod run;
pub mod setup;
pub mod signals;
pub mod start;
mod sys;
pub mod told;
pub mod tree;

pub use pidfd::{Pidfd, PidfdError};
pub use rustix::process::Signal;
