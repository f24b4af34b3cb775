//! What keeps an alert from being told: a silence, or another alert that explains it.

use alloc::vec::Vec;

use crate::alert_input::Input;
use crate::alerts::Alerts;
use crate::{About, AlertAction, AlertKey, Condition, Fingerprint, Moment, Mute, RuleName, SilenceEnd, SilenceId};

/// Answers whether one alert explains another: a host that is down explains what is wrong with what runs on it, and an
/// agent that could not hear explains everything that was not heard. It does so before it is confirmed itself, so that
/// nothing is told in the meantime.
fn explains(inhibitor: AlertKey, alert: AlertKey, host: Option<Fingerprint>) -> bool {
    match inhibitor.condition {
        Condition::HostDown => {
            alert.condition != Condition::HostDown && host.is_some_and(|host| inhibitor.about == About::Host(host))
        }
        Condition::Blackout => {
            inhibitor.rule == RuleName::Agent && alert.rule != RuleName::Agent && alert.condition.is_silence()
        }
        Condition::Missing
        | Condition::Late
        | Condition::Stale
        | Condition::Hung
        | Condition::Failing
        | Condition::Orphaned
        | Condition::Dead
        | Condition::Unknown
        | Condition::Held
        | Condition::Stuck
        | Condition::StoreAway
        | Condition::RuleBroken
        | Condition::Other(_) => false,
    }
}

impl Alerts {
    /// Answers what keeps an alert from being told, if anything does.
    pub(crate) fn mute(&self, alert: AlertKey, host: Option<Fingerprint>) -> Option<Mute> {
        let silenced = self.silences.covering(alert).map(Mute::Silenced);
        silenced.or_else(|| {
            let inhibitor = self.inhibitors.iter().find(|&&inhibitor| explains(inhibitor, alert, host));
            inhibitor.copied().map(Mute::Inhibited)
        })
    }

    /// Remembers whether this alert keeps others quiet.
    pub(crate) fn keep_inhibitor(&mut self, key: AlertKey, is_open: bool, now: Moment) {
        if is_open && matches!(key.condition, Condition::HostDown | Condition::Blackout) {
            self.inhibitors.insert(key);
        } else if self.inhibitors.remove(&key) {
            self.look_at_muted(now);
        }
    }

    /// Tells and forgets silences that have ended.
    pub(crate) fn end_silences(&mut self, ended: &[SilenceId], because: SilenceEnd, now: Moment) {
        for &silence in ended {
            self.actions.push_back(AlertAction::EndSilence { silence, because });
        }
        if !ended.is_empty() {
            self.look_at_muted(now);
        }
    }

    /// An alert is over: silences that waited for that end, unless they cover another one that is not.
    pub(crate) fn end_waiting_silences(&mut self, key: AlertKey, now: Moment) {
        let all = &self.all;
        let ended = self.silences.take_resolved(key, |silence| {
            all.iter().any(|(&other, entry)| silence.scope.covers(other) && entry.alert.is_on())
        });
        self.end_silences(&ended, SilenceEnd::Resolved, now);
    }

    /// Something that muted has ended: what it muted and still holds is told.
    fn look_at_muted(&mut self, now: Moment) {
        let confirmed: Vec<AlertKey> = self.confirmed.iter().map(|&(_, key)| key).collect();
        for key in confirmed {
            self.with(key, Input::TimeCame, now);
        }
    }
}
