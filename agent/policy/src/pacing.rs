//! Resumes one after another: what an outage ended together does not come back together.

use core::num::NonZeroU32;
use core::time::Duration;

use crate::{Limit, Moment};

/// How fast attempts are started that nobody ordered by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pacing {
    /// so many at once after a rest
    pub at_once: Limit<NonZeroU32>,
    /// and one more each time so much has passed
    pub every: Duration,
}

/// Counts what was started lately. One moment holds it all: the one at which everything is rested again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pacing: Pacing,
    rested_at: Moment,
}

impl Default for Pace {
    fn default() -> Self {
        Self { pacing: Pacing::default(), rested_at: Moment::ORIGIN }
    }
}

impl Pace {
    /// Changes how fast it goes on.
    pub(crate) fn set(&mut self, pacing: Pacing) {
        self.pacing = pacing;
    }

    /// When the next one may start; it may be past.
    pub(crate) fn ready_at(&self) -> Moment {
        match self.pacing.at_once {
            Limit::None => Moment::ORIGIN,
            Limit::At(at_once) => self.rested_at.before(self.pacing.every.saturating_mul(at_once.get() - 1)),
        }
    }

    /// When the one starts that has so many before it.
    pub(crate) fn turn_at(&self, ahead: u32, now: Moment) -> Moment {
        self.ready_at().max(now).after(self.pacing.every.saturating_mul(ahead))
    }

    /// Takes note that one starts.
    pub(crate) fn start(&mut self, now: Moment) {
        self.rested_at = self.rested_at.max(now).after(self.pacing.every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_secs(seconds))
    }

    /// The seconds at which eight are started that want to from second 100 on.
    fn starts(pacing: Pacing) -> Vec<u64> {
        let mut pace = Pace::default();
        pace.set(pacing);
        let mut now = at(100);
        (0..8)
            .map(|_| {
                now = now.max(pace.ready_at());
                pace.start(now);
                now.since(Moment::ORIGIN).as_secs()
            })
            .collect()
    }

    #[test]
    fn some_start_at_once_and_the_others_one_by_one() {
        let pacing = |at_once, every| Pacing { at_once, every: Duration::from_secs(every) };
        let three = Limit::At(NonZeroU32::new(3).unwrap());
        assert_eq!(starts(pacing(three, 10)), [100, 100, 100, 110, 120, 130, 140, 150]);
        assert_eq!(starts(pacing(Limit::At(NonZeroU32::MIN), 10)), [100, 110, 120, 130, 140, 150, 160, 170]);
        assert_eq!(starts(pacing(Limit::None, 10)), [100; 8]);
        assert_eq!(starts(pacing(three, 0)), [100; 8]);
    }

    #[test]
    fn a_rest_gives_back_what_was_used() {
        let mut pace = Pace::default();
        pace.set(Pacing { at_once: Limit::At(NonZeroU32::new(2).unwrap()), every: Duration::from_secs(10) });
        for second in [100, 100, 110, 130, 130] {
            assert!(pace.ready_at() <= at(second), "{second}");
            pace.start(at(second));
        }
        assert_eq!(pace.ready_at(), at(140));
        assert_eq!(pace.turn_at(2, at(131)), at(160));
    }
}
