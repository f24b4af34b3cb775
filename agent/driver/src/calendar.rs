//! The calendar's next moment of each check, and where it lies on the time line.
//!
//! A moment that is ahead lies as far ahead on the line as on the calendar. One that was passed over, because time was cut
//! out or the calendar was set forward, lies where that was noticed: nobody could have heard a sign at the moment itself.
//! Clock settings up to [`CORRECTION_MIN`] are those of daylight saving and of a clock that was a little wrong: no moment
//! is expected twice or left out for them, as Vixie cron has it. A larger one corrects a calendar that was plainly wrong,
//! and what was expected on that calendar is expected no more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use latido_policy::{Expectation, Moment, SubjectId};
use latido_protocol::WallTime;

use crate::schedule::Schedule;

/// From this step on the calendar was wrong before.
const CORRECTION_MIN: Duration = Duration::from_secs(3 * 3600);

/// A calendar that drifts by less than this against the time line is slewed, as time services do; moments keep their place.
const DRIFT_MAX: Duration = Duration::from_secs(1);

/// The calendar of all checks.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    checks: BTreeMap<SubjectId, Pending>,
    /// the pending moments in order, so that a pass costs what is due
    marks: BTreeSet<(WallTime, SubjectId)>,
    /// checks whose moment has not been handed in yet
    fresh: BTreeSet<SubjectId>,
    /// both ends of the time line and the calendar when moments were last placed
    placed: Option<(Moment, WallTime)>,
    /// the last pass, to tell how far the calendar was set
    last: Option<(Moment, WallTime)>,
}

#[derive(Debug)]
struct Pending {
    schedule: Schedule,
    mark: Option<WallTime>,
}

impl Calendar {
    /// Takes in a check. `pending`: the moment it waited for before the agent's start.
    pub(crate) fn add(&mut self, id: SubjectId, schedule: Schedule, pending: Option<WallTime>, wall: WallTime) {
        // A moment that the calendar cannot have waited for was written by a clock that was plainly wrong.
        let first = schedule.next_after(wall);
        let mark = pending.filter(|pending| first.is_some_and(|first| *pending <= first)).or(first);
        self.checks.insert(id, Pending { schedule, mark });
        self.marks.extend(mark.map(|mark| (mark, id)));
        self.fresh.insert(id);
    }

    /// The moment that a check waits for.
    pub(crate) fn pending(&self, id: SubjectId) -> Option<WallTime> {
        self.checks.get(&id).and_then(|check| check.mark)
    }

    /// Moves to this moment and answers what is expected, in order: moments that came, and moments that moved.
    pub(crate) fn advance(
        &mut self,
        now: Moment,
        wall: WallTime,
        gap: Option<Duration>,
    ) -> Vec<(SubjectId, Expectation)> {
        if self.checks.is_empty() {
            (self.last, self.placed) = (Some((now, wall)), Some((now, wall)));
            return Vec::new();
        }
        let step = self.last.replace((now, wall)).map_or(0, |last| {
            offset(last, (now, wall)) - i128::try_from(gap.unwrap_or_default().as_millis()).unwrap_or(0)
        });
        let is_corrected = step.unsigned_abs() > CORRECTION_MIN.as_millis();
        let drift = self.placed.map_or(0, |placed| offset(placed, (now, wall)));
        let is_moved = drift.unsigned_abs() > DRIFT_MAX.as_millis();
        if is_corrected {
            self.forget_marks(wall);
        }
        if is_moved || self.placed.is_none() {
            self.placed = Some((now, wall));
        }
        let mut told = Vec::new();
        let due: Vec<(WallTime, SubjectId)> = self.marks.range(..=(wall, SubjectId(u32::MAX))).copied().collect();
        for (mark, id) in due {
            told.extend(self.expectation(id, mark, now, wall).map(|expectation| (id, expectation)));
            self.move_on(id, wall);
            self.fresh.insert(id);
        }
        let placed: Vec<SubjectId> =
            if is_moved { self.checks.keys().copied().collect() } else { self.fresh.iter().copied().collect() };
        self.fresh.clear();
        for id in placed {
            let mark = self.pending(id);
            told.extend(
                mark.and_then(|mark| self.expectation(id, mark, now, wall)).map(|expectation| (id, expectation)),
            );
        }
        told
    }

    fn expectation(&self, id: SubjectId, mark: WallTime, now: Moment, wall: WallTime) -> Option<Expectation> {
        let spacing = self.checks.get(&id)?.schedule.next_after(mark).map(|next| between(mark, next));
        let passed = between(mark, wall);
        Some(Expectation {
            mark: mark.as_millis(),
            moment: now.after(between(wall, mark)),
            spacing: spacing.unwrap_or(Duration::MAX),
            in_gap: passed > DRIFT_MAX,
        })
    }

    /// The next moment of a check is the first that is ahead; those passed over with the pending one are one with it.
    fn move_on(&mut self, id: SubjectId, wall: WallTime) {
        let Some(check) = self.checks.get_mut(&id) else { return };
        if let Some(mark) = check.mark.take() {
            self.marks.remove(&(mark, id));
        }
        check.mark = check.schedule.next_after(wall);
        self.marks.extend(check.mark.map(|mark| (mark, id)));
    }

    fn forget_marks(&mut self, wall: WallTime) {
        for id in self.checks.keys().copied().collect::<Vec<_>>() {
            self.move_on(id, wall);
        }
    }
}

/// How much further the calendar went than the time line, in milliseconds.
fn offset(from: (Moment, WallTime), to: (Moment, WallTime)) -> i128 {
    let wall = i128::from(to.1.as_millis()) - i128::from(from.1.as_millis());
    wall - i128::try_from(to.0.since(from.0).as_millis()).unwrap_or(i128::MAX)
}

/// From one calendar time to a later one; zero where it lies before.
fn between(from: WallTime, to: WallTime) -> Duration {
    Duration::from_millis(to.as_millis().saturating_sub(from.as_millis()))
}
