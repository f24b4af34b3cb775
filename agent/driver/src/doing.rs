//! What an attempt is seen doing from outside, beside what its supervisor tells.

use std::time::Duration;

use latido_policy::{Event, Moment, Verdict};
use latido_store::Store;

use crate::Driver;
use crate::book::Latest;
use crate::fact::AttemptName;

/// Characters of what a process does that are kept: a sentence. Whoever looks at processes may tell anything.
const DOING_MAX: usize = 200;

impl<S: Store> Driver<S> {
    /// Takes in one look. Nothing is written down for it: looks come every few seconds, and what follows from one is.
    pub(crate) fn activity_seen(&mut self, attempt: &AttemptName, idle: Duration, doing: Option<String>, now: Moment) {
        let Some(id) = self.book.id(&attempt.job) else { return };
        let Some(latest) = self.book.latest_mut(id) else { return };
        // A look may be told after the attempt is over.
        if latest.end.is_some() || latest.attempt().as_ref() != Some(attempt) {
            return;
        }
        latest.doing = doing.map(|doing| doing.chars().take(DOING_MAX).collect());
        self.policy.handle_event(Event::ActivitySeen { subject: id, attempt: attempt.to_policy(), idle }, now);
    }
}

/// A reason with what the first process does, where the verdict makes that worth knowing.
pub(crate) fn with_doing(reason: String, verdict: Verdict, latest: &Latest) -> String {
    let is_quiet = matches!(verdict, Verdict::Hung | Verdict::Stale | Verdict::Missing);
    match latest.doing.as_ref().filter(|_| is_quiet) {
        Some(doing) => format!("{reason}; {doing}"),
        None => reason,
    }
}
