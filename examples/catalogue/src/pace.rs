//! Spreads the work over a given time.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Longest single wait, so that the program says between two that it lives.
const SLICE: Duration = Duration::from_secs(1);

/// Being ahead by less is not worth a wait.
const AHEAD: Duration = Duration::from_millis(5);

/// Holds the work back to an even pace: each file is due at its share of the time.
pub(crate) struct Pace {
    started: Instant,
    whole: Option<Duration>,
    total: u64,
    files: u64,
    waited: bool,
    /// Nobody sends; waiting for a message that never comes is a wait with an end.
    never: (Sender<()>, Receiver<()>),
}

impl Pace {
    /// Begins with the first of `total` files that take `whole` together.
    pub(crate) fn new(whole: Option<Duration>, total: u64) -> Self {
        Self { started: now(), whole, total: total.max(1), files: 0, waited: false, never: channel() }
    }

    /// Called after each file, again while it answers `true`: waits a slice of what is left until the file is due.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(whole) = self.whole else { return false };
        if !self.waited {
            self.files += 1;
        }
        let due = whole.mul_f64(share(self.files, self.total));
        let ahead = due.saturating_sub(now().duration_since(self.started));
        // The last file waits to the end, so that the whole is never shorter than asked for.
        self.waited = ahead > AHEAD || (self.files == self.total && !ahead.is_zero());
        if self.waited {
            let _ = self.never.1.recv_timeout(ahead.min(SLICE));
        }
        self.waited
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of files, to wait by")]
fn share(files: u64, total: u64) -> f64 {
    files as f64 / total as f64
}

/// Reads the clock, for pace and beats alone.
#[expect(clippy::disallowed_methods, reason = "this program is no part of the agent and has one clock, here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_never_shorter_than_asked_for() {
        let whole = Duration::from_millis(120);
        let mut pace = Pace::new(Some(whole), 1_000);
        for _ in 0..1_000 {
            while pace.wait() {}
        }
        assert!(now().duration_since(pace.started) >= whole);
    }

    #[test]
    fn without_a_pace_nothing_waits() {
        assert!(!Pace::new(None, 1).wait());
    }
}
