//! Groups of workers, as the config decides them.

use latido_driver::registry;
use latido_policy::{GroupSettings, WorkerLease};

use super::document::GroupTable;
use super::policy::Complaint;

/// What a group decides, or what contradicts itself in it.
pub(super) fn group(table: &GroupTable) -> Result<GroupSettings, Complaint> {
    let default = registry::default_group();
    let interval = table.interval.map_or(default.lease.interval(), |text| text.0.0);
    let start_within = table.start_within.map_or(default.lease.start_within(), |text| text.0.0);
    let lease = match (table.ttl, table.missed) {
        (Some(_), Some(_)) => {
            return Err(Complaint { key: "missed", why: "it is given beside a ttl; one of them decides".to_owned() });
        }
        (Some(ttl), None) => WorkerLease::new(interval, ttl.0.0, start_within),
        (None, missed) => WorkerLease::after_missed(interval, missed.unwrap_or(registry::MISSED), start_within),
    };
    let key = if table.ttl.is_some() { "ttl" } else { "missed" };
    let lease = lease.ok_or_else(|| {
        let why =
            "it leaves no room for a late beat: a worker is dead after more than one interval, and within 49 days";
        Complaint { key, why: why.to_owned() }
    })?;
    let claims_max = table.claims_per_worker.unwrap_or(default.claims_max);
    let max_pickups = table.max_pickups.unwrap_or(default.max_pickups);
    Ok(GroupSettings { capacity: table.capacity, claims_max, max_pickups, lease })
}
