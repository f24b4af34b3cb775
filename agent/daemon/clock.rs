//! The only file of the agent that reads a clock.
//!
//! Silence is measured on `CLOCK_MONOTONIC`, which does not count suspend, cut by the driver wherever the agent could
//! not hear. `CLOCK_BOOTTIME` tells how long a suspend was. The calendar is for records and people alone.

use std::time::{Duration, SystemTime};

use latido_driver::Reading;
use latido_protocol::WallTime;
use rustix::time::{ClockId, clock_gettime};

/// Reads all three clocks at once.
pub(crate) fn reading() -> Reading {
    Reading { monotonic: clock(ClockId::Monotonic), boottime: clock(ClockId::Boottime), wall: wall() }
}

/// The calendar, for records.
pub(crate) fn wall() -> WallTime {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
    let time = SystemTime::now();
    WallTime::from(time)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    // The kernel's clocks that count from boot are never negative.
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
