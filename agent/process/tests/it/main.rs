//! Real processes: identity, locks, running, and the tree of an attempt.

mod identity;
mod lock;
mod run;
mod support;
mod tree;
