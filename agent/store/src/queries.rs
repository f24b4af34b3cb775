//! The statements of the SQLite store. Every one is prepared once for each connection.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::alert_queries;
use crate::error::StoreError;
use crate::registry_queries;
use crate::rows::{Batch, Committed, Cursor, EntryRow, JournalBound, NewEntry, SetAside, SubjectRow, Trimmed};
use crate::sqlite::Failure;
use crate::store::PLUGIN_STATE_BYTES_MAX;

/// Reads a number that every writer gives as an unsigned one.
pub(crate) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

pub(crate) fn optional_number(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    match row.get::<_, Option<i64>>(column)? {
        Some(_) => number(row, column).map(Some),
        None => Ok(None),
    }
}

/// The largest number a row can have stands for all above it, in comparisons only.
pub(crate) fn bound(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes all parts of the batch in the order of its fields. Its numbers have been checked.
pub(crate) fn write_batch(connection: &Connection, batch: &Batch) -> rusqlite::Result<Committed> {
    let mut refused = write_subjects(connection, &batch.subjects)?;
    registry_queries::write(connection, &batch.registry, &mut refused)?;
    if !batch.removed.is_empty() {
        let mut remove = connection.prepare_cached("delete from subjects where name = ?1")?;
        for name in &batch.removed {
            remove.execute([name])?;
        }
    }
    let before = last_sequence(connection)?;
    let last_sequence = append(connection, before, &batch.entries)?;
    alert_queries::write(connection, batch)?;
    Ok(Committed { first_sequence: before + 1, last_sequence, refused })
}

fn write_subjects(connection: &Connection, rows: &[SubjectRow]) -> rusqlite::Result<Vec<String>> {
    let mut refused = Vec::new();
    if rows.is_empty() {
        return Ok(refused);
    }
    let mut write = connection.prepare_cached(
        "insert into subjects (name, kind, verdict, phase, reason, since_ms, attempt, epoch, pickups, last_beat_ms,
                               sequence, state, deadline_ms)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         on conflict (name) do update set
             kind = excluded.kind, verdict = excluded.verdict, phase = excluded.phase, reason = excluded.reason,
             since_ms = excluded.since_ms, attempt = excluded.attempt, epoch = excluded.epoch,
             pickups = excluded.pickups, last_beat_ms = excluded.last_beat_ms, sequence = excluded.sequence,
             state = excluded.state, deadline_ms = excluded.deadline_ms
         where excluded.epoch >= subjects.epoch",
    )?;
    for row in rows {
        let written = write.execute(params![
            row.name,
            row.kind,
            row.verdict,
            row.phase,
            row.reason,
            bound(row.since_ms),
            row.attempt,
            bound(row.epoch),
            row.pickups,
            row.last_beat_ms.map(bound),
            bound(row.sequence),
            row.state,
            row.deadline_ms.map(bound),
        ])?;
        if written == 0 {
            refused.push(row.name.clone());
        }
    }
    Ok(refused)
}

fn append(connection: &Connection, before: u64, entries: &[NewEntry]) -> rusqlite::Result<u64> {
    if entries.is_empty() {
        return Ok(before);
    }
    let mut sequence = before;
    let mut write = connection
        .prepare_cached("insert into entries (sequence, at_ms, kind, subject, body) values (?1, ?2, ?3, ?4, ?5)")?;
    for entry in entries {
        sequence += 1;
        write.execute(params![bound(sequence), bound(entry.at_ms), entry.kind, entry.subject, entry.body])?;
    }
    connection.prepare_cached("update journal set last_sequence = ?1 where one = 1")?.execute([bound(sequence)])?;
    Ok(sequence)
}

pub(crate) fn last_sequence(connection: &Connection) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("select last_sequence from journal where one = 1")?;
    query.query_row([], |row| number(row, 0))
}

pub(crate) fn entries_after(
    connection: &Connection,
    sequence: u64,
    kinds: &[String],
    limit: usize,
) -> rusqlite::Result<Vec<EntryRow>> {
    let read = |row: &Row<'_>| {
        Ok(EntryRow {
            sequence: number(row, 0)?,
            at_ms: number(row, 1)?,
            kind: row.get(2)?,
            subject: row.get(3)?,
            body: row.get(4)?,
        })
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    if kinds.is_empty() {
        let mut query = connection.prepare_cached(
            "select sequence, at_ms, kind, subject, body from entries where sequence > ?1 order by sequence limit ?2",
        )?;
        return query.query_map(params![bound(sequence), limit], read)?.collect();
    }
    let mut query = connection.prepare_cached(
        "select sequence, at_ms, kind, subject, body from entries
         where sequence > ?1 and kind in (select value from json_each(?3)) order by sequence limit ?2",
    )?;
    let kinds = serde_json::Value::from(kinds).to_string();
    query.query_map(params![bound(sequence), limit, kinds], read)?.collect()
}

pub(crate) fn subjects(connection: &Connection) -> rusqlite::Result<Vec<SubjectRow>> {
    let mut query = connection.prepare_cached(
        "select name, kind, verdict, phase, reason, since_ms, attempt, epoch, pickups, last_beat_ms, sequence, state,
                deadline_ms
         from subjects order by name",
    )?;
    let rows = query.query_map([], |row| {
        Ok(SubjectRow {
            name: row.get(0)?,
            kind: row.get(1)?,
            verdict: row.get(2)?,
            phase: row.get(3)?,
            reason: row.get(4)?,
            since_ms: number(row, 5)?,
            attempt: row.get(6)?,
            epoch: number(row, 7)?,
            pickups: row.get(8)?,
            last_beat_ms: optional_number(row, 9)?,
            sequence: number(row, 10)?,
            state: row.get(11)?,
            deadline_ms: optional_number(row, 12)?,
        })
    })?;
    rows.collect()
}

/// Number of the newest entry that the journal has dropped, or 0.
fn trimmed_through(connection: &Connection) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("select min(sequence) - 1 from entries")?;
    match query.query_row([], |row| optional_number(row, 0))? {
        Some(through) => Ok(through),
        None => last_sequence(connection),
    }
}

pub(crate) fn attach_sink(connection: &Connection, sink: &str) -> rusqlite::Result<()> {
    let start = trimmed_through(connection)?;
    let mut write =
        connection.prepare_cached("insert into sinks (sink, sequence) values (?1, ?2) on conflict do nothing")?;
    write.execute(params![sink, bound(start)])?;
    Ok(())
}

pub(crate) fn detach_sink(connection: &Connection, sink: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("delete from set_aside where sink = ?1")?.execute([sink])?;
    connection.prepare_cached("delete from sinks where sink = ?1")?.execute([sink])?;
    Ok(())
}

pub(crate) fn cursor(connection: &Connection, sink: &str) -> rusqlite::Result<Cursor> {
    let mut query = connection.prepare_cached("select sequence, lost from sinks where sink = ?1")?;
    let found = query.query_row([sink], |row| Ok(Cursor { sequence: number(row, 0)?, lost: number(row, 1)? }));
    Ok(found.optional()?.unwrap_or_default())
}

pub(crate) fn advance(connection: &Connection, sink: &str, sequence: u64) -> rusqlite::Result<()> {
    attach_sink(connection, sink)?;
    let sequence = sequence.min(last_sequence(connection)?);
    let mut write = connection.prepare_cached("update sinks set sequence = ?2 where sink = ?1 and sequence < ?2")?;
    write.execute(params![sink, bound(sequence)])?;
    Ok(())
}

pub(crate) fn set_aside(connection: &Connection, sink: &str, sequence: u64, why: &str) -> rusqlite::Result<()> {
    attach_sink(connection, sink)?;
    let mut write = connection.prepare_cached(
        "insert into set_aside (sink, sequence, why)
         select ?1, sequence, ?3 from entries where sequence = ?2 on conflict do nothing",
    )?;
    if write.execute(params![sink, bound(sequence), why])? == 1 {
        let mut count =
            connection.prepare_cached("update sinks set set_aside_count = set_aside_count + 1 where sink = ?1")?;
        count.execute([sink])?;
    }
    Ok(())
}

pub(crate) fn set_aside_count(connection: &Connection, sink: &str) -> rusqlite::Result<u64> {
    let mut query = connection.prepare_cached("select set_aside_count from sinks where sink = ?1")?;
    Ok(query.query_row([sink], |row| number(row, 0)).optional()?.unwrap_or(0))
}

pub(crate) fn set_aside_entries(connection: &Connection, sink: &str) -> rusqlite::Result<Vec<SetAside>> {
    let mut query =
        connection.prepare_cached("select sequence, why from set_aside where sink = ?1 order by sequence")?;
    let rows = query.query_map([sink], |row| Ok(SetAside { sequence: number(row, 0)?, why: row.get(1)? }))?;
    rows.collect()
}

pub(crate) fn plugin_state(connection: &Connection, plugin: &str, key: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut query = connection.prepare_cached("select value from plugin_state where plugin = ?1 and key = ?2")?;
    query.query_row([plugin, key], |row| row.get(0)).optional()
}

pub(crate) fn set_plugin_state(
    connection: &Connection,
    plugin: &str,
    key: &str,
    value: Option<&[u8]>,
) -> Result<(), Failure> {
    let Some(value) = value else {
        connection.prepare_cached("delete from plugin_state where plugin = ?1 and key = ?2")?.execute([plugin, key])?;
        return Ok(());
    };
    let mut others = connection.prepare_cached(
        "select coalesce(sum(octet_length(key) + octet_length(value)), 0) from plugin_state
         where plugin = ?1 and key <> ?2",
    )?;
    let others = others.query_row([plugin, key], |row| number(row, 0))?;
    let bytes = usize::try_from(others).unwrap_or(usize::MAX).saturating_add(key.len() + value.len());
    if bytes > PLUGIN_STATE_BYTES_MAX {
        let (plugin, limit) = (plugin.to_owned(), PLUGIN_STATE_BYTES_MAX);
        return Err(Failure::Refused(StoreError::PluginStateFull { plugin, bytes, limit }));
    }
    connection
        .prepare_cached("insert or replace into plugin_state (plugin, key, value) values (?1, ?2, ?3)")?
        .execute(params![plugin, key, value])?;
    Ok(())
}

pub(crate) fn plugin_keys(connection: &Connection, plugin: &str) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare_cached("select key from plugin_state where plugin = ?1 order by key")?;
    query.query_map([plugin], |row| row.get(0))?.collect()
}

pub(crate) fn trim(connection: &Connection, keep: JournalBound) -> rusqlite::Result<Trimmed> {
    let start = trimmed_through(connection)?;
    let excess = last_sequence(connection)?.saturating_sub(start).saturating_sub(keep.entries_max);
    let removed = excess.min(keep.step as u64);
    if removed == 0 {
        return Ok(Trimmed { more: excess > 0, ..Trimmed::default() });
    }
    let through = start + removed;
    connection.prepare_cached("delete from entries where sequence <= ?1")?.execute([bound(through)])?;
    connection.prepare_cached("delete from set_aside where sequence <= ?1")?.execute([bound(through)])?;
    let mut behind = connection
        .prepare_cached("select sink, ?1 - max(sequence, ?2) from sinks where sequence < ?1 order by sink")?;
    let lost = behind
        .query_map([bound(through), bound(start)], |row| Ok((row.get(0)?, number(row, 1)?)))?
        .collect::<rusqlite::Result<Vec<(String, u64)>>>()?;
    let mut pass = connection
        .prepare_cached("update sinks set lost = lost + ?1 - max(sequence, ?2), sequence = ?1 where sequence < ?1")?;
    pass.execute([bound(through), bound(start)])?;
    Ok(Trimmed { removed, lost, more: excess > removed })
}
