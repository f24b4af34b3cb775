//! How long waits what is tried again.

use core::time::Duration;

use crate::ResumePolicy;

/// A delay is shortened by up to one part in this many, so that jobs that died together do not come back together.
const JITTER_PART: u32 = 5;

/// Delay before a launch that the host refused is ordered again: long enough for a lock to be freed by its holder.
const RELAUNCH_FIRST: Duration = Duration::from_secs(1);

/// No launch that the host refused waits longer.
const RELAUNCH_LONGEST: Duration = Duration::from_secs(60);

/// Answers how long a job waits after so many endings without progress.
pub(crate) fn delay(policy: &ResumePolicy, fruitless: u32, seed: u64) -> Duration {
    let whole = doubled(policy.backoff_first, fruitless.saturating_sub(1), policy.backoff_longest);
    jittered(whole, seed ^ u64::from(fruitless))
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

/// Spreads neighbouring seeds over the upper half of its bits (the finalizer of `SplitMix64`, without its last step, which
/// mends the lower half).
const fn scrambled(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    /// The delay without its jitter, which shortens it by less than a fifth.
    fn near(actual: Duration, whole: u64) -> bool {
        let whole = Duration::from_secs(whole);
        actual <= whole && actual > whole * 4 / 5 - Duration::from_nanos(1)
    }

    #[test]
    fn a_refused_launch_waits_longer_each_time() {
        for (refusals, whole) in [(1, 1), (2, 2), (3, 4), (7, 60), (u32::MAX, 60)] {
            let delay = relaunch_delay(refusals, 7);
            assert!(near(delay, whole), "{delay:?} is not near {whole}s");
        }
    }

    #[test]
    fn launches_that_were_refused_together_are_ordered_again_one_by_one() {
        let delays: BTreeSet<Duration> = (0..32).map(|seed| relaunch_delay(9, seed)).collect();
        assert_eq!(delays.len(), 32);
    }
}
