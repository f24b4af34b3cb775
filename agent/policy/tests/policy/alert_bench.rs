//! The bench of all tests as alerts see it, and short words for what comes out.

use core::num::NonZeroU32;
use core::time::Duration;

use latido_policy::{
    About, Action, AlertAction, AlertEvent, AlertKey, AlertRecord, AlertSettings, AlertView, Condition, Confirm, Event,
    Fingerprint, Moment, RuleName, Severity, Silence, SilenceId, SilenceScope, SubjectId, Telling,
};

use crate::harness::{Bench, seconds};

pub(crate) const HOST: Fingerprint = Fingerprint(77);

/// What `liveness` finds of a subject.
pub(crate) fn key(subject: u32, condition: Condition) -> AlertKey {
    AlertKey { rule: RuleName::Liveness, about: About::Subject(SubjectId(subject)), condition }
}

pub(crate) fn stale(subject: u32) -> AlertKey {
    key(subject, Condition::Stale)
}

/// The alert that stands for many stale subjects.
pub(crate) fn many_stale() -> AlertKey {
    AlertKey { about: About::Group, ..stale(0) }
}

/// The agent could not hear.
pub(crate) fn blackout() -> AlertKey {
    AlertKey { rule: RuleName::Agent, about: About::Agent, condition: Condition::Blackout }
}

pub(crate) fn confirm(sweeps: u32, held_for: u64) -> Confirm {
    Confirm { sweeps: NonZeroU32::new(sweeps).unwrap(), held_for: seconds(held_for) }
}

/// The bench of all tests, as alerts see it: what goes in are their events, what comes out are their actions.
#[derive(Debug)]
pub(crate) struct Alerts {
    pub(crate) bench: Bench,
}

impl Alerts {
    pub(crate) fn new() -> Self {
        Self { bench: Bench { now: Moment::ORIGIN.after(seconds(1_000_000)), ..Bench::empty() } }
    }

    pub(crate) fn with(settings: AlertSettings) -> Self {
        let mut alerts = Self::new();
        alerts.tell(AlertEvent::SettingsChanged { settings });
        alerts
    }

    /// Tells an event and takes out what follows at once.
    pub(crate) fn tell(&mut self, event: AlertEvent) -> Vec<AlertAction> {
        self.bench.policy.handle_event(Event::Alert(event), self.bench.now);
        self.judge()
    }

    fn judge(&mut self) -> Vec<AlertAction> {
        self.bench.policy.handle_timeout(self.bench.now);
        self.take()
    }

    pub(crate) fn take(&mut self) -> Vec<AlertAction> {
        of_alerts(self.bench.take())
    }

    /// One call of a rule about some subjects that finds some alerts.
    pub(crate) fn call(&mut self, rule: RuleName, asked: &[About], found: &[(AlertKey, Severity)]) -> Vec<AlertAction> {
        for &(alert, severity) in found {
            let event = AlertEvent::Found { alert, severity, host: Some(HOST) };
            self.bench.policy.handle_event(Event::Alert(event), self.bench.now);
        }
        for &about in asked {
            self.bench.policy.handle_event(Event::Alert(AlertEvent::Swept { rule, about }), self.bench.now);
        }
        self.judge()
    }

    /// A call of `liveness` about subject 1 alone, which finds it stale or does not.
    pub(crate) fn sweep(&mut self, is_stale: bool) -> Vec<AlertAction> {
        self.sweep_at(is_stale.then_some(Severity::Warning))
    }

    pub(crate) fn sweep_at(&mut self, severity: Option<Severity>) -> Vec<AlertAction> {
        let found: Vec<_> = severity.map(|severity| (stale(1), severity)).into_iter().collect();
        self.call(RuleName::Liveness, &[stale(1).about], &found)
    }

    /// A call of `liveness` about the first `count` subjects, which finds the numbered ones stale.
    pub(crate) fn sweep_all(&mut self, count: u32, found: impl IntoIterator<Item = u32>) -> Vec<AlertAction> {
        let asked: Vec<About> = (1..=count).map(|subject| stale(subject).about).collect();
        let found: Vec<_> = found.into_iter().map(|subject| (stale(subject), Severity::Warning)).collect();
        self.call(RuleName::Liveness, &asked, &found)
    }

    /// The agent finds something about itself, or no longer does.
    pub(crate) fn note(&mut self, alert: AlertKey, holds: bool) -> Vec<AlertAction> {
        let found: Vec<_> = holds.then_some((alert, Severity::Critical)).into_iter().collect();
        self.call(alert.rule, &[alert.about], &found)
    }

    /// Lets time pass, and does what is due at its own moment.
    pub(crate) fn pass(&mut self, length: u64) -> Vec<AlertAction> {
        of_alerts(self.bench.pass(seconds(length)))
    }

    /// Finds subject 1 stale, and lets it be told.
    pub(crate) fn fire(&mut self) -> Vec<AlertAction> {
        let mut actions = self.sweep(true);
        actions.extend(self.pass(2));
        actions
    }

    pub(crate) fn silence(&mut self, scope: SilenceScope, length: u64, until_resolved: bool) -> Vec<AlertAction> {
        let until = self.bench.now.after(seconds(length));
        self.tell(AlertEvent::Silenced { silence: Silence { id: SilenceId(1), scope, until, until_resolved } })
    }

    pub(crate) fn view(&self, alert: AlertKey) -> Option<AlertView> {
        self.bench.policy.alerts().find(|view| view.alert == alert)
    }

    /// The same alerts in a policy that knows only what was recorded, as after a restart of the agent.
    pub(crate) fn restart(&self, settings: AlertSettings) -> Self {
        let mut again = Self::with(settings);
        for view in self.bench.policy.alerts() {
            let Some(record) = view.record else { continue };
            let (alert, held_for) = (view.alert, view.held_for);
            let told_ago = Duration::ZERO;
            again.tell(AlertEvent::Restored { alert, record, held_for, told_ago, host: Some(HOST) });
        }
        again
    }
}

fn of_alerts(actions: Vec<Action>) -> Vec<AlertAction> {
    actions
        .into_iter()
        .filter_map(|action| if let Action::Alert(action) = action { Some(action) } else { None })
        .collect()
}

/// What people are told by these actions, one line each.
pub(crate) fn told(actions: &[AlertAction]) -> Vec<String> {
    actions
        .iter()
        .filter_map(|action| match action {
            AlertAction::Tell { alert, severity, telling, held_for: _ } => Some(line(*alert, *severity, *telling)),
            AlertAction::Record { .. }
            | AlertAction::Forget { .. }
            | AlertAction::KeepSilence { .. }
            | AlertAction::EndSilence { .. } => None,
        })
        .collect()
}

pub(crate) fn line(alert: AlertKey, severity: Severity, telling: Telling) -> String {
    format!("{} {severity}: {telling}", name(alert))
}

/// A short name of an alert.
pub(crate) fn name(alert: AlertKey) -> String {
    let condition = alert.condition.word().unwrap_or("other");
    match alert.about {
        About::Subject(subject) => format!("{} {condition}", subject.0),
        About::Worker(worker) => format!("worker {} {condition}", worker.0),
        About::Group => format!("many {condition}"),
        About::Agent => format!("agent {condition}"),
        About::Rule(_) => format!("rule {condition}"),
        About::Plugin(_) => format!("plugin {condition}"),
        About::Host(_) => format!("host {condition}"),
    }
}

/// What is kept of an alert, in words.
pub(crate) fn kept(record: &AlertRecord) -> String {
    let acknowledged = if record.acknowledged.is_some() { ", acknowledged" } else { "" };
    let subjects = if record.subjects == 1 { String::new() } else { format!(", {} subjects", record.subjects) };
    format!("{} {}, came {}{acknowledged}{subjects}", record.standing, record.told, record.comings)
}
