//! The schema and its migrations. `PRAGMA user_version` holds the number of the newest one that was applied.

use super::bindings::exports::latido::plugin::sink::PluginError;
use super::bindings::latido::plugin::sql::{self, Value};
use super::refusal;

/// One migration: statements that are applied in order, forward only. Each can be applied twice, since a crash may
/// come between the last of them and the number.
const MIGRATIONS: [&[&str]; 1] = [&[
    "CREATE TABLE IF NOT EXISTS entries (
        agent TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT,
        attempt INTEGER,
        epoch INTEGER,
        verdict TEXT,
        previous_verdict TEXT,
        reason TEXT,
        outcome TEXT,
        outcome_code INTEGER,
        outcome_detail TEXT,
        class TEXT,
        started_ms INTEGER,
        fraction REAL,
        done INTEGER,
        total INTEGER,
        step TEXT,
        checkpoint TEXT,
        turns INTEGER,
        tokens INTEGER,
        cost_usd REAL,
        beat INTEGER,
        state TEXT,
        errors INTEGER,
        rule TEXT,
        fingerprint TEXT,
        severity TEXT,
        alert_state TEXT,
        previous_holder TEXT,
        silence_ms INTEGER,
        pickups INTEGER,
        attributes TEXT,
        PRIMARY KEY (agent, sequence)
    ) STRICT, WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS entries_by_subject ON entries (subject, at_ms)",
    "CREATE VIEW IF NOT EXISTS beats AS SELECT agent, sequence, at_ms, subject, attempt, epoch, beat, state, errors,
        fraction, done, total, step, checkpoint, turns, tokens, cost_usd FROM entries WHERE kind = 'beat'",
    "CREATE VIEW IF NOT EXISTS transitions AS SELECT agent, sequence, at_ms, subject, attempt, epoch,
        previous_verdict, verdict, reason FROM entries WHERE kind = 'transition'",
    "CREATE VIEW IF NOT EXISTS attempts AS SELECT agent, sequence, at_ms AS ended_ms, started_ms, subject, attempt, epoch,
        outcome, outcome_code, outcome_detail, class, reason, fraction, done, total, step, checkpoint, turns, tokens, cost_usd
        FROM entries WHERE kind = 'attempt-ended'",
    "CREATE VIEW IF NOT EXISTS alerts AS SELECT agent, sequence, at_ms, started_ms, subject, rule, fingerprint,
        severity, alert_state, reason AS summary, attributes FROM entries WHERE kind = 'alert'",
]];

/// Brings the database to the newest schema; a database of a newer plugin is refused, not touched.
pub(crate) fn migrate(database: &str) -> Result<(), PluginError> {
    let rows = sql::query(database, "PRAGMA user_version", &[]).map_err(refusal)?;
    let version = match rows.first().and_then(|row| row.first()) {
        Some(Value::Integer(version)) => usize::try_from(*version).unwrap_or(usize::MAX),
        _ => return Err(PluginError::Retry("the database did not tell its version".into())),
    };
    if version > MIGRATIONS.len() {
        return Err(PluginError::InvalidConfig(format!(
            "the database has schema version {version}, this plugin knows up to {}: use the newer plugin, or another file",
            MIGRATIONS.len()
        )));
    }
    for (number, statements) in MIGRATIONS.iter().enumerate().skip(version) {
        for statement in *statements {
            sql::execute(database, statement, &[]).map_err(refusal)?;
        }
        sql::execute(database, &format!("PRAGMA user_version = {}", number + 1), &[]).map_err(refusal)?;
    }
    Ok(())
}
