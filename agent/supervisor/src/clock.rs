//! The supervisor's clocks.
//!
//! Silence runs on listening time: `CLOCK_MONOTONIC`, which does not count a suspended machine, minus the gaps in which
//! the supervisor itself did not run (it was stopped, or starved, or the machine slept in a way that the clock counts). A
//! gap shows in its own passes: more time has gone by than it had planned to sleep. Waits between signals run on the
//! plain monotonic clock, records carry wall time.

use std::time::Duration;

use latido_protocol::WallTime;
use rustix::time::ClockId;

/// A pass that comes this much later than planned was a gap. Below it is what a loaded machine and a slow disk do.
const GAP: Duration = Duration::from_secs(1);

/// One reading of both time lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// for waits: signals, drains, rates
    pub(crate) monotonic: Duration,
    /// for silence
    pub(crate) listening: Duration,
}

/// Cuts gaps out of the monotonic time line.
#[derive(Debug)]
pub(crate) struct Clock {
    now: Now,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { now: Now { monotonic: monotonic(), listening: Duration::ZERO } }
    }

    /// The moment of this pass.
    pub(crate) fn now(&self) -> Now {
        self.now
    }

    /// Begins a pass after a sleep that was planned to last at most `planned`.
    pub(crate) fn pass(&mut self, planned: Duration) -> Now {
        self.advance(monotonic(), planned)
    }

    fn advance(&mut self, monotonic: Duration, planned: Duration) -> Now {
        let elapsed = monotonic.saturating_sub(self.now.monotonic);
        let heard = if elapsed > planned.saturating_add(GAP) { planned } else { elapsed };
        self.now = Now { monotonic, listening: self.now.listening.saturating_add(heard) };
        self.now
    }
}

/// Calendar time, for records.
pub(crate) fn wall() -> WallTime {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    let millis = i128::from(now.tv_sec) * 1000 + i128::from(now.tv_nsec) / 1_000_000;
    WallTime::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(crate) fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_cut_to_what_was_planned() {
        let second = Duration::from_secs(1);
        let mut clock = Clock { now: Now::default() };
        assert_eq!(clock.advance(3 * second, 10 * second).listening, 3 * second);
        assert_eq!(clock.advance(13 * second, 10 * second).listening, 13 * second);
        // Stopped for an hour.
        let now = clock.advance(3613 * second, 10 * second);
        assert_eq!((now.listening, now.monotonic), (23 * second, 3613 * second));
        // A clock that stands still or runs backwards adds nothing.
        assert_eq!(clock.advance(second, second).listening, 23 * second);
    }
}
