//! The SQL of alerts and silences.

use rusqlite::{Connection, params};

use crate::alert_rows::{AlertRow, SilenceRow};
use crate::queries::{bound, number};
use crate::rows::Batch;

/// Writes what a batch says of alerts and silences. Its numbers have been checked.
pub(crate) fn write(connection: &Connection, batch: &Batch) -> rusqlite::Result<()> {
    for alert in &batch.alerts {
        let sql = "insert or replace into alerts (fingerprint, rule, key, about, subject, host, severity, summary,
                       started_ms, standing, told, told_ms, acknowledged, acknowledged_by, comings, subjects)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        connection.prepare_cached(sql)?.execute(params![
            alert.fingerprint,
            alert.rule,
            alert.key,
            alert.about,
            alert.subject,
            alert.host,
            alert.severity,
            alert.summary,
            bound(alert.started_ms),
            alert.standing,
            alert.told,
            bound(alert.told_ms),
            alert.acknowledged,
            alert.acknowledged_by,
            alert.comings,
            alert.subjects,
        ])?;
    }
    for fingerprint in &batch.alerts_over {
        connection.prepare_cached("delete from alerts where fingerprint = ?1")?.execute([fingerprint])?;
    }
    for silence in &batch.silences {
        let sql =
            "insert or replace into silences (number, scope, since_ms, until_ms, until_resolved, asked_by, reason)
                   values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        connection.prepare_cached(sql)?.execute(params![
            silence.number,
            silence.scope,
            bound(silence.since_ms),
            bound(silence.until_ms),
            silence.until_resolved,
            silence.asked_by,
            silence.reason,
        ])?;
    }
    for number in &batch.silences_over {
        connection.prepare_cached("delete from silences where number = ?1")?.execute([number])?;
    }
    Ok(())
}

/// All alerts that are not over, by fingerprint.
pub(crate) fn alerts(connection: &Connection) -> rusqlite::Result<Vec<AlertRow>> {
    let mut query = connection.prepare_cached(
        "select fingerprint, rule, key, about, subject, host, severity, summary, started_ms, standing, told, told_ms,
             acknowledged, acknowledged_by, comings, subjects
         from alerts order by fingerprint",
    )?;
    let rows = query.query_map([], |row| {
        Ok(AlertRow {
            fingerprint: row.get(0)?,
            rule: row.get(1)?,
            key: row.get(2)?,
            about: row.get(3)?,
            subject: row.get(4)?,
            host: row.get(5)?,
            severity: row.get(6)?,
            summary: row.get(7)?,
            started_ms: number(row, 8)?,
            standing: row.get(9)?,
            told: row.get(10)?,
            told_ms: number(row, 11)?,
            acknowledged: row.get(12)?,
            acknowledged_by: row.get(13)?,
            comings: row.get(14)?,
            subjects: row.get(15)?,
        })
    })?;
    rows.collect()
}

/// All silences that hold, by number.
pub(crate) fn silences(connection: &Connection) -> rusqlite::Result<Vec<SilenceRow>> {
    let mut query = connection.prepare_cached(
        "select number, scope, since_ms, until_ms, until_resolved, asked_by, reason from silences order by number",
    )?;
    let rows = query.query_map([], |row| {
        Ok(SilenceRow {
            number: row.get(0)?,
            scope: row.get(1)?,
            since_ms: number(row, 2)?,
            until_ms: number(row, 3)?,
            until_resolved: row.get(4)?,
            asked_by: row.get(5)?,
            reason: row.get(6)?,
        })
    })?;
    rows.collect()
}
