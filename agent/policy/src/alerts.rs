//! All alerts together: what silences, inhibits and groups them.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::alert::Alert;
use crate::alert_input::{Effect, Input, Terms};
use crate::mass::{Class, Groups};
use crate::minimum::{self, LivenessRule};
use crate::silence::Silences;
use crate::{
    About, AlertAction, AlertEvent, AlertKey, AlertRecord, AlertSettings, AlertView, Condition, Confirm, Fingerprint,
    Moment, Phase, RuleName, Severity, SilenceEnd, Verdict,
};

/// Alerts that are remembered at the same time. One more finding about a subject is counted and dropped, and the next
/// call finds it again when there is room; what is about the agent, and what stands for many, always has room.
const ALERTS_MAX: usize = 20_000;

/// What the agent had found of itself before its end is over unless it finds it again within this time of its start: plugins
/// are loaded by then, and no rule looks for it.
const FOUND_AGAIN_WITHIN: Duration = Duration::from_secs(60);

/// All alerts, with what keeps them quiet.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    pub(crate) settings: AlertSettings,
    confirms: BTreeMap<RuleName, Confirm>,
    pub(crate) all: BTreeMap<AlertKey, Entry>,
    due: BTreeSet<(Moment, AlertKey)>,
    /// those of which nobody was told, by what they have in common
    pub(crate) confirmed: BTreeSet<(Class, AlertKey)>,
    /// of these something may be told at once
    pub(crate) ready: BTreeSet<Class>,
    /// those that keep others quiet while they are not over
    pub(crate) inhibitors: BTreeSet<AlertKey>,
    pub(crate) groups: Groups,
    pub(crate) silences: Silences,
    /// groups that were restored: what they had may have ended before
    restored: BTreeSet<Class>,
    /// alerts of the agent's own that were restored and not found again yet
    unproven: BTreeMap<AlertKey, Moment>,
    liveness: LivenessRule,
    /// Bounded by its caller, who takes everything out after each call.
    pub(crate) actions: VecDeque<AlertAction>,
    refused_count: u64,
}

/// An alert with what is kept about it here.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) alert: Alert,
    /// the call that is under way found it
    is_found: bool,
    recorded: Option<AlertRecord>,
    deadline: Option<Moment>,
}

impl Alerts {
    /// Takes in one event.
    pub(crate) fn handle_event(&mut self, event: AlertEvent, now: Moment) {
        match event {
            AlertEvent::SettingsChanged { settings } => self.set(settings, now),
            AlertEvent::ConfirmChanged { rule, confirm } => drop(self.confirms.insert(rule, confirm)),
            AlertEvent::Restored { alert, record, held_for, told_ago, host } => {
                if alert.about == About::Group {
                    self.restored.insert(Class::of(alert));
                }
                self.restore(alert, record, host, (now.before(held_for), now.before(told_ago)), now);
            }
            AlertEvent::Found { alert, severity, host } => self.find(alert, severity, host, now),
            AlertEvent::Swept { rule, about } => self.sweep(rule, about, None, now),
            AlertEvent::Noted { condition, about, severity } => self.note(condition, about, severity, now),
            AlertEvent::RuleAnswered { rule } => {
                if rule == RuleName::Liveness {
                    self.liveness.answered(now);
                }
                self.note(Condition::RuleBroken, About::Rule(rule), None, now);
            }
            AlertEvent::RuleFailed { rule } => self.rule_failed(rule, now),
            AlertEvent::Removed { about } => self.remove(about, now),
            AlertEvent::Acknowledged { alert } => self.with(alert, Input::Acknowledged, now),
            AlertEvent::Silenced { silence } => match self.silences.begin(silence, now) {
                Ok(silence) => self.actions.push_back(AlertAction::KeepSilence { silence }),
                Err(because) => self.actions.push_back(AlertAction::EndSilence { silence: silence.id, because }),
            },
            AlertEvent::Unsilenced { silence } => {
                if self.silences.end(silence) {
                    self.end_silences(&[silence], SilenceEnd::Lifted, now);
                } else {
                    self.refused_count += 1;
                }
            }
        }
        self.tell_ready(now);
    }

    /// Does what is due. Early or repeated calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Moment) {
        let expired = self.silences.take_expired(now);
        self.end_silences(&expired, SilenceEnd::Expired, now);
        for class in core::mem::take(&mut self.restored) {
            self.end_memberless(class, now);
        }
        let over: Vec<AlertKey> =
            self.unproven.iter().filter(|(_, until)| **until <= now).map(|(&key, _)| key).collect();
        for key in over {
            self.unproven.remove(&key);
            self.end_call(key, now);
        }
        while let Some(&(moment, key)) = self.due.first().filter(|(moment, _)| *moment <= now) {
            self.due.remove(&(moment, key));
            if let Some(entry) = self.all.get_mut(&key) {
                entry.deadline = None;
            }
            self.tell_growth(key, now);
            self.with(key, Input::TimeCame, now);
            self.tell_ready(now);
        }
        if let LivenessRule::Works { .. } = self.liveness
            && self.liveness.deadline(self.settings.liveness_after).is_some_and(|deadline| deadline <= now)
        {
            self.rule_failed(RuleName::Liveness, now);
        }
        self.tell_ready(now);
    }

    /// Answers when to call [`handle_timeout`](Self::handle_timeout) next.
    pub(crate) fn poll_timeout(&self) -> Option<Moment> {
        let alert = self.due.first().map(|(moment, _)| *moment);
        let liveness = self.liveness.deadline(self.settings.liveness_after);
        let unproven = self.unproven.values().copied().min();
        [alert, self.silences.first_end(), liveness, unproven].into_iter().flatten().min()
    }

    /// Takes out the next action.
    pub(crate) fn poll_action(&mut self) -> Option<AlertAction> {
        self.actions.pop_front()
    }

    /// How many events were refused because they made no sense or there was no room.
    pub(crate) fn refused_count(&self) -> u64 {
        self.refused_count
    }

    /// Answers whether the policy has to stand in for the rule `liveness` at once, and takes it as done.
    pub(crate) fn take_look(&mut self, now: Moment) -> bool {
        self.liveness.take_look(now)
    }

    /// Stands in for the rule `liveness` about one subject.
    pub(crate) fn look(&mut self, about: About, verdict: Verdict, phase: Phase, now: Moment) {
        let rule = RuleName::Liveness;
        if let Some((condition, severity)) = minimum::find(verdict, phase) {
            self.find(AlertKey { rule, about, condition }, severity, None, now);
        }
        self.sweep(rule, about, Some(&minimum::CONDITIONS), now);
        self.tell_ready(now);
    }

    /// An alert of the agent's own: `severity` while it holds, `None` when it does not.
    pub(crate) fn note(&mut self, condition: Condition, about: About, severity: Option<Severity>, now: Moment) {
        let alert = AlertKey { rule: RuleName::Agent, about, condition };
        if let Some(severity) = severity {
            self.find(alert, severity, None, now);
        }
        self.end_call(alert, now);
    }

    /// All alerts that are not over, in the order of their keys.
    pub(crate) fn views(&self, now: Moment) -> impl Iterator<Item = AlertView> + '_ {
        let open = self.all.iter().filter(|(_, entry)| !entry.alert.is_quiet());
        open.map(move |(&alert, entry)| AlertView {
            alert,
            record: entry.alert.record(self.told_subjects(alert)),
            severity: entry.alert.severity,
            held_for: entry.alert.held_for(now),
            mute: self.mute(alert, entry.alert.host),
        })
    }

    /// All silences that hold.
    pub(crate) fn silences(&self) -> impl Iterator<Item = &crate::Silence> {
        self.silences.iter()
    }

    fn set(&mut self, settings: AlertSettings, now: Moment) {
        if settings == self.settings {
            return;
        }
        self.settings = settings;
        self.liveness.set(settings.liveness_after, now);
        for key in self.all.keys().copied().collect::<Vec<_>>() {
            self.keep(key, now);
        }
    }

    fn restore(
        &mut self,
        key: AlertKey,
        record: AlertRecord,
        host: Option<Fingerprint>,
        (began, told_at): (Moment, Moment),
        now: Moment,
    ) {
        if self.all.contains_key(&key) {
            self.refused_count += 1;
            return;
        }
        let alert = Alert::restored(record, host, began, told_at, &self.terms(key, false, now));
        if alert.is_grouped() {
            self.groups.restore(key);
        }
        if key.about == About::Group {
            self.groups.of(Class::of(key)).restore(record.subjects, told_at);
        }
        if key.rule == RuleName::Agent {
            self.unproven.insert(key, now.after(FOUND_AGAIN_WITHIN));
        }
        self.all.insert(key, Entry { alert, is_found: false, recorded: Some(record), deadline: None });
        self.keep(key, now);
    }

    pub(crate) fn find(&mut self, key: AlertKey, severity: Severity, host: Option<Fingerprint>, now: Moment) {
        self.unproven.remove(&key);
        if !self.all.contains_key(&key) {
            if self.all.len() >= ALERTS_MAX && matches!(key.about, About::Subject(_) | About::Worker(_)) {
                self.refused_count += 1;
                self.actions.push_back(AlertAction::Forget { alert: key });
                return;
            }
            let alert = Alert::unknown(severity, host, now);
            self.all.insert(key, Entry { alert, is_found: false, recorded: None, deadline: None });
        }
        if let Some(entry) = self.all.get_mut(&key) {
            // Found twice in one call is found once, and as bad as the worse of both.
            let severity = if entry.is_found { severity.max(entry.alert.severity) } else { severity };
            let repeats = core::mem::replace(&mut entry.is_found, true) && severity == entry.alert.severity;
            entry.alert.host = host.or(entry.alert.host);
            if repeats {
                return;
            }
            self.with(key, Input::Found(severity), now);
            self.raise_group(key, severity, now);
        }
    }

    /// A call that contained the subject is over. With `conditions` it could have found these alone.
    fn sweep(&mut self, rule: RuleName, about: About, conditions: Option<&[Condition]>, now: Moment) {
        let keys: Vec<AlertKey> = self.keys_of(rule, about).collect();
        for key in keys {
            if conditions.is_none_or(|conditions| conditions.contains(&key.condition)) {
                self.end_call(key, now);
            }
        }
    }

    pub(crate) fn end_call(&mut self, key: AlertKey, now: Moment) {
        if let Some(entry) = self.all.get_mut(&key)
            && !core::mem::take(&mut entry.is_found)
        {
            self.with(key, Input::NotFound, now);
        }
    }

    fn rule_failed(&mut self, rule: RuleName, now: Moment) {
        if rule == RuleName::Liveness {
            self.liveness.failed(now);
        }
        self.note(Condition::RuleBroken, About::Rule(rule), Some(Severity::Critical), now);
    }

    fn remove(&mut self, about: About, now: Moment) {
        let keys: Vec<AlertKey> = self.all.keys().filter(|key| key.about == about).copied().collect();
        for key in keys {
            self.with(key, Input::Removed, now);
            self.forget(key, now);
        }
        let removed = self.silences.take_removed(about);
        self.end_silences(&removed, SilenceEnd::Removed, now);
    }

    fn keys_of(&self, rule: RuleName, about: About) -> impl Iterator<Item = AlertKey> + '_ {
        let first = AlertKey { rule, about, condition: Condition::FIRST };
        let same = move |key: &&AlertKey| (key.rule, key.about) == (rule, about);
        self.all.range(first..).map(|(key, _)| key).take_while(same).copied()
    }

    fn terms(&self, key: AlertKey, is_muted: bool, now: Moment) -> Terms<'_> {
        let settings = &self.settings;
        // A group is made of what was confirmed and has waited.
        if key.about == About::Group {
            return Terms { settings, confirm: Confirm::AT_ONCE, group_for: Duration::ZERO, is_muted, now };
        }
        let usual = if key.rule == RuleName::Agent { Confirm::AT_ONCE } else { settings.confirm };
        let confirm = self.confirms.get(&key.rule).copied().unwrap_or(usual);
        Terms { settings, confirm, group_for: settings.group_for, is_muted, now }
    }

    /// Lets one alert take in what happened, and does what follows.
    pub(crate) fn with(&mut self, key: AlertKey, input: Input, now: Moment) {
        let Some(entry) = self.all.get(&key) else {
            self.refused_count += 1;
            return;
        };
        let mut alert = entry.alert;
        let was_on = alert.is_on();
        let held_for = alert.held_for(now);
        let is_muted = self.mute(key, alert.host).is_some();
        let effect = alert.handle(input, &self.terms(key, is_muted, now));
        if let Some(entry) = self.all.get_mut(&key) {
            entry.alert = alert;
        }
        match effect {
            Effect::Nothing => {}
            Effect::Ready => drop(self.ready.insert(Class::of(key))),
            Effect::Tell(telling) => {
                let telling = self.for_many(key, telling, now);
                self.actions.push_back(AlertAction::Tell { alert: key, severity: alert.severity, telling, held_for });
            }
            Effect::Left => self.leave(key, now),
            Effect::Over => self.forget(key, now),
            Effect::Refused => self.refused_count += 1,
        }
        self.keep(key, now);
        if was_on && (effect == Effect::Over || !alert.is_on()) {
            self.end_waiting_silences(key, now);
        }
    }

    /// Brings what is kept about an alert into line with its state.
    fn keep(&mut self, key: AlertKey, now: Moment) {
        let subjects = self.told_subjects(key);
        let terms = self.terms(key, false, now);
        let grows_at = self.grows_at(key);
        let Some(alert) = self.all.get(&key).map(|entry| entry.alert) else { return };
        let deadline = alert.deadline(&terms).into_iter().chain(grows_at).min();
        let record = alert.record(subjects);
        let Some(entry) = self.all.get_mut(&key) else { return };
        if entry.deadline != deadline {
            if let Some(moment) = entry.deadline {
                self.due.remove(&(moment, key));
            }
            self.due.extend(deadline.map(|moment| (moment, key)));
            entry.deadline = deadline;
        }
        if entry.recorded != record {
            entry.recorded = record;
            self.actions.push_back(AlertAction::Record { alert: key, record });
        }
        if alert.is_confirmed() {
            self.confirmed.insert((Class::of(key), key));
        } else {
            self.confirmed.remove(&(Class::of(key), key));
        }
        if key.about == About::Group && alert.is_quiet() {
            self.groups.forget(Class::of(key));
        }
        self.keep_inhibitor(key, !alert.is_quiet(), now);
    }

    /// Forgets an alert in every respect.
    fn forget(&mut self, key: AlertKey, now: Moment) {
        let Some(entry) = self.all.remove(&key) else { return };
        self.unproven.remove(&key);
        if let Some(moment) = entry.deadline {
            self.due.remove(&(moment, key));
        }
        self.confirmed.remove(&(Class::of(key), key));
        if key.about == About::Group {
            self.groups.forget(Class::of(key));
        }
        if entry.recorded.is_some() {
            self.actions.push_back(AlertAction::Record { alert: key, record: None });
        }
        self.actions.push_back(AlertAction::Forget { alert: key });
        self.keep_inhibitor(key, false, now);
    }
}
