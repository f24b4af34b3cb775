//! What every store keeps of alerts and silences.

use crate::StoreError;
use crate::alert_rows::{AlertRow, SilenceRow};
use crate::rows::Batch;
use crate::store::Store;

pub(crate) fn an_alert_is_kept(store: &mut dyn Store) -> Result<(), StoreError> {
    let alert = |fingerprint: &str| AlertRow {
        fingerprint: fingerprint.to_owned(),
        rule: "liveness".to_owned(),
        key: "stale".to_owned(),
        about: "subject".to_owned(),
        subject: "a".to_owned(),
        host: None,
        severity: "warning".to_owned(),
        summary: "a is stale".to_owned(),
        started_ms: 12,
        standing: "firing".to_owned(),
        told: "warning".to_owned(),
        told_ms: 13,
        acknowledged: None,
        acknowledged_by: None,
        comings: 1,
        subjects: 1,
    };
    let worse = AlertRow {
        rule: "agent".to_owned(),
        key: "host-down".to_owned(),
        about: "host".to_owned(),
        subject: "b".to_owned(),
        host: Some("b".to_owned()),
        severity: "critical".to_owned(),
        summary: "b does not answer".to_owned(),
        started_ms: 14,
        standing: "flapping".to_owned(),
        told: "critical".to_owned(),
        told_ms: 15,
        acknowledged: Some("critical".to_owned()),
        acknowledged_by: Some("ana".to_owned()),
        comings: u32::MAX,
        subjects: 3,
        ..alert("2")
    };
    store.commit(&Batch { alerts: vec![alert("2"), alert("1")], ..Batch::default() })?;
    store.commit(&Batch { alerts: vec![worse.clone()], ..Batch::default() })?;
    assert_eq!(store.alerts()?, [alert("1"), worse]);
    let alerts_over = vec!["2".to_owned(), "unknown".to_owned()];
    store.commit(&Batch { alerts: vec![alert("2")], alerts_over, ..Batch::default() })?;
    assert_eq!(store.alerts()?, [alert("1")]);
    Ok(())
}

pub(crate) fn a_silence_is_kept(store: &mut dyn Store) -> Result<(), StoreError> {
    let silence = |number| SilenceRow {
        number,
        scope: "{\"subject\":\"a\"}".to_owned(),
        since_ms: 1,
        until_ms: 2,
        until_resolved: false,
        asked_by: "ana".to_owned(),
        reason: "maintenance".to_owned(),
    };
    let longer = SilenceRow {
        scope: "{}".to_owned(),
        since_ms: 3,
        until_ms: 4,
        until_resolved: true,
        asked_by: "ben".to_owned(),
        reason: String::new(),
        ..silence(7)
    };
    store.commit(&Batch { silences: vec![silence(7), silence(u32::MAX)], ..Batch::default() })?;
    store.commit(&Batch { silences: vec![longer.clone()], ..Batch::default() })?;
    assert_eq!(store.silences()?, [longer, silence(u32::MAX)]);
    store.commit(&Batch { silences: vec![silence(8)], silences_over: vec![7, 8, 9], ..Batch::default() })?;
    assert_eq!(store.silences()?, [silence(u32::MAX)]);
    Ok(())
}
