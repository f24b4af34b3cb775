//! What a sweep weighs of one job before anybody is ended for silence.
//!
//! A job that fell silent is shown so at once. It is ended only by a sweep that has seen the silence of all others too, so
//! that whatever makes many silent together, at a start of the agent or later, is taken for the agent's own fault first.

use crate::blackout::TOGETHER_FOR;
use crate::job::Job;
use crate::state::{Running, State};
use crate::verdict::{is_about_to_fall_silent, silent_because};
use crate::{Facts, Moment};

impl Job {
    /// Whether its silence, by what counts against it, has cost it its lease. While it is paused it does not.
    pub(crate) fn is_silent(&self, counted: &Facts) -> bool {
        let lives = self.state.running().is_some() && self.pause.is_none();
        lives && silent_because(&self.settings.lease, counted).is_some()
    }

    /// Whether it is silent, and no sweep has weighed that yet.
    pub(crate) fn awaits_sweep(&self, counted: &Facts) -> bool {
        !self.is_weighed && matches!(self.state, State::Running(_)) && self.is_silent(counted)
    }

    /// Whether it has missed beats, and falls silent within an interval unless it is heard.
    pub(crate) fn is_about_to_fall_silent(&self, now: Moment) -> bool {
        let (lease, lives) = (&self.settings.lease, self.state.running().is_some() && self.pause.is_none());
        let facts = self.counted_facts(now);
        lives && is_about_to_fall_silent(lease, &facts, lease.interval.min(TOGETHER_FOR))
    }

    /// When it was last heard; `None` unless it runs.
    pub(crate) fn last_heard_at(&self) -> Option<Moment> {
        self.state.running().map(Running::last_heard_at)
    }
}
