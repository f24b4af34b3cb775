//! What the attempts of a job came to, and what of that decides how it goes on.

use core::time::Duration;

use crate::backoff::delay;
use crate::{Class, Ending, Fingerprint, Limit, ResumePolicy, Spent};

/// Checkpoints that are remembered, so that only a new one counts as progress. A job that goes back further than this
/// many checkpoints is taken to move.
const CHECKPOINTS_MAX: usize = 16;

/// Whoever runs shorter than this died at its start.
const QUICK_DEATH: Duration = Duration::from_secs(1);

/// How many endings in a row made no new checkpoint, as it was known when so many had been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fruitless {
    /// endings that had been told
    pub endings: u32,
    /// those without a new checkpoint, up to the last of them
    pub in_a_row: u32,
}

/// The endings of a job, and what they tell of its progress. Built by telling every ending in its order, which a restart
/// can do again from the job's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// endings ever
    told: u32,
    /// endings since the last resume by hand
    attempts: u32,
    /// those of class `lost` among them
    pickups: u32,
    /// endings in a row without a new checkpoint, the one that had the last new checkpoint counted
    fruitless: u32,
    /// the same without that one
    without_progress: u32,
    /// whether the present attempt made a new checkpoint
    progressed: bool,
    seen: [Option<Fingerprint>; CHECKPOINTS_MAX],
    oldest: usize,
    deaths: u32,
    last_outcome: Option<Fingerprint>,
    /// time of all attempts since the last resume by hand
    ran: Duration,
    /// what all attempts ever used up
    spent: Spent,
    /// what was known before all this was told again
    known: Fruitless,
}

impl History {
    /// A history that begins after so much was used up, by attempts whose endings are not told.
    #[must_use]
    pub fn after(spent: Spent) -> Self {
        Self { spent, ..Self::default() }
    }

    /// Takes note of an ending.
    pub fn attempt_ended(&mut self, ending: &Ending) {
        self.saw(ending.checkpoint);
        let progressed = core::mem::take(&mut self.progressed);
        self.told = self.told.saturating_add(1);
        self.attempts = self.attempts.saturating_add(1);
        self.pickups = self.pickups.saturating_add(u32::from(ending.class == Class::Lost));
        self.fruitless = if progressed { 1 } else { self.fruitless.saturating_add(1) };
        self.without_progress = if progressed { 0 } else { self.without_progress.saturating_add(1) };
        self.recall();
        self.ran = self.ran.saturating_add(ending.ran_for);
        self.spent = self.spent.plus(ending.spent);
        let died = match ending.class {
            // A good end is one too, where the job is to run on; where it is not, nothing follows it.
            Class::Failed | Class::Lost | Class::Limit | Class::Completed => true,
            Class::Stopped => false,
        };
        // What nobody saw is like no other death, however short its last word says that it ran.
        let quick = ending.launch_failed || ending.is_seen && ending.ran_for < QUICK_DEATH;
        self.deaths = match (died && quick && !progressed, self.last_outcome == Some(ending.outcome)) {
            (false, _) => 0,
            (true, true) => self.deaths.saturating_add(1),
            (true, false) => 1,
        };
        self.last_outcome = Some(ending.outcome);
    }

    /// Lets what was known of progress count where its last ending is told again. Files keep the last checkpoint of each attempt
    /// alone, so that one which an earlier attempt had passed looks new in them. Who resumes by hand begins anew.
    pub fn remember(&mut self, known: Fruitless) {
        self.known = known;
        self.recall();
    }

    fn recall(&mut self) {
        if self.told == self.known.endings && self.attempts > 0 {
            self.without_progress = self.without_progress.max(self.known.in_a_row);
            self.fruitless = self.fruitless.max(self.without_progress);
        }
    }

    /// What is known of its endings without progress, to be remembered.
    pub(crate) const fn fruitless_known(&self) -> Fruitless {
        Fruitless { endings: self.told, in_a_row: self.without_progress }
    }

    /// Begins a new series of attempts because somebody asked for another one. What was seen of its checkpoints stays
    /// known, and what was used up stays used up.
    pub fn resumed_by_hand(&mut self) {
        *self = Self { told: self.told, seen: self.seen, oldest: self.oldest, spent: self.spent, ..Self::default() };
    }

    /// Takes note of a checkpoint that was there before the present attempt.
    pub fn learn(&mut self, checkpoint: Option<Fingerprint>) {
        if checkpoint.is_some() && !self.seen.contains(&checkpoint) {
            self.seen[self.oldest] = checkpoint;
            self.oldest = (self.oldest + 1) % CHECKPOINTS_MAX;
        }
    }

    /// Takes `endings` for ended without progress, `pickups` of them lost, where their files tell no more. Answers
    /// whether anything had to be assumed.
    pub(crate) fn assume(&mut self, endings: u32, pickups: u32) -> bool {
        let missing = endings.saturating_sub(self.told);
        if missing == 0 {
            return false;
        }
        self.told = endings;
        self.attempts = self.attempts.saturating_add(missing);
        self.pickups = self.pickups.max(pickups);
        self.fruitless = self.fruitless.saturating_add(missing);
        self.without_progress = self.without_progress.saturating_add(missing);
        true
    }

    /// Takes note of a checkpoint that the present attempt made.
    pub(crate) fn saw(&mut self, checkpoint: Option<Fingerprint>) {
        if checkpoint.is_some() && !self.seen.contains(&checkpoint) {
            self.progressed = true;
            self.learn(checkpoint);
        }
    }

    /// Endings since the last resume by hand.
    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Endings of class `lost` since the last resume by hand.
    pub(crate) const fn pickups(&self) -> u32 {
        self.pickups
    }

    /// Endings in a row without a new checkpoint.
    pub(crate) const fn without_progress(&self) -> u32 {
        self.without_progress
    }

    /// Time of all ended attempts since the last resume by hand.
    pub(crate) const fn ran(&self) -> Duration {
        self.ran
    }

    /// What all ended attempts used up.
    pub(crate) const fn spent(&self) -> Spent {
        self.spent
    }

    /// Answers how many identical quick deaths there were in a row, once they are too many.
    pub(crate) fn identical_deaths(&self, max: Limit<u32>) -> Option<u32> {
        max.reached(self.deaths).map(|_| self.deaths)
    }

    /// Answers how long it waits before the next attempt: doubled for each ending without progress. The same history
    /// waits equally long, so that a restart changes nothing.
    pub(crate) fn delay(&self, policy: &ResumePolicy, seed: u64) -> Duration {
        delay(policy, self.fruitless, seed)
    }
}

#[cfg(test)]
mod tests;
