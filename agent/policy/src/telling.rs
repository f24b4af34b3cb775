//! Whether what is ready is told one by one or as a group.

use alloc::vec::Vec;

use crate::alert_input::Input;
use crate::alerts::Alerts;
use crate::mass::Class;
use crate::{About, AlertAction, AlertKey, Moment, Severity, Telling};

impl Alerts {
    /// Tells what is ready: with all others of its kind that are confirmed, if they are many or a group is told already.
    pub(crate) fn tell_ready(&mut self, now: Moment) {
        while let Some(class) = self.ready.pop_first() {
            let (group, single): (Vec<AlertKey>, Vec<AlertKey>) =
                self.tellable(class).into_iter().partition(|key| key.about == About::Group);
            for key in group {
                self.with(key, Input::Tell, now);
            }
            if self.is_told_as_group(class, single.len()) {
                self.join(class, &single, now);
            } else {
                for key in single {
                    self.with(key, Input::Tell, now);
                }
            }
        }
    }

    /// What is confirmed of a class, and not muted.
    fn tellable(&self, class: Class) -> Vec<AlertKey> {
        let first = AlertKey { rule: class.rule, about: About::Agent, condition: class.condition };
        let same = self.confirmed.range((class, first)..).take_while(|(other, _)| *other == class);
        let keys = same.map(|&(_, key)| key);
        keys.filter(|key| self.all.get(key).is_some_and(|entry| self.mute(*key, entry.alert.host).is_none())).collect()
    }

    fn is_told_as_group(&self, class: Class, count: usize) -> bool {
        let is_open = self.all.get(&class.alert()).is_some_and(|entry| !entry.alert.is_quiet());
        let is_many = u32::try_from(count).is_ok_and(|count| count >= self.settings.group_min.get());
        count > 0 && (is_open || is_many)
    }

    fn join(&mut self, class: Class, keys: &[AlertKey], now: Moment) {
        let mut worst = Severity::Info;
        for &key in keys {
            self.with(key, Input::Join, now);
            if let Some(entry) = self.all.get(&key) {
                worst = worst.max(entry.alert.severity);
                self.groups.join(key, entry.alert.is_grouped());
            }
        }
        let group = class.alert();
        self.find(group, worst, None, now);
        self.end_call(group, now);
        self.with(group, Input::TimeCame, now);
        self.end_empty(class, now);
    }

    /// A member is worse than the group: so is the group.
    pub(crate) fn raise_group(&mut self, key: AlertKey, severity: Severity, now: Moment) {
        let group = Class::of(key).alert();
        let is_member = self.all.get(&key).is_some_and(|entry| entry.alert.is_grouped());
        if is_member && self.all.get(&group).is_some_and(|entry| entry.alert.severity < severity) {
            self.with(group, Input::Found(severity), now);
        }
    }

    /// A member has it no longer.
    pub(crate) fn leave(&mut self, key: AlertKey, now: Moment) {
        self.groups.leave(key);
        self.end_empty(Class::of(key), now);
    }

    fn end_empty(&mut self, class: Class, now: Moment) {
        if self.groups.find(class).is_some_and(crate::mass::Group::is_empty) {
            self.with(class.alert(), Input::NotFound, now);
        }
    }

    /// Ends a group that was restored, and whose members had all ended before: nobody is left who could end it.
    pub(crate) fn end_memberless(&mut self, class: Class, now: Moment) {
        if self.groups.find(class).is_none_or(crate::mass::Group::is_empty) {
            self.with(class.alert(), Input::NotFound, now);
        }
    }

    /// Puts into words of a group what was decided as for any alert, and remembers of how many was told.
    pub(crate) fn for_many(&mut self, key: AlertKey, telling: Telling, now: Moment) -> Telling {
        if key.about != About::Group {
            return telling;
        }
        let group = self.groups.of(Class::of(key));
        let subjects = group.count();
        match telling {
            Telling::Began { .. } => {
                group.tell(now);
                Telling::BeganForMany { subjects }
            }
            Telling::Flaps { .. }
            | Telling::Settled { .. }
            | Telling::Rose
            | Telling::Reminder
            | Telling::BeganForMany { .. }
            | Telling::Grew { .. } => {
                group.tell(now);
                telling
            }
            Telling::Resolved { .. } => telling,
        }
    }

    /// Tells that a mass event has grown, if that is due.
    pub(crate) fn tell_growth(&mut self, key: AlertKey, now: Moment) {
        if self.grows_at(key).is_none_or(|moment| now < moment) {
            return;
        }
        let Some(alert) = self.all.get(&key).map(|entry| entry.alert) else { return };
        let group = self.groups.of(Class::of(key));
        group.tell(now);
        if self.mute(key, None).is_none() {
            let telling = Telling::Grew { subjects: self.told_subjects(key) };
            let (severity, held_for) = (alert.severity, alert.held_for(now));
            self.actions.push_back(AlertAction::Tell { alert: key, severity, telling, held_for });
        }
    }

    /// When it may be told that a mass event has grown.
    pub(crate) fn grows_at(&self, key: AlertKey) -> Option<Moment> {
        let is_on = self.all.get(&key).is_some_and(|entry| entry.alert.is_on());
        let group = self.groups.find(Class::of(key)).filter(|_| is_on && key.about == About::Group);
        group.and_then(|group| group.grew_at(self.settings.group_every))
    }

    /// Of how many subjects was told.
    pub(crate) fn told_subjects(&self, key: AlertKey) -> u32 {
        match key.about {
            About::Group => self.groups.find(Class::of(key)).map_or(0, |group| group.told),
            About::Agent
            | About::Rule(_)
            | About::Plugin(_)
            | About::Host(_)
            | About::Subject(_)
            | About::Worker(_) => 1,
        }
    }
}
