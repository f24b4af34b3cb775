//! The listening time line: the agent's clock with everything cut out in which it could not hear.

use std::time::Duration;

use latido_policy::Moment;
use latido_protocol::WallTime;
use serde::{Deserialize, Serialize};

use crate::seconds;

/// What the clocks said at one instant. Only the daemon's `clock.rs` reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// the clock that does not count suspend (Linux `CLOCK_MONOTONIC`)
    pub monotonic: Duration,
    /// the clock that does (`CLOCK_BOOTTIME`)
    pub boottime: Duration,
    /// the calendar, for records
    pub wall: WallTime,
}

/// What a reading says of the time since the one before: all that the driver knows of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// how long was listened
    #[serde(rename = "listened_s", with = "seconds")]
    pub listened: Duration,
    /// how long nobody could hear, where that was
    #[serde(rename = "gap_s", with = "seconds::optional", default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Duration>,
    /// the calendar afterwards
    pub wall: WallTime,
}

/// A pass at least this often, so that a gap is found by its absence and not by comparing clocks alone: there are
/// machines whose monotonic clock runs on while they sleep.
pub const PASS_EVERY: Duration = Duration::from_secs(5);

/// A pass later than planned by more than this heard nothing meanwhile. Scheduling on a busy machine is late by
/// milliseconds; a stopped process, a frozen machine or a disk that hangs by seconds.
pub const LATENESS_MAX: Duration = Duration::from_secs(1);

/// Where the line begins: far enough in, that a silence from before the agent's start has room.
const START: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Turns readings into moments.
#[derive(Debug)]
pub struct Listening {
    now: Moment,
    last: Option<Reading>,
    wall: WallTime,
    planned: Duration,
    /// of the time since the last reading, what the step took that began with it
    busy: Duration,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            now: Moment::ORIGIN.after(START),
            last: None,
            wall: WallTime::from_millis(0),
            planned: PASS_EVERY,
            busy: Duration::ZERO,
        }
    }
}

impl Listening {
    /// The moment of the last reading.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Moves the line to `reading` and answers what passed, with the gap it found, suspend included.
    pub fn advance(&mut self, reading: Reading) -> Passed {
        let passed = self.passed(reading);
        self.follow(passed);
        passed
    }

    /// Moves the line as a reading did that was recorded.
    pub fn follow(&mut self, passed: Passed) {
        self.now = self.now.after(passed.listened);
        self.wall = passed.wall;
    }

    fn passed(&mut self, reading: Reading) -> Passed {
        let wall = reading.wall;
        let Some(last) = self.last.replace(reading) else {
            return Passed { listened: Duration::ZERO, gap: None, wall };
        };
        let elapsed = reading.monotonic.saturating_sub(last.monotonic);
        let suspended = reading.boottime.saturating_sub(last.boottime).saturating_sub(elapsed);
        // A slow step is deaf however soon the next one comes; what is over the plan beside it is lateness.
        let busy = std::mem::take(&mut self.busy).min(elapsed);
        let slow = if busy > LATENESS_MAX { busy } else { Duration::ZERO };
        let late = elapsed.saturating_sub(slow).saturating_sub(self.planned);
        let deaf = slow + if late > LATENESS_MAX { late } else { Duration::ZERO };
        let gap = deaf + if suspended > LATENESS_MAX { suspended } else { Duration::ZERO };
        let gap = (gap > Duration::ZERO).then_some(gap);
        Passed { listened: elapsed.saturating_sub(deaf), gap, wall }
    }

    /// Says when the step was done that began with the last reading.
    pub fn rest(&mut self, reading: Reading) {
        self.busy = self.last.map_or(Duration::ZERO, |last| reading.monotonic.saturating_sub(last.monotonic));
    }

    /// Says how long the driver may sleep before `next`, and remembers it.
    pub fn plan(&mut self, next: Option<Moment>) -> Duration {
        self.planned = next.map_or(PASS_EVERY, |next| next.since(self.now).min(PASS_EVERY));
        self.planned
    }

    /// The calendar time of a moment, as the last reading's calendar has it.
    pub fn wall(&self, moment: Moment) -> WallTime {
        let ago = u64::try_from(self.now.since(moment).as_millis()).unwrap_or(u64::MAX);
        WallTime::from_millis(self.wall.as_millis().saturating_sub(ago))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic_s: u64, boottime_s: u64, wall_s: u64) -> Reading {
        Reading {
            monotonic: Duration::from_secs(monotonic_s),
            boottime: Duration::from_secs(boottime_s),
            wall: WallTime::from_millis(wall_s * 1000),
        }
    }

    #[test]
    fn a_pass_in_time_moves_the_line_by_what_elapsed() {
        let mut line = Listening::default();
        assert_eq!(line.advance(at(100, 100, 0)).gap, None);
        let start = line.now();
        line.plan(None);
        assert_eq!(line.advance(at(104, 104, 4)).gap, None);
        assert_eq!(line.now().since(start), Duration::from_secs(4));
    }

    /// systemd/systemd#20284: the monotonic clock ran on while the machine slept.
    #[test]
    fn c001_a_late_pass_heard_nothing_meanwhile() {
        let mut line = Listening::default();
        line.advance(at(100, 100, 0));
        let start = line.now();
        line.plan(Some(start.after(Duration::from_secs(2))));
        assert_eq!(line.advance(at(162, 162, 62)).gap, Some(Duration::from_secs(60)));
        assert_eq!(line.now().since(start), Duration::from_secs(2));
    }

    /// rust-lang/rust#87906: the monotonic clock stood still while the machine slept.
    #[test]
    fn c005_suspend_is_told_by_the_boot_clock_and_counts_for_nobody() {
        let mut line = Listening::default();
        line.advance(at(100, 100, 0));
        let start = line.now();
        line.plan(None);
        assert_eq!(line.advance(at(101, 700, 600)).gap, Some(Duration::from_secs(599)));
        assert_eq!(line.now().since(start), Duration::from_secs(1));
    }

    /// sonic-net/SONiC#218: the wall clock steps both ways, hours long.
    #[test]
    fn c010_steps_of_the_wall_clock_move_nothing() {
        let mut line = Listening::default();
        line.advance(at(100, 100, 100_000));
        let start = line.now();
        for (second, wall) in [(101, 96_400), (102, 103_600), (103, 0)] {
            line.plan(None);
            assert_eq!(line.advance(at(second, second, wall)).gap, None);
        }
        assert_eq!(line.now().since(start), Duration::from_secs(3));
    }

    #[test]
    fn a_slow_step_heard_nothing_however_soon_the_next_one_comes() {
        let mut line = Listening::default();
        line.advance(at(100, 100, 0));
        let start = line.now();
        line.plan(None);
        line.rest(at(104, 104, 4));
        assert_eq!(line.advance(at(105, 105, 5)).gap, Some(Duration::from_secs(4)));
        assert_eq!(line.now().since(start), Duration::from_secs(1));
        line.plan(None);
        line.rest(at(105, 105, 5));
        assert_eq!(line.advance(at(110, 110, 10)).gap, None, "a quick one is no gap");
    }

    #[test]
    fn a_slow_step_and_a_late_pass_are_both_cut_out_and_none_of_it_twice() {
        let mut line = Listening::default();
        line.advance(at(100, 100, 0));
        let start = line.now();
        line.plan(Some(start.after(Duration::from_secs(2))));
        line.rest(at(110, 110, 10));
        assert_eq!(line.advance(at(140, 140, 40)).gap, Some(Duration::from_secs(38)));
        assert_eq!(line.now().since(start), Duration::from_secs(2));
    }

    #[test]
    fn the_line_never_runs_backwards_whatever_the_clocks_say() {
        let mut line = Listening::default();
        let mut before = line.now();
        let hours = [(100, 100), (7300, 7300), (7301, 100_000), (7300, 7300), (3, 3), (4, 90_000)];
        for (monotonic, boottime) in hours {
            line.advance(at(monotonic, boottime, 0));
            line.plan(None);
            assert!(line.now() >= before, "at {monotonic}, {boottime}");
            assert!(line.now().since(before) <= PASS_EVERY + LATENESS_MAX, "hours are never listening time");
            before = line.now();
        }
    }
}
