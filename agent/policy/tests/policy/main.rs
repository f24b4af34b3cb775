//! The policy as its caller sees it: events in, actions out, and a clock that only the test moves.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, also in the functions it calls")]

mod alert_bench;
mod alert_field_cases;
mod alert_groups;
mod alert_mutes;
mod alert_properties;
mod alert_table;
mod alerts;
mod any;
mod check_times;
mod checks;
mod doubt;
mod field_cases;
mod gaps;
mod harness;
mod jobs;
mod launches;
mod leases;
mod limits;
mod orphans;
mod processes;
mod properties;
mod queue;
mod quiet;
mod registry;
mod restart;
mod resume_field_cases;
mod table;
mod watch;
mod watch_properties;
mod watch_tables;
mod wishes;
mod world_of_faults;
