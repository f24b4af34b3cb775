//! What the policy answers when it is asked about one subject.

use core::fmt;
use core::time::Duration;

use crate::{Attempt, Fruitless, Heard, Moment, Phase, Reason, Spent, SubjectId, Verdict};

/// All that is known of one subject and of what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectView {
    /// which
    pub subject: SubjectId,
    /// its verdict
    pub verdict: Verdict,
    /// why, with the facts of `at`
    pub because: Reason,
    /// since when it has this verdict
    pub since: Moment,
    /// where it is in latido's hands
    pub phase: Phase,
    /// why
    pub phase_because: Reason,
    /// its latest attempt; number 0 before the first
    pub attempt: Attempt,
    /// lost attempts so far
    pub pickups: u32,
    /// how many of its endings in a row made no new checkpoint
    pub fruitless: Fruitless,
    /// listening time since its last own beat, or since its start where there was none; `None` unless it runs and can
    /// be looked at
    pub silence: Option<Duration>,
    /// listening time since its progress last changed, or since its start; `None` as with `silence`
    pub still: Option<Duration>,
    /// listening time since its start; `None` as with `silence`
    pub running: Option<Duration>,
    /// what its supervisor told last of this attempt, and when; `None` unless it runs
    pub heard: Option<(Heard, Moment)>,
    /// what all its attempts used up together, as far as they told
    pub spent: Spent,
    /// its place among those that wait for the same as it does, counted from 1; `None` unless it is queued
    pub place: Option<u32>,
    /// since when its silence counts, where it was silent longer and that does not count: the agent could not hear
    pub baseline: Option<Moment>,
    /// what happens next by itself, and when
    pub next: Option<(NextStep, Moment)>,
    /// the moment of which all this holds: the latest the policy was told
    pub at: Moment,
}

/// What happens next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// It is judged again, and its verdict can change.
    Judge,
    /// Its backoff ends and its strategy is asked.
    AskStrategy,
    /// Its launch is ordered again.
    Launch,
    /// Its pause ends.
    Unpause,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Judge => "it is judged again",
            Self::AskStrategy => "its strategy is asked",
            Self::Launch => "its launch is ordered again",
            Self::Unpause => "its pause ends",
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_comes_next_is_told_in_words() {
        for (step, words) in [
            (NextStep::Judge, "it is judged again"),
            (NextStep::AskStrategy, "its strategy is asked"),
            (NextStep::Launch, "its launch is ordered again"),
            (NextStep::Unpause, "its pause ends"),
        ] {
            assert_eq!(step.to_string(), words);
        }
    }
}
