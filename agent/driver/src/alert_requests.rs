//! What people ask about alerts, and the document they are answered with.

use std::time::Duration;

use latido_policy::{About, AlertEvent, AlertKey, AlertView, Mute, RuleName, SilenceId, Standing};
use latido_protocol::alerts::{self, AlertRequest, AlertStatus, AlertsDocument, SilenceScope, SilenceStatus};
use latido_protocol::{FORMAT_VERSION, Span, WallTime};
use latido_store::{AlertRow, SilenceRow, Store, StoreError};

use crate::alert_texts::{AGENT, Texts, condition, severity, severity_of};
use crate::{Driver, record};

/// What the test alert is called.
const TEST: &str = "test";

/// Why something that was asked about alerts was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlertRefused {
    /// There is nothing of that name.
    #[error("find {0}; `latido alerts list` shows what there is")]
    Unknown(String),
    /// A silence needs an end that lies ahead.
    #[error("keep quiet for no time at all; give a length such as 2h")]
    NoLength,
    /// There are too many silences.
    #[error("keep one more silence; `latido alerts unsilence` ends one")]
    TooMany,
    /// Nobody was told of it.
    #[error("acknowledge what nobody was told of; a silence keeps it quiet")]
    Untold,
    /// It was told as part of another.
    #[error("acknowledge one of many; acknowledge {0} for all of them")]
    Grouped(String),
    /// It holds, and is not on the disk.
    #[error("record it; it holds, and is recorded as soon as the store takes writes again")]
    Unrecorded(#[source] StoreError),
}

impl<S: Store> Driver<S> {
    /// Does what is asked, and answers how alerts are afterwards; what it changed is on the disk then.
    ///
    /// # Errors
    /// There is no such thing, it makes no sense, or it could not be recorded.
    pub fn handle_alert_request(
        &mut self,
        request: AlertRequest,
        wall: WallTime,
    ) -> Result<AlertsDocument, AlertRefused> {
        if request == AlertRequest::List {
            return Ok(self.alerts_document(wall));
        }
        let asked = request.clone();
        let answer = self.carry_out_alert_request(request, wall);
        let store_is_away = matches!(answer, Err(AlertRefused::Unrecorded(_)));
        self.record_alert_request(asked, wall, store_is_away);
        answer
    }

    fn carry_out_alert_request(
        &mut self,
        request: AlertRequest,
        wall: WallTime,
    ) -> Result<AlertsDocument, AlertRefused> {
        match request {
            AlertRequest::List => {}
            AlertRequest::Silence { scope, length, until_resolved, by, reason } => {
                self.silence(&scope, length, until_resolved, (by, reason), wall)?;
            }
            AlertRequest::Unsilence { number } => {
                if !self.alerts.silences.contains_key(&SilenceId(number)) {
                    return Err(AlertRefused::Unknown(format!("silence {number}")));
                }
                self.tell(AlertEvent::Unsilenced { silence: SilenceId(number) });
            }
            AlertRequest::Acknowledge { fingerprint, by } => self.acknowledge(&fingerprint, by, wall)?,
            AlertRequest::Test { by } => self.test_alert(&by),
        }
        self.policy.handle_timeout(self.listening.now());
        self.carry_all(wall);
        self.commit().map_err(AlertRefused::Unrecorded)?;
        Ok(self.alerts_document(wall))
    }

    fn silence(
        &mut self,
        scope: &SilenceScope,
        length: Span,
        until_resolved: bool,
        (by, reason): (String, String),
        wall: WallTime,
    ) -> Result<(), AlertRefused> {
        if length.0.is_zero() {
            return Err(AlertRefused::NoLength);
        }
        let known = match scope {
            SilenceScope::Rule(rule) => self.alerts.rules.values().any(|known| known == rule),
            SilenceScope::Subject(_) | SilenceScope::Alert(_) => self.scope(scope, false).is_some(),
        };
        if !known {
            return Err(AlertRefused::Unknown(scope.to_string()));
        }
        let number = self.alerts.free_number();
        let length_ms = u64::try_from(length.0.as_millis()).unwrap_or(u64::MAX);
        let row = SilenceRow {
            number,
            // An enum of texts of our own: this cannot fail.
            scope: serde_json::to_string(scope).unwrap_or_default(),
            since_ms: wall.as_millis(),
            until_ms: wall.as_millis().saturating_add(length_ms),
            until_resolved,
            asked_by: by,
            reason,
        };
        self.tell_silence(row, wall);
        self.carry_all(wall);
        let Some(row) = self.alerts.silences.get(&SilenceId(number)) else { return Err(AlertRefused::TooMany) };
        let until = WallTime::from_millis(row.until_ms);
        let detail = format!("silence {number} keeps {scope} quiet until {until}, by {}: {}", row.asked_by, row.reason);
        self.pending.entries.push(record::entry(wall, &record::noted("silence-began", detail)));
        Ok(())
    }

    fn acknowledge(&mut self, fingerprint: &str, by: String, wall: WallTime) -> Result<(), AlertRefused> {
        let alert = self.alerts.find(fingerprint);
        let alert = alert.ok_or_else(|| AlertRefused::Unknown(format!("alert {fingerprint}")))?;
        let Some(texts) = self.alerts.texts.get_mut(&alert) else { return Err(AlertRefused::Untold) };
        match texts.record.map(|record| record.standing) {
            None | Some(Standing::Muted) => return Err(AlertRefused::Untold),
            Some(Standing::Grouped) => {
                return Err(AlertRefused::Grouped(Texts::new(&texts.rule, &texts.key, "*").fingerprint()));
            }
            Some(Standing::Firing | Standing::Ending | Standing::Flapping) => {}
        }
        let detail = format!("{by} knows of {fingerprint}");
        texts.acknowledged_by = Some(by);
        self.pending.entries.push(record::entry(wall, &record::noted("acknowledged", detail)));
        self.tell(AlertEvent::Acknowledged { alert });
        Ok(())
    }

    /// An alert that began and is over: both are told by the ways of all others.
    fn test_alert(&mut self, by: &str) {
        let alert = AlertKey { rule: RuleName::Agent, about: About::Agent, condition: condition(TEST) };
        let texts = self.alerts.texts.entry(alert).or_insert_with(|| Texts::new(AGENT, TEST, AGENT));
        texts.summary = format!("a test that {by} asked for; nothing is wrong");
        for severity in [Some(latido_policy::Severity::Info), None] {
            self.tell(AlertEvent::Noted { condition: alert.condition, about: alert.about, severity });
        }
    }

    fn alerts_document(&self, at: WallTime) -> AlertsDocument {
        let mut alerts: Vec<AlertStatus> =
            self.policy.alerts().filter_map(|view| self.alert_status(&view, at)).collect();
        alerts.sort_by(|one, other| one.fingerprint.cmp(&other.fingerprint));
        let silences = self.alerts.silences.values().filter_map(silence_status).collect();
        AlertsDocument { version: FORMAT_VERSION, agent: true, at, alerts, silences }
    }

    fn alert_status(&self, view: &AlertView, at: WallTime) -> Option<AlertStatus> {
        let texts = self.alerts.texts.get(&view.alert)?;
        let muted_by = view.mute.map(|mute| match mute {
            Mute::Silenced(SilenceId(number)) => format!("silence {number}"),
            Mute::Inhibited(by) => self.alerts.texts.get(&by).map_or_else(String::new, Texts::fingerprint),
        });
        Some(AlertStatus {
            fingerprint: texts.fingerprint(),
            rule: texts.rule.clone(),
            key: texts.key.clone(),
            subject: texts.subject.clone(),
            severity: severity(view.severity),
            state: view.record.map_or(alerts::Standing::Pending, |record| standing(record.standing)),
            summary: texts.summary.clone(),
            started: texts.started.unwrap_or_else(|| earlier(at, view.held_for)),
            muted_by,
            acknowledged_by: texts.acknowledged_by.clone(),
            comings: view.record.map_or(1, |record| record.comings),
            subjects: view.record.map_or(1, |record| record.subjects),
        })
    }
}

/// The document from what the store remembers, where no agent runs: what is pending only an agent knows.
#[must_use]
pub fn recorded_alerts(alerts: Vec<AlertRow>, silences: &[SilenceRow], at: WallTime) -> AlertsDocument {
    let status = |row: AlertRow| AlertStatus {
        state: Standing::of(&row.standing).map_or(alerts::Standing::Firing, standing),
        severity: severity(severity_of(&row.severity)),
        started: WallTime::from_millis(row.started_ms),
        fingerprint: row.fingerprint,
        rule: row.rule,
        key: row.key,
        subject: row.subject,
        summary: row.summary,
        muted_by: None,
        acknowledged_by: row.acknowledged_by,
        comings: row.comings,
        subjects: row.subjects,
    };
    AlertsDocument {
        version: FORMAT_VERSION,
        agent: false,
        at,
        alerts: alerts.into_iter().map(status).collect(),
        silences: silences.iter().filter_map(silence_status).collect(),
    }
}

fn silence_status(row: &SilenceRow) -> Option<SilenceStatus> {
    Some(SilenceStatus {
        number: row.number,
        scope: serde_json::from_str(&row.scope).ok()?,
        since: WallTime::from_millis(row.since_ms),
        until: WallTime::from_millis(row.until_ms),
        until_resolved: row.until_resolved,
        by: row.asked_by.clone(),
        reason: row.reason.clone(),
    })
}

fn standing(standing: Standing) -> alerts::Standing {
    match standing {
        Standing::Muted => alerts::Standing::Muted,
        Standing::Firing => alerts::Standing::Firing,
        Standing::Grouped => alerts::Standing::Grouped,
        Standing::Ending => alerts::Standing::Ending,
        Standing::Flapping => alerts::Standing::Flapping,
    }
}

fn earlier(at: WallTime, length: Duration) -> WallTime {
    let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
    WallTime::from_millis(at.as_millis().saturating_sub(length_ms))
}
