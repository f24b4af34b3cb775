//! The policy as its caller sees it: events in, actions out, and a clock that only the test moves.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, also in the functions it calls")]

mod doubt;
mod field_cases;
mod gaps;
mod harness;
mod jobs;
mod leases;
mod limits;
mod properties;
mod queue;
mod quiet;
mod restart;
mod table;
