//! When the observer may be at fault: what it did not hear then counts against nobody.

use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::{Limit, Moment};

/// A gap at least this long is a new beginning for everybody: whoever was to be heard meanwhile has to have the time to
/// be heard again. A shorter one is cut out of the time line and changes nothing else, so that a busy host, whose passes
/// are late by a second now and then, never puts off a verdict for good.
const GAP_MIN: Duration = Duration::from_secs(10);

/// Subjects that fell silent together turn stale within one interval of one another, and this is the usual one. So long
/// are they counted together, and so far ahead is looked for others before the first of them is believed.
pub(crate) const TOGETHER_FOR: Duration = Duration::from_secs(30);

/// A blackout that shows no other sign for this long is over.
const CALM_AFTER: Duration = Duration::from_secs(60);

/// When so many turn stale together that the agent doubts itself first. Both bounds have to be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlackoutSettings {
    /// share of all that are watched, in percent
    pub share_percent: Limit<u8>,
    /// subjects
    pub count_min: u32,
}

/// Why the agent does not trust what it did not hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackoutCause {
    /// Many fell silent together.
    MassStaleness {
        /// how many
        stale: u32,
        /// of how many that are watched
        watched: u32,
    },
    /// The store did not take what was recorded.
    StoreFailed,
}

/// What changed about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlackoutChange {
    /// It begins: an alert about the agent itself.
    Began(BlackoutCause),
    /// Nothing more was seen of it for a while.
    Ended,
}

/// Who is heard in one way. Each is doubted by itself: that many of the others are heard says nothing of this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Voices {
    /// Jobs, through their supervisors.
    Jobs,
    /// Workers, by what they ask.
    Workers,
}

/// How many turned stale since when.
#[derive(Clone, Copy, Debug, Default)]
struct Together {
    count: u32,
    since: Moment,
}

/// How many turn stale in a sweep, and how many are about to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Silent {
    /// who turns stale, of those that were heard since the baseline; each once, however often it turns and turns back
    pub(crate) fresh: u32,
    /// who has missed beats as well, and turns stale within an interval unless it is heard. Nobody has to wait until they
    /// have: a mass is known by its first.
    pub(crate) ahead: u32,
}

/// Guards every verdict that is drawn from silence, whatever the kind of subject. Silence counts from
/// [`baseline`](Self::baseline) on at the earliest; who asks it for that, and asks [`believes`](Self::believes) before a
/// sweep acts, is guarded.
#[derive(Debug)]
pub(crate) struct Blackout {
    settings: BlackoutSettings,
    baseline: Moment,
    store_failed: bool,
    /// fires until then; `None` while nothing is the matter, and without an end while the store is away
    calm_at: Option<Moment>,
    together: BTreeMap<Voices, Together>,
    change: Option<BlackoutChange>,
}

impl Default for Blackout {
    fn default() -> Self {
        Self {
            settings: BlackoutSettings::default(),
            baseline: Moment::ORIGIN,
            store_failed: false,
            calm_at: None,
            together: BTreeMap::new(),
            change: None,
        }
    }
}

impl Blackout {
    /// Changes when it doubts.
    pub(crate) fn set(&mut self, settings: BlackoutSettings) {
        self.settings = settings;
    }

    /// No silence from before this moment counts. While the store is away that is the present: nobody grows silent.
    pub(crate) fn baseline(&self, now: Moment) -> Moment {
        if self.store_failed { now } else { self.baseline }
    }

    /// Answers whether somebody that was last heard at `heard_at` would turn stale for the first time since the baseline.
    /// Who has been silent ever since had a second chance, and is believed.
    pub(crate) fn is_fresh(&self, heard_at: Moment) -> bool {
        heard_at >= self.baseline
    }

    /// No silence from before this moment counts either, as the agent before this one knew.
    pub(crate) fn remember(&mut self, baseline: Moment) {
        self.baseline = self.baseline.max(baseline);
    }

    /// Answers whether a sweep may act in which so many fall silent of `watched`. If not, a new baseline holds.
    pub(crate) fn believes(&mut self, voices: Voices, silent: Silent, watched: u32, now: Moment) -> bool {
        let is_mass = self.is_mass(voices, silent, watched, now);
        let together = self.together(voices, now);
        together.count = together.count.saturating_add(silent.fresh);
        if !is_mass {
            return true;
        }
        let stale = together.count.saturating_add(silent.ahead);
        *together = Together { count: 0, since: now };
        self.baseline = now;
        self.begin(BlackoutCause::MassStaleness { stale, watched }, now);
        false
    }

    /// The same where it takes time to count those who are about to follow: that is done only where the most of them, which
    /// `most` has, would be too many to be believed.
    pub(crate) fn weigh(
        &mut self,
        voices: Voices,
        most: Silent,
        watched: u32,
        now: Moment,
        count_ahead: impl FnOnce() -> u32,
    ) -> bool {
        let ahead = if self.is_mass(voices, most, watched, now) { count_ahead() } else { 0 };
        self.believes(voices, Silent { ahead, ..most }, watched, now)
    }

    /// Answers whether so many of `watched` are too many to be believed, with those that are counted together with them.
    fn is_mass(&mut self, voices: Voices, silent: Silent, watched: u32, now: Moment) -> bool {
        let Silent { fresh, ahead } = silent;
        let stale = self.together(voices, now).count.saturating_add(fresh).saturating_add(ahead);
        let BlackoutSettings { share_percent, count_min } = self.settings;
        let Limit::At(share) = share_percent else { return false };
        let is_share = u64::from(stale) * 100 >= u64::from(share) * u64::from(watched);
        fresh > 0 && stale >= count_min.max(1) && is_share
    }

    /// Since when those are counted together that turn stale in a sweep at `now`. Who was counted since is counted already.
    pub(crate) fn counts_since(&mut self, voices: Voices, now: Moment) -> Moment {
        self.together(voices, now).since
    }

    fn together(&mut self, voices: Voices, now: Moment) -> &mut Together {
        let together = self.together.entry(voices).or_default();
        if now.since(together.since) >= TOGETHER_FOR {
            *together = Together { count: 0, since: now };
        }
        together
    }

    /// The agent could not hear for `length`.
    pub(crate) fn handle_gap(&mut self, length: Duration, now: Moment) {
        if length >= GAP_MIN {
            self.baseline = now;
        }
    }

    /// The store did not take what was recorded, or takes it again.
    pub(crate) fn handle_store(&mut self, failed: bool, now: Moment) {
        if failed && !self.store_failed {
            self.begin(BlackoutCause::StoreFailed, now);
        } else if !failed && self.store_failed {
            self.baseline = now;
            self.calm_at = Some(now.after(CALM_AFTER));
        }
        self.store_failed = failed;
    }

    /// When it may be over.
    pub(crate) fn poll_timeout(&self) -> Option<Moment> {
        self.calm_at.filter(|_| !self.store_failed)
    }

    /// Ends it, if it is over.
    pub(crate) fn handle_timeout(&mut self, now: Moment) {
        if self.poll_timeout().is_some_and(|calm_at| calm_at <= now) {
            self.calm_at = None;
            self.change = Some(BlackoutChange::Ended);
        }
    }

    /// Takes out what changed.
    pub(crate) fn poll_change(&mut self) -> Option<BlackoutChange> {
        self.change.take()
    }

    /// One alert stands for all signs that come before it is over.
    fn begin(&mut self, cause: BlackoutCause, now: Moment) {
        if self.calm_at.replace(now.after(CALM_AFTER)).is_none() {
            self.change = Some(BlackoutChange::Began(cause));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCHED: u32 = 10;

    fn at(seconds: u64) -> Moment {
        Moment::ORIGIN.after(Duration::from_secs(seconds))
    }

    fn fresh(fresh: u32) -> Silent {
        Silent { fresh, ahead: 0 }
    }

    fn guard() -> Blackout {
        let mut guard = Blackout::default();
        guard.set(BlackoutSettings { share_percent: Limit::At(50), count_min: 3 });
        guard
    }

    #[test]
    fn it_doubts_only_when_both_bounds_are_reached() {
        for (stale, watched, believed) in [(2, 2, true), (3, 6, false), (3, 7, true), (4, 7, false)] {
            assert_eq!(
                guard().believes(Voices::Jobs, fresh(stale), watched, at(1000)),
                believed,
                "{stale} of {watched}"
            );
        }
        assert!(Blackout::default().believes(Voices::Jobs, fresh(900), 900, at(1000)), "not asked for");
    }

    #[test]
    fn those_that_turn_stale_within_one_interval_are_counted_together() {
        let mut close = guard();
        assert!((0..4).all(|step| close.believes(Voices::Jobs, fresh(1), WATCHED, at(1000 + 7 * step))));
        assert!(!close.believes(Voices::Jobs, fresh(1), WATCHED, at(1028)));
        let mut apart = guard();
        assert!((0..40).all(|step| apart.believes(Voices::Jobs, fresh(1), WATCHED, at(1000 + 8 * step))));
    }

    #[test]
    fn the_first_of_many_is_doubted_where_the_others_are_about_to_follow() {
        let silent = Silent { fresh: 1, ahead: 4 };
        assert!(!guard().believes(Voices::Jobs, silent, WATCHED, at(1000)));
        let mut guard = guard();
        let few = Silent { ahead: 3, ..silent };
        assert!((0..3).all(|step| guard.believes(Voices::Jobs, Silent { fresh: 0, ..few }, WATCHED, at(1000 + step))));
        assert!(guard.believes(Voices::Jobs, few, WATCHED, at(1003)), "who is about to follow is not counted twice");
    }

    #[test]
    fn each_way_of_hearing_is_doubted_by_itself() {
        let mut guard = guard();
        assert!(guard.believes(Voices::Jobs, fresh(2), 4, at(1000)));
        assert!(guard.believes(Voices::Workers, fresh(2), 4, at(1000)), "two of each are not four of one");
        assert!(!guard.believes(Voices::Workers, fresh(1), 4, at(1001)));
    }

    #[test]
    fn it_begins_once_and_ends_when_it_is_calm() {
        let mut guard = guard();
        assert!(!guard.believes(Voices::Jobs, fresh(WATCHED), WATCHED, at(1000)));
        let cause = BlackoutCause::MassStaleness { stale: WATCHED, watched: WATCHED };
        assert_eq!(guard.poll_change(), Some(BlackoutChange::Began(cause)));
        guard.handle_store(true, at(1001));
        assert_eq!((guard.poll_change(), guard.poll_timeout()), (None, None), "no end while the store is away");
        guard.handle_store(false, at(1500));
        guard.handle_timeout(at(1559));
        assert_eq!(guard.poll_change(), None);
        guard.handle_timeout(at(1560));
        assert_eq!((guard.poll_change(), guard.poll_timeout()), (Some(BlackoutChange::Ended), None));
    }

    #[test]
    fn silence_counts_from_the_end_of_what_could_not_be_heard() {
        let mut guard = guard();
        guard.handle_gap(Duration::from_secs(9), at(1000));
        assert_eq!(guard.baseline(at(1005)), Moment::ORIGIN, "a short gap is no new beginning");
        guard.handle_gap(Duration::from_secs(10), at(2000));
        assert_eq!(guard.baseline(at(2005)), at(2000));
        guard.handle_store(true, at(3000));
        assert_eq!(guard.baseline(at(3500)), at(3500));
        guard.handle_store(false, at(4000));
        assert_eq!(guard.baseline(at(4005)), at(4000));
        assert!(!guard.is_fresh(at(3999)) && guard.is_fresh(at(4000)));
    }
}
