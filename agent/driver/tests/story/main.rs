//! Whole stories: facts in, orders out, and what the journal says of them. No clock, no process, a store in memory.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod activity;
mod facts;
mod launches;
mod lives;
mod recorded;
mod replays;
mod restarts;
mod waits;
mod world;
