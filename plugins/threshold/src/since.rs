//! Since when numbers are beyond their bounds: kept in the plugin's memory, so that no restart begins the time anew.

use std::collections::BTreeMap;

use super::bindings::latido::plugin::{log, state};

/// The name of the memory.
const KEY: &str = "since";

/// What is remembered at once; the state of a plugin holds no more. Beyond it what begins is told of in the log and not found.
const REMEMBERED_MAX: usize = 1500;

/// Who was not looked at for so long is gone, in milliseconds: everybody is looked at once a minute.
const GONE_AFTER_MS: u64 = 600_000;

/// Moments by bound and subject, in milliseconds since the Unix epoch.
pub(crate) struct Since {
    begun: BTreeMap<String, BTreeMap<String, u64>>,
    /// when each was looked at last; nothing of it is kept
    looked: BTreeMap<(String, String), u64>,
    /// when anybody was looked at last
    called: u64,
    is_changed: bool,
    is_full: bool,
}

impl Since {
    /// What was kept; nothing where that cannot be had or read.
    pub(crate) fn load() -> Self {
        let kept = state::get(KEY).ok().flatten();
        let begun = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { begun, looked: BTreeMap::new(), called: 0, is_changed: false, is_full: false }
    }

    /// Since when a subject is beyond a bound: now, unless it was before.
    pub(crate) fn begun(&mut self, bound: &str, subject: &str, now: u64) -> u64 {
        if let Some(begun) = self.begun.get(bound).and_then(|of_bound| of_bound.get(subject)) {
            self.looked.insert((bound.into(), subject.into()), now);
            return (*begun).min(now); // a clock that was set back has not waited longer
        }
        let count: usize = self.begun.values().map(BTreeMap::len).sum();
        if count < REMEMBERED_MAX {
            self.begun.entry(bound.into()).or_default().insert(subject.into(), now);
            self.looked.insert((bound.into(), subject.into()), now);
            self.is_changed = true;
        } else if !std::mem::replace(&mut self.is_full, true) {
            let text = format!("{count} subjects are beyond a bound: what begins beside them is not found");
            log::write(log::Level::Error, &text);
        }
        now
    }

    /// Forgets who is looked at no more: it was removed. Where nobody was looked at for as long, nobody is gone for that.
    pub(crate) fn forget_gone(&mut self, now: u64) {
        let looked = &mut self.looked;
        if now.saturating_sub(std::mem::replace(&mut self.called, now)) >= GONE_AFTER_MS {
            looked.clear();
        }
        for (bound, of_bound) in &mut self.begun {
            of_bound.retain(|subject, _| {
                // What was found without a look has its time from this one on.
                let last = *looked.entry((bound.clone(), subject.clone())).or_insert(now);
                let stays = now.saturating_sub(last) < GONE_AFTER_MS;
                self.is_changed |= !stays;
                stays
            });
        }
        let begun = &self.begun;
        self.looked
            .retain(|(bound, subject), _| begun.get(bound).is_some_and(|of_bound| of_bound.contains_key(subject)));
        self.is_full &= self.begun.values().map(BTreeMap::len).sum::<usize>() >= REMEMBERED_MAX;
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
