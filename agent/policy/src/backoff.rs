//! How long a job waits before its next attempt, and what of its past decides that.

use core::time::Duration;

use crate::{Class, Ending, Fingerprint, ResumePolicy};

/// Checkpoints that are remembered, so that only a new one counts as progress. A job that goes back further than this
/// many checkpoints is taken to move.
const CHECKPOINTS_MAX: usize = 16;

/// A delay is shortened by up to one part in this many, so that jobs that died together do not come back together.
const JITTER_PART: u32 = 5;

/// Whoever runs shorter than this died at its start.
const QUICK_DEATH: Duration = Duration::from_secs(1);

/// So many identical quick deaths in a row are a sure failure.
const IDENTICAL_DEATHS_MAX: u32 = 3;

/// Delay before a launch that the host refused is ordered again: long enough for a lock to be freed by its holder.
const RELAUNCH_FIRST: Duration = Duration::from_secs(1);

/// No launch that the host refused waits longer.
const RELAUNCH_LONGEST: Duration = Duration::from_secs(60);

/// Endings without progress, and what tells progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct History {
    /// endings in a row without a new checkpoint, the one that had the last new checkpoint counted
    fruitless: u32,
    /// whether the present attempt made a new checkpoint
    progressed: bool,
    seen: [Option<Fingerprint>; CHECKPOINTS_MAX],
    oldest: usize,
    deaths: u32,
    last_death: Option<Fingerprint>,
}

impl History {
    /// A history in which `endings` attempts ended without progress, since nothing else is known of them.
    pub(crate) const fn new(endings: u32) -> Self {
        Self {
            fruitless: endings,
            progressed: false,
            seen: [None; CHECKPOINTS_MAX],
            oldest: 0,
            deaths: 0,
            last_death: None,
        }
    }

    /// Takes note of a checkpoint of an attempt that was found: whether it is new cannot be told.
    pub(crate) fn learn(&mut self, checkpoint: Option<Fingerprint>) {
        if checkpoint.is_some() && !self.seen.contains(&checkpoint) {
            self.seen[self.oldest] = checkpoint;
            self.oldest = (self.oldest + 1) % CHECKPOINTS_MAX;
        }
    }

    /// Takes note of a checkpoint that the present attempt made.
    pub(crate) fn saw(&mut self, checkpoint: Option<Fingerprint>) {
        if checkpoint.is_some() && !self.seen.contains(&checkpoint) {
            self.progressed = true;
            self.learn(checkpoint);
        }
    }

    /// Takes note of an ending.
    pub(crate) fn ended(&mut self, ending: &Ending) {
        self.saw(ending.checkpoint);
        let progressed = core::mem::take(&mut self.progressed);
        self.fruitless = if progressed { 1 } else { self.fruitless.saturating_add(1) };
        let died = match ending.class {
            Class::Failed | Class::Lost | Class::Limit => true,
            Class::Completed | Class::Stopped => false,
        };
        let quick = ending.launch_failed || ending.ran_for < QUICK_DEATH;
        self.deaths = match (died && quick && !progressed, self.last_death == Some(ending.outcome)) {
            (false, _) => 0,
            (true, true) => self.deaths.saturating_add(1),
            (true, false) => 1,
        };
        self.last_death = (self.deaths > 0).then_some(ending.outcome);
    }

    /// Answers how many identical quick deaths there were in a row, once they are too many.
    pub(crate) fn identical_deaths(&self) -> Option<u32> {
        (self.deaths >= IDENTICAL_DEATHS_MAX).then_some(self.deaths)
    }

    /// Begins anew after a resume by hand; what was seen of its checkpoints stays known.
    pub(crate) fn start_over(&mut self) {
        self.fruitless = 0;
        self.deaths = 0;
        self.last_death = None;
    }

    /// Answers how long it waits before the next attempt: doubled for each ending without progress.
    pub(crate) fn delay(&self, policy: &ResumePolicy, seed: u64) -> Duration {
        let whole = doubled(policy.backoff_first, self.fruitless.saturating_sub(1), policy.backoff_longest);
        jittered(whole, seed ^ u64::from(self.fruitless))
    }
}

/// Answers how long a launch waits that was refused so many times in a row.
pub(crate) fn relaunch_delay(refusals: u32, seed: u64) -> Duration {
    let whole = doubled(RELAUNCH_FIRST, refusals.saturating_sub(1), RELAUNCH_LONGEST);
    jittered(whole, seed ^ u64::from(refusals))
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    let factor = 2_u32.saturating_pow(times);
    first.saturating_mul(factor).min(longest)
}

/// Shortens a delay by a share that the seed chooses.
fn jittered(whole: Duration, seed: u64) -> Duration {
    let share = u32::try_from(scrambled(seed) >> 48).unwrap_or(0);
    let most = whole / JITTER_PART;
    whole.saturating_sub((most / (1 << 16)).saturating_mul(share))
}

/// Spreads neighbouring seeds (the finalizer of `SplitMix64`).
const fn scrambled(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;
    use crate::ResumeOn;

    fn policy(first: u64, longest: u64) -> ResumePolicy {
        ResumePolicy {
            on: ResumeOn::default(),
            max_attempts: NonZeroU32::MAX,
            max_pickups: u32::MAX,
            backoff_first: Duration::from_secs(first),
            backoff_longest: Duration::from_secs(longest),
        }
    }

    fn death(outcome: u64, checkpoint: Option<u64>, ran_for: Duration) -> Ending {
        Ending {
            class: Class::Failed,
            outcome: Fingerprint(outcome),
            checkpoint: checkpoint.map(Fingerprint),
            launch_failed: false,
            ran_for,
        }
    }

    /// The delay without its jitter, which shortens it by less than a fifth.
    fn near(actual: Duration, whole: u64) -> bool {
        let whole = Duration::from_secs(whole);
        actual <= whole && actual > whole * 4 / 5 - Duration::from_nanos(1)
    }

    #[test]
    fn the_delay_doubles_up_to_the_longest() {
        let mut history = History::new(0);
        for whole in [5, 10, 20, 40, 60, 60, 60] {
            history.ended(&death(1, None, Duration::from_secs(9)));
            let delay = history.delay(&policy(5, 60), 7);
            assert!(near(delay, whole), "{delay:?} is not near {whole}s");
        }
    }

    #[test]
    fn a_new_best_checkpoint_resets_the_delay() {
        let mut history = History::new(0);
        for (checkpoint, whole) in [(Some(1), 5), (Some(1), 10), (None, 20), (Some(2), 5), (Some(1), 10), (Some(2), 20)]
        {
            history.ended(&death(1, checkpoint, Duration::from_secs(9)));
            let delay = history.delay(&policy(5, 600), 7);
            assert!(near(delay, whole), "{delay:?} is not near {whole}s at {checkpoint:?}");
        }
    }

    #[test]
    fn a_checkpoint_made_and_left_again_counts_for_its_attempt() {
        let mut history = History::new(3);
        history.saw(Some(Fingerprint(1)));
        history.saw(Some(Fingerprint(2)));
        history.ended(&death(1, Some(1), Duration::from_secs(9)));
        assert!(near(history.delay(&policy(5, 600), 7), 5));
    }

    #[test]
    fn a_checkpoint_that_was_found_is_not_new() {
        let mut history = History::new(2);
        history.learn(Some(Fingerprint(1)));
        history.ended(&death(1, Some(1), Duration::from_secs(9)));
        assert!(near(history.delay(&policy(5, 600), 7), 20));
    }

    #[test]
    fn no_backoff_means_no_delay() {
        let mut history = History::new(40);
        history.ended(&death(1, None, Duration::ZERO));
        assert_eq!(history.delay(&policy(0, 60), 7), Duration::ZERO);
    }

    #[test]
    fn the_seed_spreads_the_delays_and_repeats_them() {
        let mut history = History::new(0);
        history.ended(&death(1, None, Duration::ZERO));
        let delays: Vec<_> = (0..100).map(|seed| history.delay(&policy(100, 100), seed)).collect();
        assert_eq!(delays, (0..100).map(|seed| history.delay(&policy(100, 100), seed)).collect::<Vec<_>>());
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(*most - *least > Duration::from_secs(15), "{least:?}..{most:?}");
    }

    #[test]
    fn a_delay_without_end_does_not_overflow() {
        let mut history = History::new(u32::MAX);
        history.ended(&death(1, None, Duration::ZERO));
        let mut policy = policy(1, 1);
        policy.backoff_first = Duration::MAX;
        policy.backoff_longest = Duration::MAX;
        assert!(history.delay(&policy, 7) > Duration::MAX / 2);
    }

    #[test]
    fn three_identical_quick_deaths_are_too_many() {
        let quick = Duration::from_millis(999);
        let mut history = History::new(0);
        history.ended(&death(1, None, quick));
        history.ended(&death(1, None, quick));
        assert_eq!(history.identical_deaths(), None);
        history.ended(&death(1, None, quick));
        assert_eq!(history.identical_deaths(), Some(3));
    }

    #[test]
    fn another_death_a_longer_life_or_progress_breaks_the_row() {
        let quick = Duration::from_millis(10);
        for other in [death(2, None, quick), death(1, None, Duration::from_secs(1)), death(1, Some(1), quick)] {
            let mut history = History::new(0);
            for ending in [death(1, None, quick), death(1, None, quick), other, death(1, None, quick)] {
                history.ended(&ending);
                assert_eq!(history.identical_deaths(), None, "after {other:?}");
            }
        }
    }

    #[test]
    fn a_resume_by_hand_starts_over_and_remembers_checkpoints() {
        let mut history = History::new(0);
        for _ in 0..3 {
            history.ended(&death(1, Some(1), Duration::ZERO));
        }
        history.start_over();
        history.ended(&death(1, Some(1), Duration::ZERO));
        assert_eq!(history.identical_deaths(), None);
        history.ended(&death(1, Some(1), Duration::ZERO));
        assert!(near(history.delay(&policy(5, 600), 7), 10));
    }

    #[test]
    fn a_refused_launch_waits_longer_each_time() {
        for (refusals, whole) in [(1, 1), (2, 2), (3, 4), (7, 60), (u32::MAX, 60)] {
            let delay = relaunch_delay(refusals, 7);
            assert!(near(delay, whole), "{delay:?} is not near {whole}s");
        }
    }
}
