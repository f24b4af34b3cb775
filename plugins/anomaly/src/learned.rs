//! What was learnt of each subject: how long it is silent at most when it is looked at.

use std::collections::BTreeMap;

use super::bindings::latido::plugin::{log, state};
use super::settings::Settings;

/// The name of the memory.
const KEY: &str = "learned";

/// Subjects that are remembered; the state of a plugin holds no more. Beyond it the rule learns of nobody more.
const SUBJECTS_MAX: usize = 1500;

/// Who was not looked at for so long makes room for others, in milliseconds: who is expected to beat is looked at once a
/// minute, and work of a week's end comes again.
const GONE_AFTER_MS: u64 = 10 * 86_400_000;

/// What stays of the longest silence from one look to the next: after about 200 looks half of it is forgotten, so that a
/// subject that beats more often than it did is known as that.
const FORGETS: f64 = 0.9966;

/// By how much the usual silence grows with each look at an unusual one, so that a new habit is learnt in time.
const LEARNS: f64 = 1.1;

/// Looks between two times that all is kept: a restart forgets at most these.
const KEEP_EVERY: u32 = 500;

/// What is known of one subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    /// the longest silence that is usual, in milliseconds, never 0
    pub(crate) usual_ms: u64,
    /// how often it was looked at
    pub(crate) looks: u64,
    /// when it was looked at last
    looked: u64,
}

/// What is known of all subjects.
pub(crate) struct Learned {
    subjects: BTreeMap<String, Known>,
    unkept: u32,
}

impl Learned {
    /// What was kept; nothing where that cannot be had or read.
    pub(crate) fn load() -> Self {
        let kept = state::get(KEY).ok().flatten();
        let lists: BTreeMap<String, [u64; 3]> =
            kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let known = |(name, [usual_ms, looks, looked]): (String, [u64; 3])| (name, Known { usual_ms, looks, looked });
        Self { subjects: lists.into_iter().map(known).collect(), unkept: 0 }
    }

    /// Learns from a look, and returns what was known before where this silence is unusual.
    pub(crate) fn look(&mut self, name: &str, now: u64, silence: u64, settings: &Settings) -> Option<Known> {
        if self.subjects.len() >= SUBJECTS_MAX && !self.subjects.contains_key(name) {
            self.subjects.retain(|_, known| now.saturating_sub(known.looked) < GONE_AFTER_MS);
            if self.subjects.len() >= SUBJECTS_MAX {
                return None;
            }
        }
        let fresh = Known { usual_ms: silence.max(1), looks: 0, looked: now };
        // Another attempt of the same work has the same habits.
        let known = self.subjects.entry(name.into()).or_insert(fresh);
        known.looked = now;
        let before = *known;
        let usual = before.usual_ms as f64;
        let is_unusual = before.looks >= settings.looks_min
            && silence >= settings.least_ms
            && silence as f64 > usual * settings.factor;
        known.usual_ms =
            if is_unusual { usual * LEARNS } else { (usual * FORGETS).max(silence as f64) }.max(1.0) as u64;
        known.looks += 1;
        self.unkept += 1;
        is_unusual.then_some(before)
    }

    /// Keeps what was learnt, now and then.
    pub(crate) fn keep(&mut self) {
        if self.unkept < KEEP_EVERY {
            return;
        }
        self.unkept = 0;
        let lists: BTreeMap<&str, [u64; 3]> = self
            .subjects
            .iter()
            .map(|(name, known)| (name.as_str(), [known.usual_ms, known.looks, known.looked]))
            .collect();
        let bytes = serde_json::to_vec(&lists).unwrap_or_default();
        if let Err(error) = state::set(KEY, Some(&bytes)) {
            log::write(log::Level::Warning, &format!("cannot keep what was learnt: {error:?}"));
        }
    }
}
