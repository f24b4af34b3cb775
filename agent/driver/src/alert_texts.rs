//! The texts of alerts on one side, the policy's keys on the other.

use std::collections::{BTreeMap, BTreeSet};

use latido_policy::{About, AlertKey, AlertRecord, Condition, RuleName, SilenceId};
use latido_protocol::WallTime;
use latido_protocol::journal::Severity;
use latido_store::{AlertRow, SilenceRow};

use crate::translate::fingerprint;

/// The rule by which the agent tells of itself.
pub(crate) const AGENT: &str = "agent";
/// The rule that has a fixed minimum behind it.
pub(crate) const LIVENESS: &str = "liveness";
/// Whom an alert is about that stands for many.
pub(crate) const MANY: &str = "*";

/// What people read of one alert.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    pub(crate) rule: String,
    pub(crate) key: String,
    pub(crate) subject: String,
    pub(crate) host: Option<String>,
    pub(crate) summary: String,
    /// since when it holds; `None` once it is over
    pub(crate) started: Option<WallTime>,
    pub(crate) told: WallTime,
    pub(crate) acknowledged_by: Option<String>,
    /// as the policy wants it kept
    pub(crate) record: Option<AlertRecord>,
}

impl Texts {
    pub(crate) fn new(rule: &str, key: &str, subject: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            key: key.to_owned(),
            subject: subject.to_owned(),
            host: None,
            summary: String::new(),
            started: None,
            told: WallTime::from_millis(0),
            acknowledged_by: None,
            record: None,
        }
    }

    /// Names the alert over its whole life.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{}/{}/{}", self.rule, self.key, self.subject)
    }

    /// The row of an alert that is kept.
    pub(crate) fn row(&self, about: About) -> Option<AlertRow> {
        let record = self.record?;
        Some(AlertRow {
            fingerprint: self.fingerprint(),
            rule: self.rule.clone(),
            key: self.key.clone(),
            about: about_word(about).to_owned(),
            subject: self.subject.clone(),
            host: self.host.clone(),
            severity: record.severity.to_string(),
            summary: self.summary.clone(),
            started_ms: self.started.map_or(0, WallTime::as_millis),
            standing: record.standing.to_string(),
            told: record.told.to_string(),
            told_ms: self.told.as_millis(),
            acknowledged: record.acknowledged.map(|severity| severity.to_string()),
            acknowledged_by: self.acknowledged_by.clone(),
            comings: record.comings,
            subjects: record.subjects,
        })
    }
}

/// All texts of alerts and silences. They go when the policy forgets what they are about, so it bounds them.
#[derive(Debug, Default)]
pub(crate) struct AlertBook {
    pub(crate) texts: BTreeMap<AlertKey, Texts>,
    /// rules by the policy's name for them; as many as the config has
    pub(crate) rules: BTreeMap<RuleName, String>,
    /// rules that the config has
    pub(crate) asked: BTreeSet<RuleName>,
    pub(crate) silences: BTreeMap<SilenceId, SilenceRow>,
    /// what the store remembers from before the agent's start, until the first step
    pub(crate) remembered: Option<(Vec<AlertRow>, Vec<SilenceRow>)>,
    pub(crate) store_is_away: bool,
}

impl AlertBook {
    pub(crate) fn find(&self, fingerprint: &str) -> Option<AlertKey> {
        self.texts.iter().find(|(_, texts)| texts.fingerprint() == fingerprint).map(|(&key, _)| key)
    }

    /// A number that no silence has.
    pub(crate) fn free_number(&self) -> u32 {
        self.silences.last_key_value().map_or(1, |(id, _)| id.0.saturating_add(1))
    }

    /// Names of the members of a group, the first of them only.
    pub(crate) fn members(&self, group: AlertKey, count_max: usize) -> Vec<String> {
        let grouped = |record: AlertRecord| record.standing == latido_policy::Standing::Grouped;
        let members = self.texts.iter().filter(|(key, texts)| {
            (key.rule, key.condition) == (group.rule, group.condition) && texts.record.is_some_and(grouped)
        });
        members.map(|(_, texts)| texts.subject.clone()).take(count_max).collect()
    }
}

pub(crate) fn rule_name(rule: &str) -> RuleName {
    match rule {
        AGENT => RuleName::Agent,
        LIVENESS => RuleName::Liveness,
        other => RuleName::Other(fingerprint(other)),
    }
}

pub(crate) fn condition(key: &str) -> Condition {
    Condition::of(key).unwrap_or_else(|| Condition::Other(fingerprint(key)))
}

pub(crate) fn about_word(about: About) -> &'static str {
    match about {
        About::Agent => "agent",
        About::Rule(_) => "rule",
        About::Plugin(_) => "plugin",
        About::Host(_) => "host",
        About::Subject(_) => "subject",
        About::Worker(_) => "worker",
        About::Group => "group",
    }
}

/// What the agent itself says of a condition that no rule has put into words.
pub(crate) fn words(condition: Condition) -> &'static str {
    match condition {
        Condition::Missing => "its first beat did not come in time",
        Condition::Late => "its beat is overdue",
        Condition::Stale => "its lease ran out",
        Condition::Hung => "its progress stands still",
        Condition::Failing => "it says that it fails",
        Condition::Orphaned => "its supervisor is gone and it lives",
        Condition::Dead => "it is proven gone",
        Condition::Unknown => "whether it lives cannot be told",
        Condition::Held => "it waits for a person",
        Condition::Stuck => "it was given up at a limit",
        Condition::HostDown => "the host does not answer",
        Condition::Blackout => "the agent could not hear; nobody is judged by the silence",
        Condition::StoreAway => "the store takes no records; they wait in memory",
        Condition::RuleBroken => "the rule does not answer; the agent's own minimum stands in for `liveness`",
        Condition::Other(_) => "it was found",
    }
}

pub(crate) fn severity(severity: latido_policy::Severity) -> Severity {
    match severity {
        latido_policy::Severity::Info => Severity::Info,
        latido_policy::Severity::Warning => Severity::Warning,
        latido_policy::Severity::Critical => Severity::Critical,
    }
}

pub(crate) fn to_policy(severity: Severity) -> latido_policy::Severity {
    match severity {
        Severity::Info => latido_policy::Severity::Info,
        Severity::Warning => latido_policy::Severity::Warning,
        Severity::Critical => latido_policy::Severity::Critical,
    }
}

/// The severity of this word; what an older or damaged row says otherwise is a warning.
pub(crate) fn severity_of(word: &str) -> latido_policy::Severity {
    match word {
        "info" => latido_policy::Severity::Info,
        "critical" => latido_policy::Severity::Critical,
        _ => latido_policy::Severity::Warning,
    }
}
