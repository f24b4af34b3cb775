//! What the suites share: a world of their own for each test, and waits that end with a condition.

mod agent;
mod mount;
mod wait;
mod world;

pub(crate) use agent::Agent;
pub(crate) use mount::Mount;
pub(crate) use wait::{wait_long_until, wait_until};
pub(crate) use world::{Ran, World};
