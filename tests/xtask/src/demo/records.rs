//! What latido and its sinks have written, read back.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use latido_protocol::files::LedgerLine;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// One entry of the journal as a sink holds it: what the checks ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The journal's own id.
    pub(crate) agent: String,
    pub(crate) sequence: u64,
    pub(crate) kind: String,
    pub(crate) attempt: Option<u32>,
    /// The verdict after a transition.
    pub(crate) verdict: Option<String>,
}

/// All that one sink holds, in the order of the sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Journal {
    /// Which sink, for messages.
    pub(crate) name: &'static str,
    pub(crate) records: Vec<Record>,
}

/// The SQLite sink's database.
#[derive(Clone, Debug)]
pub(crate) struct Sql {
    pub(crate) journal: Journal,
    /// Its rows of attempts, as a query returns them.
    pub(crate) attempts: Vec<String>,
}

/// The JSONL sink's file.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// Its entries. A file is written at least once: what came again is the same entry.
    pub(crate) journal: Journal,
    /// The lines of the endings, as they stand in the file.
    pub(crate) endings: Vec<String>,
    /// Lines that came again.
    pub(crate) repeated: usize,
}

impl Journal {
    /// The records of one kind.
    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.kind == kind)
    }

    /// Tells whether the end of an attempt has been recorded.
    pub(crate) fn has_end_of(&self, attempt: u32) -> bool {
        self.of_kind("attempt-ended").any(|record| record.attempt == Some(attempt))
    }

    /// How many entries of each kind there are.
    pub(crate) fn counts(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for record in &self.records {
            *counts.entry(record.kind.as_str()).or_default() += 1;
        }
        counts
    }
}

/// What the SQLite sink is asked.
const ENTRIES: &str = "SELECT agent, sequence, kind, attempt, verdict FROM entries ORDER BY agent, sequence";
const ATTEMPTS: &str =
    "SELECT subject, attempt, epoch, outcome, class, reason, done, checkpoint FROM attempts ORDER BY attempt";

/// Reads the SQLite sink's database with SQL. A database that is not there yet holds nothing.
///
/// # Errors
///
/// Names the database that cannot be read.
pub(crate) fn sql(path: &Path) -> Result<Sql> {
    let mut sql = Sql { journal: Journal { name: "the SQLite sink", records: Vec::new() }, attempts: Vec::new() };
    if path.is_file() {
        read_sql(path, &mut sql).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(sql)
}

fn read_sql(path: &Path, sql: &mut Sql) -> rusqlite::Result<()> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // The sink writes in short transactions; a reader waits for them.
    database.busy_timeout(Duration::from_secs(5))?;
    let mut entries = database.prepare(ENTRIES)?;
    let records = entries.query_map([], |row| {
        Ok(Record {
            agent: row.get(0)?,
            sequence: u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default(),
            kind: row.get(2)?,
            attempt: row.get(3)?,
            verdict: row.get(4)?,
        })
    })?;
    sql.journal.records = records.collect::<rusqlite::Result<_>>()?;
    let mut attempts = database.prepare(ATTEMPTS)?;
    let columns: Vec<String> = attempts.column_names().map(str::to_owned).collect();
    let rows = attempts.query_map([], |row| {
        let cells =
            columns.iter().enumerate().map(|(index, column)| Ok(format!("{column}={}", cell(row.get_ref(index)?))));
        Ok(cells.collect::<rusqlite::Result<Vec<_>>>()?.join(" "))
    })?;
    sql.attempts = rows.collect::<rusqlite::Result<_>>()?;
    Ok(())
}

fn cell(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "-".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// Reads the JSONL sink's file. A file that is not there yet holds nothing.
///
/// # Errors
///
/// Names the file and the line that cannot be read, or that came again as another entry.
pub(crate) fn lines(path: &Path) -> Result<Lines> {
    let written = if path.is_file() { json_lines(path)? } else { Vec::new() };
    let mut seen = BTreeMap::<(String, u64), Record>::new();
    let (mut endings, mut repeated) = (Vec::new(), 0);
    for (text, value) in written {
        let record = record(&value).with_context(|| format!("no entry: {text}"))?;
        let key = (record.agent.clone(), record.sequence);
        if let Some(before) = seen.get(&key) {
            ensure!(*before == record, "entry {} came again as another: {text}", record.sequence);
            repeated += 1;
            continue;
        }
        if record.kind == "attempt-ended" {
            endings.push(text);
        }
        seen.insert(key, record);
    }
    Ok(Lines { journal: Journal { name: "the JSONL sink", records: seen.into_values().collect() }, endings, repeated })
}

fn record(value: &Value) -> Result<Record> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let attempt = value.get("attempt").and_then(Value::as_u64).map(u32::try_from).transpose()?;
    Ok(Record {
        agent: text("agent").context("no `agent`")?,
        sequence: value.get("sequence").and_then(Value::as_u64).context("no `sequence`")?,
        kind: text("type").context("no `type`")?,
        attempt,
        verdict: text("current"),
    })
}

/// Reads the ledger.
///
/// # Errors
///
/// Names the file and the line that cannot be read.
pub(crate) fn ledger(path: &Path) -> Result<Vec<LedgerLine>> {
    json_lines(path)?
        .into_iter()
        .map(|(text, value)| serde_json::from_value(value).with_context(|| format!("no ledger line: {text}")))
        .collect()
}

/// A line of the ledger for people.
pub(crate) fn ledger_line(line: &LedgerLine) -> String {
    format!(
        "attempt {}, epoch {}: {} ({}); launched because: {}",
        line.attempt, line.epoch, line.class, line.outcome.detail, line.because
    )
}

/// Reads each whole line of a file as JSON, with its text. What follows the last line feed is still being written.
fn json_lines(path: &Path) -> Result<Vec<(String, Value)>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(|line| {
        let value = serde_json::from_str(line)
            .with_context(|| format!("{} holds a line that is no JSON: {line}", path.display()))?;
        Ok((line.to_owned(), value))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        r#"{"sequence":7,"agent":"a","at":"2026-01-01T00:00:00.000Z","type":"attempt-ended","attempt":2}"#;

    fn lines_of(text: &str) -> Result<Lines> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("entries.jsonl");
        std::fs::write(&path, text)?;
        lines(&path)
    }

    #[test]
    fn a_line_that_came_again_is_one_entry_and_a_torn_one_is_none() {
        let lines = lines_of(&format!("{LINE}\n{LINE}\n{{\"sequ")).unwrap();
        assert_eq!((lines.journal.records.len(), lines.endings.len(), lines.repeated), (1, 1, 1));
        assert!(lines.journal.has_end_of(2) && !lines.journal.has_end_of(3));
    }

    #[test]
    fn rubbish_and_two_entries_of_one_number_are_found() {
        assert!(lines_of("rubbish\n").unwrap_err().to_string().contains("no JSON: rubbish"));
        let other = LINE.replace("\"attempt\":2", "\"attempt\":3");
        assert!(lines_of(&format!("{LINE}\n{other}\n")).unwrap_err().to_string().contains("came again as another"));
    }

    #[test]
    fn rows_are_read_back_with_sql() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.db");
        assert_eq!(sql(&path).unwrap().journal.records, []);
        let database = Connection::open(&path).unwrap();
        let table =
            "CREATE TABLE entries (agent, sequence, kind, attempt, verdict, subject, epoch, outcome, class, reason,
            done, checkpoint); CREATE VIEW attempts AS SELECT * FROM entries WHERE kind = 'attempt-ended';
            INSERT INTO entries (agent, sequence, kind, attempt, class) VALUES ('a', 7, 'attempt-ended', 2, 'lost')";
        database.execute_batch(table).unwrap();
        let sql = sql(&path).unwrap();
        assert!(sql.journal.has_end_of(2));
        assert_eq!(sql.attempts, ["subject=- attempt=2 epoch=- outcome=- class=\"lost\" reason=- done=- checkpoint=-"]);
    }
}
