//! Mass events: many subjects of which one rule says the same are told as one.

use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use crate::{About, AlertKey, Condition, Moment, RuleName};

/// What the members of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    pub(crate) rule: RuleName,
    pub(crate) condition: Condition,
}

impl Class {
    pub(crate) fn of(alert: AlertKey) -> Self {
        Self { rule: alert.rule, condition: alert.condition }
    }

    /// The alert that stands for all of them.
    pub(crate) fn alert(self) -> AlertKey {
        AlertKey { rule: self.rule, about: About::Group, condition: self.condition }
    }
}

/// One mass event.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// of whom it holds
    members: BTreeSet<About>,
    /// of how many it was told
    pub(crate) told: u32,
    /// of whom it held when it was told last: who goes and comes again is nobody else
    known: BTreeSet<About>,
    /// who else has come since, whether it still has it or not
    joined: BTreeSet<About>,
    /// when it was told last
    told_at: Option<Moment>,
}

impl Group {
    /// Remembers what people know.
    pub(crate) fn tell(&mut self, now: Moment) {
        self.restore(self.count(), now);
        self.known.clone_from(&self.members);
        self.joined.clear();
    }

    /// Puts back what people knew before the agent's start.
    pub(crate) fn restore(&mut self, told: u32, told_at: Moment) {
        (self.told, self.told_at) = (told, Some(told_at));
    }

    /// Of how many it holds; where it has ended of all before anybody was told, of how many it did.
    pub(crate) fn count(&self) -> u32 {
        let those = if self.members.is_empty() { &self.joined } else { &self.members };
        u32::try_from(those.len()).unwrap_or(u32::MAX)
    }

    /// When it may be told that it holds of others as well; `None` if it does not.
    pub(crate) fn grew_at(&self, group_every: Duration) -> Option<Moment> {
        let grew = self.joined.iter().any(|about| self.members.contains(about));
        self.told_at.filter(|_| grew).map(|told_at| told_at.after(group_every))
    }

    /// Nobody has it any longer.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// All mass events that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    all: BTreeMap<Class, Group>,
}

impl Groups {
    pub(crate) fn of(&mut self, class: Class) -> &mut Group {
        self.all.entry(class).or_default()
    }

    pub(crate) fn find(&self, class: Class) -> Option<&Group> {
        self.all.get(&class)
    }

    /// One more has had it; `holds` tells whether it still does.
    pub(crate) fn join(&mut self, alert: AlertKey, holds: bool) {
        let group = self.of(Class::of(alert));
        if !group.known.contains(&alert.about) {
            group.joined.insert(alert.about);
        }
        if holds {
            group.members.insert(alert.about);
        }
    }

    /// Puts a member back that was told before the agent's start.
    pub(crate) fn restore(&mut self, alert: AlertKey) {
        let group = self.of(Class::of(alert));
        group.members.insert(alert.about);
        group.known.insert(alert.about);
    }

    /// One has it no longer.
    pub(crate) fn leave(&mut self, alert: AlertKey) {
        if let Some(group) = self.all.get_mut(&Class::of(alert)) {
            group.members.remove(&alert.about);
        }
    }

    pub(crate) fn forget(&mut self, class: Class) {
        self.all.remove(&class);
    }
}
