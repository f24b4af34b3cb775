//! Since when numbers are beyond their bounds: kept in the plugin's memory, so that no restart begins the time anew.

use std::collections::BTreeMap;

use super::bindings::latido::plugin::{log, state};

/// The name of the memory.
const KEY: &str = "since";

/// What is remembered at once. Beyond it nothing more is, and what is beyond a bound then is found at its second look.
const REMEMBERED_MAX: usize = 2000;

/// Moments by bound and subject, in milliseconds since the Unix epoch.
pub(crate) struct Since {
    begun: BTreeMap<String, BTreeMap<String, u64>>,
    is_changed: bool,
}

impl Since {
    /// What was kept; nothing where that cannot be had or read.
    pub(crate) fn load() -> Self {
        let kept = state::get(KEY).ok().flatten();
        let begun = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { begun, is_changed: false }
    }

    /// Since when a subject is beyond a bound: now, unless it was before.
    pub(crate) fn begun(&mut self, bound: &str, subject: &str, now: u64) -> u64 {
        let count: usize = self.begun.values().map(BTreeMap::len).sum();
        let of_bound = self.begun.entry(bound.into()).or_default();
        if let Some(begun) = of_bound.get(subject) {
            return (*begun).min(now); // a clock that was set back has not waited longer
        }
        if count < REMEMBERED_MAX {
            of_bound.insert(subject.into(), now);
            self.is_changed = true;
        }
        now
    }

    /// A subject is not beyond a bound.
    pub(crate) fn forget(&mut self, bound: &str, subject: &str) {
        if let Some(of_bound) = self.begun.get_mut(bound) {
            self.is_changed |= of_bound.remove(subject).is_some();
        }
    }

    /// Keeps what has changed. A memory that fails costs a restart the time that has passed, and nothing else.
    pub(crate) fn keep(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let bytes = serde_json::to_vec(&self.begun).unwrap_or_default();
        if let Err(error) = state::set(KEY, Some(&bytes)) {
            log::write(log::Level::Warning, &format!("cannot keep since when bounds are passed: {error:?}"));
        }
    }
}
