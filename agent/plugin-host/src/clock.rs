//! The only file of the host that reads a clock: how much a plugin may log is counted by the second, and what it costs
//! by the time that its calls take.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the rate of log lines and the cost of calls need a clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
