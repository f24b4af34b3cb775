//! Replay: the real driver and the real policy over a recording, with the recorded settings or with others.
//!
//! There is no second judge here. A recorded step is made again, with the time that passed then and the facts that were
//! told then; orders are not carried out, since what came of them stands in the recording. So with the recorded settings
//! the decisions are those that were recorded. Under other settings the facts stay what they were: after the first
//! difference about an attempt the recording does not tell what would have become of it.

mod compare;
mod decision;
mod sign;

use std::time::Duration;

use latido_protocol::status::SubjectKind;
use latido_store::{MemoryStore, StoreError};

pub use compare::{Difference, Side, compare};
pub use decision::{About, Decided, What};
pub use sign::{Afterwards, Signs};

use crate::fact::Fact;
use crate::listening::Passed;
use crate::recording::{Beginning, DriverSettings, Line, RECORDING_VERSION, Step};
use crate::{Driver, Output};

/// Between two steps that are put in between recorded ones, so that a driver that never rests comes to an end.
const STEP_MIN: Duration = Duration::from_millis(1);

/// Puts settings in the place of those that were recorded.
pub trait Conditions {
    /// The settings of the agent.
    fn settings(&mut self, recorded: DriverSettings) -> DriverSettings;
    /// The fact, with other settings for the subject that it brings, where there are any.
    fn fact(&mut self, recorded: Fact) -> Fact;
}

/// Everything stays as it was recorded.
#[derive(Clone, Copy, Debug)]
pub struct AsRecorded;

impl Conditions for AsRecorded {
    fn settings(&mut self, recorded: DriverSettings) -> DriverSettings {
        recorded
    }

    fn fact(&mut self, recorded: Fact) -> Fact {
        recorded
    }
}

/// Why lines cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The first line is no beginning.
    #[error("replay it: its first line is no beginning of a recording")]
    NoBeginning,
    /// A later format.
    #[error("replay it: it was recorded in format {version}, and this latido knows formats up to {RECORDING_VERSION}")]
    Newer {
        /// its version
        version: u32,
    },
    /// Its rows are none.
    #[error("replay it: its rows cannot be read")]
    Rows(#[source] StoreError),
}

/// A replay under way.
pub struct Replay<C> {
    conditions: C,
    driver: Option<Driver<MemoryStore>>,
    /// when the recorded driver wanted to be called again, from its last step
    planned: Duration,
    /// when this one wants to be, from the same step
    wake_in: Duration,
    /// listening time since the first line
    listened: Duration,
    decided: Vec<Decided>,
}

impl<C: Conditions> Replay<C> {
    /// Begins before the first line.
    pub fn new(conditions: C) -> Self {
        Self {
            conditions,
            driver: None,
            planned: Duration::ZERO,
            wake_in: Duration::ZERO,
            listened: Duration::ZERO,
            decided: Vec::new(),
        }
    }

    /// Replays the next line.
    ///
    /// # Errors
    /// The recording does not begin with this line, or not in a format that is known.
    pub fn take(&mut self, line: &Line) -> Result<(), ReplayError> {
        match line {
            Line::Began(beginning) => self.begin(beginning)?,
            Line::Step(step) => self.step(step)?,
            Line::AlertAsked { request, wall, store_is_away } => {
                let driver = self.driver()?;
                driver.store().set_away(*store_is_away);
                // What was refused then is refused again; either way it is answered to nobody.
                let _answered = driver.handle_alert_request(request.clone(), *wall);
            }
            Line::AbsentForgotten { unread, wall } => self.driver()?.forget_absent(unread, *wall),
        }
        Ok(())
    }

    /// What the conditions have learned.
    pub fn conditions(&self) -> &C {
        &self.conditions
    }

    /// All that was decided.
    pub fn into_decided(self) -> Vec<Decided> {
        self.decided
    }

    fn driver(&mut self) -> Result<&mut Driver<MemoryStore>, ReplayError> {
        self.driver.as_mut().ok_or(ReplayError::NoBeginning)
    }

    fn begin(&mut self, beginning: &Beginning) -> Result<(), ReplayError> {
        if beginning.version > RECORDING_VERSION {
            return Err(ReplayError::Newer { version: beginning.version });
        }
        let settings = self.conditions.settings(beginning.settings.clone());
        let store = MemoryStore::of(beginning.rows.clone());
        let mut driver = Driver::with_settings(store, &settings).map_err(ReplayError::Rows)?;
        if !beginning.is_start {
            // The agent had been told of every job long before, and judged them.
            driver.end_recovery();
        }
        self.driver = Some(driver);
        (self.planned, self.wake_in) = (Duration::ZERO, Duration::ZERO);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), ReplayError> {
        let mut passed = step.passed;
        // Other settings may be due between two recorded steps. What was cut out of the time was cut out at its end.
        while self.wake_in < self.planned && self.wake_in < passed.listened {
            let (slept, left) = split(passed, self.wake_in.max(STEP_MIN));
            self.planned = self.planned.saturating_sub(slept.listened);
            passed = left;
            self.step_with(Vec::new(), slept)?;
        }
        self.driver()?.store().set_away(step.store_is_away);
        let facts = step.facts.iter().cloned().map(|fact| self.conditions.fact(fact)).collect();
        self.step_with(facts, passed)?;
        self.planned = step.wake_in;
        Ok(())
    }

    fn step_with(&mut self, facts: Vec<Fact>, passed: Passed) -> Result<(), ReplayError> {
        self.listened += passed.listened;
        let Output { orders, entries, wake_in, .. } = self.driver()?.step_again(facts, passed);
        self.wake_in = wake_in;
        let decided = decision::of(&orders, &crate::recording::bodies(&entries), passed.wall, self.listened);
        self.decided.extend(decided);
        Ok(())
    }
}

/// What a recorded step decided then, in the same words as a replay has them.
pub fn decided_then(step: &Step, listened: Duration) -> Vec<Decided> {
    decision::of(&step.orders, &step.entries, step.passed.wall, listened)
}

/// The first part of a time, and what is left of it.
fn split(passed: Passed, first: Duration) -> (Passed, Passed) {
    let first = first.min(passed.listened);
    let left = passed.listened.saturating_sub(first);
    let back = left + passed.gap.unwrap_or_default();
    let back_ms = u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
    let wall = latido_protocol::WallTime::from_millis(passed.wall.as_millis().saturating_sub(back_ms));
    (Passed { listened: first, gap: None, wall }, Passed { listened: left, ..passed })
}

/// The epoch by which a subject's attempt is told apart; what has no attempts has none.
pub(crate) fn epoch_of(kind: SubjectKind, epoch: u64) -> u64 {
    match kind {
        SubjectKind::Job => epoch,
        SubjectKind::Worker | SubjectKind::Check | SubjectKind::Process => 0,
    }
}
