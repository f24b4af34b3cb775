//! What is kept quiet, and until when.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{About, AlertKey, Moment, Silence, SilenceEnd, SilenceId};

/// No silence is longer, also one that waits until its alert is resolved: what nobody ends is heard of again.
pub(crate) const SILENCE_LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Silences at the same time. One more is refused: whoever needs so many silences a rule.
pub(crate) const SILENCES_MAX: usize = 1000;

/// All silences that hold.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    all: BTreeMap<SilenceId, Silence>,
}

impl Silences {
    /// Begins a silence, or changes the one of its number. Answers it with its true end.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn begin(&mut self, silence: Silence, now: Moment) -> Result<Silence, SilenceEnd> {
        if self.all.len() >= SILENCES_MAX && !self.all.contains_key(&silence.id) {
            return Err(SilenceEnd::TooMany);
        }
        let silence = Silence { until: silence.until.min(now.after(SILENCE_LONGEST)), ..silence };
        self.all.insert(silence.id, silence);
        Ok(silence)
    }

    /// Ends a silence; answers whether there was one.
    pub(crate) fn end(&mut self, silence: SilenceId) -> bool {
        self.all.remove(&silence).is_some()
    }

    /// The first silence that covers an alert.
    pub(crate) fn covering(&self, alert: AlertKey) -> Option<SilenceId> {
        self.all.values().find(|silence| silence.scope.covers(alert)).map(|silence| silence.id)
    }

    /// The first end.
    pub(crate) fn first_end(&self) -> Option<Moment> {
        self.all.values().map(|silence| silence.until).min()
    }

    /// Takes out what ends now.
    pub(crate) fn take_expired(&mut self, now: Moment) -> Vec<SilenceId> {
        self.all.extract_if(.., |_, silence| silence.until <= now).map(|(id, _)| id).collect()
    }

    /// Takes out what waited for an alert that is over; `holds` answers whether another one that it covers is not.
    pub(crate) fn take_resolved(&mut self, alert: AlertKey, holds: impl Fn(&Silence) -> bool) -> Vec<SilenceId> {
        let is_over = |silence: &Silence| silence.until_resolved && silence.scope.covers(alert) && !holds(silence);
        self.all.extract_if(.., |_, silence| is_over(silence)).map(|(id, _)| id).collect()
    }

    /// Takes out what is about somebody who is watched no longer.
    pub(crate) fn take_removed(&mut self, about: About) -> Vec<SilenceId> {
        self.all.extract_if(.., |_, silence| silence.scope.about() == Some(about)).map(|(id, _)| id).collect()
    }

    /// All that hold, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Silence> {
        self.all.values()
    }
}
