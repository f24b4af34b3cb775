//! The clocks of commands and launches: wall time for records, a monotonic deadline for every wait.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant, SystemTime};

use latido_protocol::WallTime;
use rustix::event::{PollFd, PollFlags, Timespec};

/// The time that is written into records. No decision is taken on it.
#[expect(clippy::disallowed_methods, reason = "the one place where records get their wall time")]
pub fn wall_time() -> WallTime {
    SystemTime::now().into()
}

/// The two clocks by which the agent measures silence: without and with the time in which the machine slept.
pub fn since_boot() -> (Duration, Duration) {
    let reading = crate::clock::reading();
    (reading.monotonic, reading.boottime)
}

#[expect(clippy::disallowed_methods, reason = "the one place where deadlines get their start")]
fn instant() -> Instant {
    Instant::now()
}

fn poll(descriptors: &mut [PollFd<'_>], turn: Duration) -> rustix::io::Result<usize> {
    let timeout =
        Timespec { tv_sec: i64::try_from(turn.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(turn.subsec_nanos()) };
    rustix::event::poll(descriptors, Some(&timeout))
}

/// The end of a wait. It runs on the monotonic clock, so that setting the wall clock neither ends nor prolongs it.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// A wait that never ends by itself.
    pub const NEVER: Self = Self(None);

    /// Ends this long from the call; a span too long for the clock never ends.
    pub fn after(span: Duration) -> Self {
        Self(instant().checked_add(span))
    }

    /// What is left; zero when it has passed, `None` when it never does.
    pub fn left(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(instant()))
    }

    /// True when nothing is left.
    pub fn has_passed(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// What is left, but at most `longest`: the length of one turn of a wait.
    pub fn turn(self, longest: Duration) -> Duration {
        self.left().map_or(longest, |left| left.min(longest))
    }

    /// Waits one turn, for conditions that no descriptor announces.
    pub fn rest(self, longest: Duration) {
        // An interrupted rest is a short one; every caller looks at its condition again.
        let _ = poll(&mut [], self.turn(longest));
    }

    /// Waits until one of these descriptors is readable, has hung up, or the turn is over; says of each whether it is.
    pub fn any_readable(self, descriptors: &[BorrowedFd<'_>], longest: Duration) -> Vec<bool> {
        let mut polled: Vec<PollFd<'_>> =
            descriptors.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let _ = poll(&mut polled, self.turn(longest));
        polled.iter().map(|fd| !fd.revents().is_empty()).collect()
    }

    /// Waits until a descriptor is readable or has hung up, until the deadline; true when it is.
    pub fn readable(self, descriptor: impl AsFd) -> bool {
        const TURN: Duration = Duration::from_secs(60);
        loop {
            if self.any_readable(&[descriptor.as_fd()], TURN)[0] {
                return true;
            }
            if self.has_passed() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_and_never_does_not() {
        assert!(Deadline::after(Duration::ZERO).has_passed());
        assert!(!Deadline::after(Duration::from_secs(60)).has_passed());
        assert!(!Deadline::NEVER.has_passed());
        assert_eq!(Deadline::NEVER.turn(Duration::from_millis(5)), Duration::from_millis(5));
        assert!(!Deadline::after(Duration::MAX).has_passed());
    }
}
