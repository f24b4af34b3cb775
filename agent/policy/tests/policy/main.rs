//! The policy as its caller sees it: events in, actions out, and a clock that only the test moves.

mod field_cases;
mod harness;
mod jobs;
mod leases;
mod properties;
mod table;
