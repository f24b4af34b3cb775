//! What rules found, kept until a call that contained the subject no longer finds it.

use std::collections::{BTreeMap, BTreeSet};

use latido_protocol::journal::{AlertState, Body, Severity};
use latido_protocol::{SubjectName, WallTime};
use latido_store::{AlertRow, Batch};

use crate::fact::Finding;
use crate::record::entry;

/// The alerts that fire. What fires stands on the disk too, so that a restart repeats nothing.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    firing: BTreeMap<String, AlertRow>,
}

impl Alerts {
    pub(crate) fn new(rows: Vec<AlertRow>) -> Self {
        Self { firing: rows.into_iter().map(|row| (row.fingerprint.clone(), row)).collect() }
    }

    /// Compares what a rule finds for `subjects` with what fires, and writes the differences into `batch`.
    pub(crate) fn apply(
        &mut self,
        rule: &str,
        subjects: &[SubjectName],
        findings: Vec<Finding>,
        at: WallTime,
        batch: &mut Batch,
    ) {
        let asked: BTreeSet<&str> = subjects.iter().map(SubjectName::as_str).collect();
        let mut found = BTreeSet::new();
        // A finding about a subject that was not asked about has no call that could end it.
        for finding in findings.into_iter().filter(|finding| asked.contains(finding.subject.as_str())) {
            let fingerprint = format!("{rule}/{}/{}", finding.key, finding.subject);
            if !found.insert(fingerprint.clone()) || self.firing.contains_key(&fingerprint) {
                continue;
            }
            let row = AlertRow {
                fingerprint: fingerprint.clone(),
                rule: rule.to_owned(),
                subject: finding.subject,
                severity: severity_word(finding.severity).to_owned(),
                summary: finding.summary,
                started_ms: at.as_millis(),
            };
            batch.entries.push(entry(at, &body(&row, AlertState::Firing)));
            batch.alerts_firing.push(row.clone());
            self.firing.insert(fingerprint, row);
        }
        self.end(at, batch, |row| {
            row.rule == rule && asked.contains(row.subject.as_str()) && !found.contains(&row.fingerprint)
        });
    }

    /// Ends what fires for a subject that is gone.
    pub(crate) fn forget(&mut self, subject: &SubjectName, at: WallTime, batch: &mut Batch) {
        self.end(at, batch, |row| row.subject == subject.as_str());
    }

    fn end(&mut self, at: WallTime, batch: &mut Batch, ends: impl Fn(&AlertRow) -> bool) {
        for (fingerprint, row) in self.firing.extract_if(.., |_, row| ends(row)) {
            batch.entries.push(entry(at, &body(&row, AlertState::Resolved)));
            batch.alerts_resolved.push(fingerprint);
        }
    }
}

fn body(row: &AlertRow, state: AlertState) -> Body {
    Body::Alert {
        rule: row.rule.clone(),
        fingerprint: row.fingerprint.clone(),
        subject: row.subject.clone(),
        severity: match row.severity.as_str() {
            "info" => Severity::Info,
            "critical" => Severity::Critical,
            _ => Severity::Warning,
        },
        state,
        summary: row.summary.clone(),
        started: WallTime::from_millis(row.started_ms),
    }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Critical => "critical",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(subject: &str) -> Finding {
        Finding { key: "stale".into(), subject: subject.into(), severity: Severity::Critical, summary: "silent".into() }
    }

    fn states(batch: &Batch) -> Vec<String> {
        batch
            .entries
            .iter()
            .map(|entry| serde_json::from_str::<serde_json::Value>(&entry.body).unwrap()["state"].to_string())
            .collect()
    }

    #[test]
    fn a_finding_fires_once_and_ends_only_by_a_call_that_contained_its_subject() {
        let (a, b): (SubjectName, SubjectName) = ("a".parse().unwrap(), "b".parse().unwrap());
        let at = WallTime::from_millis(1000);
        let mut alerts = Alerts::default();
        let mut batch = Batch::default();
        alerts.apply("liveness", std::slice::from_ref(&a), vec![finding("a"), finding("a")], at, &mut batch);
        alerts.apply("liveness", std::slice::from_ref(&a), vec![finding("a")], at, &mut batch);
        alerts.apply("liveness", &[b], vec![], at, &mut batch);
        alerts.apply("another", std::slice::from_ref(&a), vec![], at, &mut batch);
        assert_eq!(states(&batch), ["\"firing\""]);
        let mut restarted = Alerts::new(batch.alerts_firing.clone());
        let mut batch = Batch::default();
        restarted.apply("liveness", std::slice::from_ref(&a), vec![finding("a")], at, &mut batch);
        assert_eq!(states(&batch), [""; 0]);
        restarted.apply("liveness", &[a], vec![], at, &mut batch);
        assert_eq!(states(&batch), ["\"resolved\""]);
        assert_eq!(batch.alerts_resolved, ["liveness/stale/a"]);
    }

    #[test]
    fn a_finding_about_a_subject_that_was_not_asked_about_is_dropped() {
        let mut batch = Batch::default();
        Alerts::default().apply("r", &[], vec![finding("a")], WallTime::from_millis(0), &mut batch);
        assert!(batch.entries.is_empty());
    }
}
