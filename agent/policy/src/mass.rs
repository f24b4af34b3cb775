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
    /// of how many it has held so far
    pub(crate) had: u32,
    /// when it was told last
    told_at: Option<Moment>,
}

impl Group {
    /// Remembers what people know.
    pub(crate) fn tell(&mut self, now: Moment) {
        self.told = self.had;
        self.told_at = Some(now);
    }

    /// When it may be told that it grew; `None` if it has not.
    pub(crate) fn grew_at(&self, group_every: Duration) -> Option<Moment> {
        self.told_at.filter(|_| self.had > self.told).map(|told_at| told_at.after(group_every))
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
        group.had = group.had.saturating_add(1);
        if holds {
            group.members.insert(alert.about);
        }
    }

    /// Puts a member back that was told before the agent's start.
    pub(crate) fn restore(&mut self, alert: AlertKey) {
        self.of(Class::of(alert)).members.insert(alert.about);
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
