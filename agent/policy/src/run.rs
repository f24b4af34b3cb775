//! The runs of a check that have begun and not ended, told apart by their ids.

use core::time::Duration;

use crate::{Fingerprint, Moment};

/// Open runs of one check. More than a few at once is a job that never tells its end; each costs memory in every check.
pub const OPEN_RUNS_MAX: usize = 8;

/// Ended runs whose ids are remembered, so that a signal told twice or out of order is known again.
const ENDED_RUNS_MAX: usize = 8;

/// A nameless start so soon after the last one is the same start told twice: nothing on a schedule runs that often.
const TOLD_TWICE_WITHIN: Duration = Duration::from_secs(10);

/// A run that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// stands for its id; `None` where it was told without one
    pub id: Option<Fingerprint>,
    /// when its start was told
    pub began: Moment,
}

/// The open runs of a check, the oldest first, and the ids of those that ended last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    open: [Option<OpenRun>; OPEN_RUNS_MAX],
    ended: [Option<Fingerprint>; ENDED_RUNS_MAX],
}

/// What came of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It was told already, or it has ended already.
    Known,
    /// It is open; the run that had to make room for it never told its end.
    Open { unended: Option<OpenRun> },
}

/// What came of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its end was told already.
    Known,
    /// It is over; `began` is `None` where no start was told.
    Over { began: Option<Moment> },
}

impl Runs {
    /// The runs that were open, and the ids of those that ended last, as they are remembered; what is too much is left out.
    #[must_use]
    pub fn remembered(open: impl Iterator<Item = OpenRun>, ended: impl Iterator<Item = Fingerprint>) -> Self {
        let mut runs = Self::default();
        for (place, run) in runs.open.iter_mut().zip(open) {
            *place = Some(run);
        }
        for (place, id) in runs.ended.iter_mut().zip(ended) {
            *place = Some(id);
        }
        runs
    }

    /// The open runs, the oldest first.
    pub fn open(&self) -> impl Iterator<Item = OpenRun> + '_ {
        self.open.iter().flatten().copied()
    }

    /// The ids of the runs that ended last, the latest first.
    pub fn ended(&self) -> impl Iterator<Item = Fingerprint> + '_ {
        self.ended.iter().flatten().copied()
    }

    /// Opens a run. A nameless one takes the place of the nameless one before it, since nobody could tell which of them
    /// ends; one too many takes the place of the oldest.
    pub(crate) fn begin(&mut self, id: Option<Fingerprint>, now: Moment) -> Begun {
        let twin = self.open().find(|run| run.id == id);
        if let Some(id) = id
            && (twin.is_some() || self.ended().any(|ended| ended == id))
        {
            return Begun::Known;
        }
        if twin.is_some_and(|run| now.since(run.began) < TOLD_TWICE_WITHIN) {
            return Begun::Known;
        }
        let oldest = self.open[0].filter(|_| self.open().count() == OPEN_RUNS_MAX);
        let unended = twin.or(oldest);
        if let Some(run) = unended {
            self.remove(run);
        }
        if let Some(place) = self.open.iter_mut().find(|place| place.is_none()) {
            *place = Some(OpenRun { id, began: now });
        }
        Begun::Open { unended }
    }

    /// Ends a run, whether or not its start was told.
    pub(crate) fn end(&mut self, id: Option<Fingerprint>) -> Ended {
        if let Some(id) = id {
            if self.ended().any(|ended| ended == id) {
                return Ended::Known;
            }
            self.ended.rotate_right(1);
            self.ended[0] = Some(id);
        }
        let run = self.open().find(|run| run.id == id);
        if let Some(run) = run {
            self.remove(run);
        }
        Ended::Over { began: run.map(|run| run.began) }
    }

    /// Takes out the oldest run that has been open for `run_for` or longer.
    pub(crate) fn take_overlong(&mut self, run_for: Duration, now: Moment) -> Option<OpenRun> {
        let run = self.open().find(|run| now.since(run.began) >= run_for)?;
        self.remove(run);
        Some(run)
    }

    /// Moves every start later, to `now` at most: the time of a pause does not count.
    pub(crate) fn shift(&mut self, length: Duration, now: Moment) {
        for run in self.open.iter_mut().flatten() {
            run.began = run.began.after(length).min(now);
        }
    }

    fn remove(&mut self, run: OpenRun) {
        let mut kept = [None; OPEN_RUNS_MAX];
        for (place, open) in kept.iter_mut().zip(self.open().filter(|open| *open != run)) {
            *place = Some(open);
        }
        self.open = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_secs(seconds))
    }

    fn id(number: u64) -> Option<Fingerprint> {
        Some(Fingerprint(number))
    }

    fn open(runs: &Runs) -> Vec<(Option<u64>, Moment)> {
        runs.open().map(|run| (run.id.map(|id| id.0), run.began)).collect()
    }

    #[test]
    fn runs_with_ids_are_told_apart() {
        let mut runs = Runs::default();
        runs.begin(id(1), at(0));
        runs.begin(id(2), at(5));
        assert_eq!(runs.end(id(1)), Ended::Over { began: Some(at(0)) });
        assert_eq!(open(&runs), [(Some(2), at(5))]);
    }

    #[test]
    fn a_start_or_an_end_told_twice_is_known() {
        let mut runs = Runs::default();
        assert_eq!(runs.begin(id(1), at(0)), Begun::Open { unended: None });
        assert_eq!(runs.begin(id(1), at(60)), Begun::Known);
        assert_eq!(runs.begin(None, at(60)), Begun::Open { unended: None });
        assert_eq!(runs.begin(None, at(69)), Begun::Known);
        runs.end(id(1));
        assert_eq!(runs.end(id(1)), Ended::Known);
    }

    #[test]
    fn a_start_that_comes_after_its_end_opens_nothing() {
        let mut runs = Runs::default();
        assert_eq!(runs.end(id(1)), Ended::Over { began: None });
        assert_eq!(runs.begin(id(1), at(3)), Begun::Known);
        assert_eq!(open(&runs), []);
    }

    #[test]
    fn a_nameless_start_takes_the_place_of_the_nameless_run_before_it() {
        let mut runs = Runs::default();
        runs.begin(None, at(0));
        runs.begin(id(1), at(1));
        assert_eq!(runs.begin(None, at(10)), Begun::Open { unended: Some(OpenRun { id: None, began: at(0) }) });
        assert_eq!(open(&runs), [(Some(1), at(1)), (None, at(10))]);
    }

    #[test]
    fn one_too_many_takes_the_place_of_the_oldest() {
        let mut runs = Runs::default();
        for number in 0..OPEN_RUNS_MAX as u64 {
            runs.begin(id(number), at(number));
        }
        assert_eq!(runs.begin(id(99), at(99)), Begun::Open { unended: Some(OpenRun { id: id(0), began: at(0) }) });
        assert_eq!(runs.open().count(), OPEN_RUNS_MAX);
        assert_eq!(runs.open().last(), Some(OpenRun { id: id(99), began: at(99) }));
    }

    #[test]
    fn only_a_bounded_number_of_ended_ids_is_remembered() {
        let mut runs = Runs::default();
        for number in 0..=ENDED_RUNS_MAX as u64 {
            runs.end(id(number));
        }
        assert_eq!(runs.end(id(1)), Ended::Known);
        assert_eq!(runs.end(id(0)), Ended::Over { began: None });
    }

    #[test]
    fn what_was_remembered_is_the_same_again() {
        let mut runs = Runs::default();
        runs.begin(id(1), at(0));
        runs.begin(None, at(5));
        runs.end(id(7));
        assert_eq!(Runs::remembered(runs.open(), runs.ended()), runs);
    }
}
