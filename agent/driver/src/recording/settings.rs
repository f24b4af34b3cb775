//! What was decided for an agent, as the recording has it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_policy::{AlertSettings, Confirm, GroupSettings, WorkerLease};
use latido_protocol::{Span, SubjectName};
use serde::{Deserialize, Serialize};

use crate::AgentLimits;

/// All that is decided for an agent's driver, beside what jobs, checks and processes bring with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Text", try_from = "Text")]
pub struct DriverSettings {
    /// how often a beat is kept in the journal
    pub history_every: Duration,
    /// what holds for all jobs together
    pub limits: AgentLimits,
    /// groups of workers that the config names
    pub groups: BTreeMap<SubjectName, GroupSettings>,
    /// how alerts are told
    pub alerts: AlertSettings,
    /// the rules that the config has, by name
    pub rules: Vec<String>,
    /// what findings of single rules need, by the rule's name
    pub confirms: Vec<(String, Confirm)>,
}

#[derive(Serialize, Deserialize)]
struct Text {
    history_every_s: Span,
    limits: AgentLimits,
    groups: BTreeMap<SubjectName, GroupText>,
    alerts: AlertsText,
    rules: Vec<String>,
    confirms: BTreeMap<String, ConfirmText>,
}

#[derive(Serialize, Deserialize)]
struct GroupText {
    capacity: Option<NonZeroU32>,
    claims_max: NonZeroU32,
    max_pickups: NonZeroU32,
    interval_s: Span,
    ttl_s: Span,
    start_within_s: Span,
}

#[derive(Serialize, Deserialize)]
struct ConfirmText {
    sweeps: NonZeroU32,
    held_for_s: Span,
}

#[derive(Serialize, Deserialize)]
struct AlertsText {
    confirm: ConfirmText,
    group_for_s: Span,
    group_min: NonZeroU32,
    group_every_s: Span,
    resolve_after_s: Span,
    flap_for_s: Span,
    flap_min: NonZeroU32,
    remind_every_s: Option<Span>,
    liveness_after_s: Option<Span>,
}

impl From<DriverSettings> for Text {
    fn from(settings: DriverSettings) -> Self {
        Self {
            history_every_s: Span(settings.history_every),
            limits: settings.limits,
            groups: settings.groups.into_iter().map(|(name, group)| (name, group.into())).collect(),
            alerts: settings.alerts.into(),
            rules: settings.rules,
            confirms: settings.confirms.into_iter().map(|(rule, confirm)| (rule, confirm.into())).collect(),
        }
    }
}

impl TryFrom<Text> for DriverSettings {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        let group = |(name, group): (SubjectName, GroupText)| Ok((name, group.try_into()?));
        Ok(Self {
            history_every: text.history_every_s.0,
            limits: text.limits,
            groups: text.groups.into_iter().map(group).collect::<Result<_, String>>()?,
            alerts: text.alerts.into(),
            rules: text.rules,
            confirms: text.confirms.into_iter().map(|(rule, confirm)| (rule, confirm.into())).collect(),
        })
    }
}

impl From<GroupSettings> for GroupText {
    fn from(group: GroupSettings) -> Self {
        Self {
            capacity: group.capacity,
            claims_max: group.claims_max,
            max_pickups: group.max_pickups,
            interval_s: Span(group.lease.interval()),
            ttl_s: Span(group.lease.ttl()),
            start_within_s: Span(group.lease.start_within()),
        }
    }
}

impl TryFrom<GroupText> for GroupSettings {
    type Error = String;

    fn try_from(text: GroupText) -> Result<Self, String> {
        let GroupText { capacity, claims_max, max_pickups, interval_s, ttl_s, start_within_s } = text;
        let lease = WorkerLease::new(interval_s.0, ttl_s.0, start_within_s.0);
        let lease = lease.ok_or_else(|| format!("a ttl of {ttl_s} leaves no room for a beat every {interval_s}"))?;
        Ok(Self { capacity, claims_max, max_pickups, lease })
    }
}

impl From<Confirm> for ConfirmText {
    fn from(confirm: Confirm) -> Self {
        Self { sweeps: confirm.sweeps, held_for_s: Span(confirm.held_for) }
    }
}

impl From<ConfirmText> for Confirm {
    fn from(text: ConfirmText) -> Self {
        Self { sweeps: text.sweeps, held_for: text.held_for_s.0 }
    }
}

impl From<AlertSettings> for AlertsText {
    fn from(alerts: AlertSettings) -> Self {
        Self {
            confirm: alerts.confirm.into(),
            group_for_s: Span(alerts.group_for),
            group_min: alerts.group_min,
            group_every_s: Span(alerts.group_every),
            resolve_after_s: Span(alerts.resolve_after),
            flap_for_s: Span(alerts.flap_for),
            flap_min: alerts.flap_min,
            remind_every_s: alerts.remind_every.map(Span),
            liveness_after_s: alerts.liveness_after.map(Span),
        }
    }
}

impl From<AlertsText> for AlertSettings {
    fn from(text: AlertsText) -> Self {
        Self {
            confirm: text.confirm.into(),
            group_for: text.group_for_s.0,
            group_min: text.group_min,
            group_every: text.group_every_s.0,
            resolve_after: text.resolve_after_s.0,
            flap_for: text.flap_for_s.0,
            flap_min: text.flap_min,
            remind_every: text.remind_every_s.map(|span| span.0),
            liveness_after: text.liveness_after_s.map(|span| span.0),
        }
    }
}
