//! What is kept for how long. The oldest entries go, a few with every batch, in the batch's own transaction.

use serde_json::{Map, Value as Json};

use super::bindings::exports::latido::plugin::sink::{Batch, PluginError};
use super::bindings::latido::plugin::sql::{self, Step, Value};
use super::{refusal, rows};

/// Entries of one journal that go with one batch at most: more than a batch brings, so that a database which is too large
/// shrinks, and few enough that no batch waits for it.
const STEP: i64 = 2_000;

/// Journals that are looked at with one batch: a database is usually one agent's, whose journal was begun anew now and then.
const JOURNALS_MAX: usize = 100;

const DAY_MS: f64 = 86_400_000.0;

const KNOWN: [&str; 2] = ["keep_days", "entries_max"];

/// What is kept; nothing said is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Retention {
    keep_ms: Option<u64>,
    entries_max: Option<u64>,
}

impl Retention {
    /// Reads `{"keep_days": 30, "entries_max": 1000000}`.
    pub(crate) fn read(settings: &Map<String, Json>) -> Result<Self, String> {
        if let Some(key) = settings.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Err(format!("unknown setting `{key}`; known: {}", KNOWN.join(", ")));
        }
        let least = |key: &str, least: f64| match settings.get(key) {
            None => Ok(None),
            Some(value) => match value.as_f64().filter(|number| *number >= least) {
                Some(number) => Ok(Some(number)),
                None => Err(format!("`{key}` is {value}; it is a number of at least {least}")),
            },
        };
        let keep_ms = least("keep_days", 0.01)?.map(|days| (days * DAY_MS) as u64);
        let entries_max = least("entries_max", 1.0)?.map(|count| count as u64);
        Ok(Self { keep_ms, entries_max })
    }

    /// The statements by which what is too old goes, as far as a batch may take it along.
    pub(crate) fn steps(&self, database: &str, batch: &Batch) -> Result<Vec<Step>, PluginError> {
        let (Some(newest), false) = (batch.times.last().copied(), *self == Self::default()) else {
            return Ok(Vec::new());
        };
        let mut steps = Vec::new();
        let mut journal = String::new();
        for _ in 0..JOURNALS_MAX {
            let sql = "SELECT min(agent) FROM entries WHERE agent > ?1";
            let found = sql::query(database, sql, &[Value::Text(journal)]).map_err(refusal)?;
            let Some(Value::Text(next)) = found.into_iter().flatten().next() else { break };
            steps.extend(self.step(database, &next, newest)?);
            journal = next;
        }
        Ok(steps)
    }

    fn step(&self, database: &str, journal: &str, newest: u64) -> Result<Option<Step>, PluginError> {
        // Mostly nothing goes, and the oldest entry tells so.
        if self.goes_through(database, journal, newest, 1)?.is_none() {
            return Ok(None);
        }
        Ok(self.goes_through(database, journal, newest, STEP)?.map(|through| {
            let mut rows = rows::of_width(2);
            rows::text(&mut rows, journal);
            rows::integer(&mut rows, through);
            Step { statement: "DELETE FROM entries WHERE agent = ?1 AND sequence <= ?2".into(), rows }
        }))
    }

    /// Up to which number the oldest entries of a journal go, of so many that are looked at.
    fn goes_through(
        &self,
        database: &str,
        journal: &str,
        newest: u64,
        looked_at: i64,
    ) -> Result<Option<i64>, PluginError> {
        let sql = "SELECT sequence, at_ms, (SELECT max(sequence) FROM entries WHERE agent = ?1) FROM entries
            WHERE agent = ?1 ORDER BY sequence LIMIT ?2";
        let parameters = [Value::Text(journal.into()), Value::Integer(looked_at)];
        let rows = sql::query(database, sql, &parameters).map_err(refusal)?;
        let old = self.keep_ms.map_or(0, |keep_ms| newest.saturating_sub(keep_ms)) as i64;
        let goes = |row: &Vec<Value>| match row.as_slice() {
            [Value::Integer(sequence), Value::Integer(at), Value::Integer(last)] => {
                let is_too_many = self.entries_max.is_some_and(|max| *sequence <= last.saturating_sub_unsigned(max));
                (*at < old || is_too_many).then_some(*sequence)
            }
            _ => None,
        };
        Ok(rows.iter().map_while(goes).last())
    }
}

/// The schema of the settings.
pub(crate) fn schema() -> String {
    serde_json::json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "keep_days": { "type": "number", "minimum": 0.01, "description": "for how many days entries are kept; for ever unless it is said" },
            "entries_max": { "type": "integer", "minimum": 1, "description": "how many of a journal's newest numbers are kept; all unless it is said" },
        }
    })
    .to_string()
}
