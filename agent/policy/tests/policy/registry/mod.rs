//! Workers, groups and claims.

mod claims;
mod desk;
mod doubt;
mod field_cases;
mod instances;
mod properties;
mod restarts;
mod stuck;
mod worker_registry;
