//! `[alerts]`: when alerts are told, and how often.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_policy::{AlertSettings, Confirm};
use latido_protocol::{Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;

/// Three times the time within which a rule is asked about everything: one call lost on a busy host is no silence.
const LIVENESS_AFTER: Duration = Duration::from_secs(180);

/// How alerts are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertsSettings {
    /// what holds for all
    pub all: AlertSettings,
    /// what findings of single rules need, by the rule's name
    pub rules: BTreeMap<String, Confirm>,
}

/// `[alerts]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct AlertsTable {
    /// Calls of a rule in a row that have to find something before it is an alert.
    pub(super) confirm_sweeps: Option<NonZeroU32>,
    /// Time that something has to hold before it is an alert.
    pub(super) confirm_for: Option<Text<Span>>,
    /// An alert waits this long for others of its kind, so that a mass event is told as one.
    pub(super) group_for: Option<Text<Span>>,
    /// So many subjects at once, of which one rule says the same, are told as one.
    pub(super) group_min: Option<NonZeroU32>,
    /// A mass event that grows is told again after this long at the earliest.
    pub(super) group_every: Option<Text<Span>>,
    /// An ending is told when it has lasted this long.
    pub(super) resolve_after: Option<Text<Span>>,
    /// What comes again within this time comes and goes; that is over when nothing has changed for as long.
    pub(super) flap_for: Option<Text<Span>>,
    /// So many comings in a row are told once, as flapping.
    pub(super) flap_min: Option<NonZeroU32>,
    /// What fires is told again this often unless somebody acknowledged it, or `none`.
    pub(super) remind_every: Option<Text<Limit>>,
    /// What findings of a single rule need in place of the above, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) rule: BTreeMap<String, RuleAlertsTable>,
}

/// `[alerts.rule.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RuleAlertsTable {
    /// Calls in a row that have to find something before it is an alert.
    pub(super) confirm_sweeps: Option<NonZeroU32>,
    /// Time that something has to hold before it is an alert.
    pub(super) confirm_for: Option<Text<Span>>,
}

impl AlertsTable {
    /// The settings in force, and the keys with what is wrong with them. `rules` are the names of the rules there are.
    pub(super) fn decide(self, rules: &[&str]) -> (AlertsSettings, Vec<(String, String)>) {
        let default = AlertSettings::default();
        let span = |text: Option<Text<Span>>, default: Duration| text.map_or(default, |text| text.0.0);
        let mut refused = Vec::new();
        let confirm = Confirm {
            sweeps: self.confirm_sweeps.unwrap_or(default.confirm.sweeps),
            held_for: span(self.confirm_for, default.confirm.held_for),
        };
        let remind_every = match self.remind_every.map(|text| text.0) {
            None => default.remind_every,
            Some(Limit::None) => None,
            Some(Limit::After(every)) => Some(every),
        };
        if remind_every.is_some_and(|every| every < REMIND_EVERY_MIN) {
            let why = "reminders less than 1m apart are noise; `none` is no reminder".to_owned();
            refused.push(("alerts.remind_every".to_owned(), why));
        }
        let all = AlertSettings {
            confirm,
            group_for: span(self.group_for, default.group_for),
            group_min: self.group_min.unwrap_or(default.group_min),
            group_every: span(self.group_every, default.group_every),
            resolve_after: span(self.resolve_after, default.resolve_after),
            flap_for: span(self.flap_for, default.flap_for),
            flap_min: self.flap_min.unwrap_or(default.flap_min),
            remind_every,
            liveness_after: rules.contains(&"liveness").then_some(LIVENESS_AFTER),
        };
        let mut confirms = BTreeMap::new();
        for (name, table) in self.rule {
            if !rules.contains(&name.as_str()) {
                let why = format!("there is no rule `{name}`; there are: {}", rules.join(", "));
                refused.push((format!("alerts.rule.{name}"), why));
            }
            let sweeps = table.confirm_sweeps.unwrap_or(confirm.sweeps);
            confirms.insert(name, Confirm { sweeps, held_for: span(table.confirm_for, confirm.held_for) });
        }
        (AlertsSettings { all, rules: confirms }, refused)
    }

    /// The table that reads back as these settings.
    pub(super) fn of(settings: &AlertsSettings) -> Self {
        let text = |length: Duration| Some(Text(Span(length)));
        let all = &settings.all;
        let rule = settings.rules.iter().map(|(name, confirm)| {
            let table = RuleAlertsTable { confirm_sweeps: Some(confirm.sweeps), confirm_for: text(confirm.held_for) };
            (name.clone(), table)
        });
        Self {
            confirm_sweeps: Some(all.confirm.sweeps),
            confirm_for: text(all.confirm.held_for),
            group_for: text(all.group_for),
            group_min: Some(all.group_min),
            group_every: text(all.group_every),
            resolve_after: text(all.resolve_after),
            flap_for: text(all.flap_for),
            flap_min: Some(all.flap_min),
            remind_every: Some(Text(all.remind_every.map_or(Limit::None, Limit::After))),
            rule: rule.collect(),
        }
    }
}

/// Below this a reminder is a second alert.
const REMIND_EVERY_MIN: Duration = Duration::from_secs(60);
