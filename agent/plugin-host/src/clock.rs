//! The only file of the host that reads a clock: how much a plugin may log is counted by the second.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the rate of log lines is the one thing here that needs a clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
