//! The only file of the kit that reads a clock: how long a test took, and what a benchmark measures.

use std::time::Instant;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "tests and benchmarks say how long they took")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
