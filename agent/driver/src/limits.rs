//! The agent's own settings that the policy decides by, with names put in.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_policy::{BlackoutSettings, Event, Limit, Pacing, SlotId, SlotSet};
use latido_protocol::CountLimit;
use latido_store::Store;
use serde::{Deserialize, Serialize};

use crate::{Driver, seconds, translate};

/// What holds for all jobs together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLimits {
    /// so many attempts are started at once that nobody ordered by hand
    pub resumes_at_once: NonZeroU32,
    /// and one more each time so much has passed
    #[serde(rename = "resume_every_s", with = "seconds")]
    pub resume_every: Duration,
    /// share of all that are watched, in percent, that has to fall silent together before the agent doubts itself
    pub blackout_share_percent: u8,
    /// and so many of them at least
    pub blackout_count_min: u32,
    /// slots by name, with how many run at once; a slot that is not named has no limit
    pub slots: BTreeMap<String, CountLimit>,
}

impl<S: Store> Driver<S> {
    /// Tells the policy what holds for all jobs. To be called before jobs are found, and whenever it changes.
    pub fn configure(&mut self, limits: &AgentLimits) {
        let now = self.listening.now();
        let pacing = Pacing { at_once: Limit::At(limits.resumes_at_once), every: limits.resume_every };
        let share_percent = Limit::At(limits.blackout_share_percent);
        let blackout = BlackoutSettings { share_percent, count_min: limits.blackout_count_min };
        self.policy.handle_event(Event::Configured { pacing, blackout }, now);
        for name in self.slots.names() {
            let running_max = limits.slots.get(&name).copied().map_or(Limit::None, translate::count_limit);
            let slot = self.slots.id(&name);
            self.policy.handle_event(Event::SlotConfigured { slot, running_max }, now);
        }
        for (name, running_max) in &limits.slots {
            let (slot, running_max) = (self.slots.id(name), translate::count_limit(*running_max));
            self.policy.handle_event(Event::SlotConfigured { slot, running_max }, now);
        }
    }
}

/// Names of slots on one side, the policy's dense ids on the other: all that a config or a job ever named in this life of
/// the agent. There are as many as people think of, so an id is never given twice.
#[derive(Debug, Default)]
pub(crate) struct SlotBook {
    ids: BTreeMap<String, SlotId>,
}

impl SlotBook {
    /// The id of a slot.
    pub(crate) fn id(&mut self, name: &str) -> SlotId {
        let next = SlotId(u16::try_from(self.ids.len()).unwrap_or(u16::MAX));
        *self.ids.entry(name.to_owned()).or_insert(next)
    }

    /// The slots that a job counts against.
    pub(crate) fn set(&mut self, names: &[String]) -> SlotSet {
        let ids: Vec<SlotId> = names.iter().map(|name| self.id(name)).collect();
        SlotSet::of(&ids)
    }

    fn names(&self) -> Vec<String> {
        self.ids.keys().cloned().collect()
    }
}
