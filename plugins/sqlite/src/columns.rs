//! Where each field of an entry is stored: a column of its own, or the JSON object of all others.

use std::collections::BTreeMap;

use super::bindings::latido::plugin::journal::{Batch, Field};
use super::bindings::latido::plugin::sql::{Rows, Step};
use super::entries::{self, Entry, Value};
use super::rows;

/// How a column stores its values.
#[derive(Clone, Copy, PartialEq)]
enum Stored {
    Text,
    Integer,
    Real,
}

/// A column and the fields that it stores; no entry has two of them. The last one holds all that have no column.
type Column = (&'static str, Stored, &'static [&'static str]);

const COLUMNS: [Column; 30] = [
    ("subject", Stored::Text, &["subject"]),
    ("attempt", Stored::Integer, &["attempt"]),
    ("epoch", Stored::Integer, &["epoch"]),
    ("verdict", Stored::Text, &["current"]),
    ("previous_verdict", Stored::Text, &["previous"]),
    ("reason", Stored::Text, &["reason", "detail"]),
    ("outcome", Stored::Text, &["outcome.kind"]),
    ("outcome_code", Stored::Integer, &["outcome.code", "outcome.signal"]),
    ("outcome_detail", Stored::Text, &["outcome.detail"]),
    ("class", Stored::Text, &["outcome.class"]),
    ("started_ms", Stored::Integer, &["started"]),
    ("fraction", Stored::Real, &["progress.fraction"]),
    ("done", Stored::Integer, &["progress.done"]),
    ("total", Stored::Integer, &["progress.total"]),
    ("step", Stored::Text, &["progress.step"]),
    ("checkpoint", Stored::Text, &["progress.checkpoint"]),
    ("turns", Stored::Integer, &["usage.turns"]),
    ("tokens", Stored::Integer, &["usage.tokens"]),
    ("cost_usd", Stored::Real, &["usage.cost-usd"]),
    ("beat", Stored::Integer, &["beat"]),
    ("state", Stored::Text, &["state"]),
    ("errors", Stored::Integer, &["errors"]),
    ("rule", Stored::Text, &["rule"]),
    ("fingerprint", Stored::Text, &["fingerprint"]),
    ("severity", Stored::Text, &["severity"]),
    ("alert_state", Stored::Text, &[]),
    ("previous_holder", Stored::Text, &["previous-holder"]),
    ("silence_ms", Stored::Integer, &["silence"]),
    ("pickups", Stored::Integer, &["pickups"]),
    ("attributes", Stored::Text, &[]),
];

/// The last column: what has no column of its own, as a JSON object.
const ATTRIBUTES: usize = COLUMNS.len() - 1;

/// The kind whose fields are stored under other names.
const ALERT: &str = "alert";

/// The columns that every entry fills, before the others.
const KEY: &str = "agent, sequence, at_ms, kind";
const KEY_WIDTH: u32 = 4;

/// Stores the entries of a batch, and ignores those that come again: a statement for each set of columns that entries
/// fill, so that a row carries nothing that its entry does not say.
pub(crate) fn steps(batch: &Batch) -> Vec<Step> {
    let columns_of =
        |kind: &str| -> Vec<Option<usize>> { batch.fields.iter().map(|field| column_of(kind, &field.name)).collect() };
    let (of_alerts, of_others) = (columns_of(ALERT), columns_of(""));
    let mut by_shape: BTreeMap<u32, Rows> = BTreeMap::new();
    let mut row = [None; COLUMNS.len()];
    for entry in entries::of(batch) {
        row.fill(None);
        let columns = if entry.kind == ALERT { &of_alerts } else { &of_others };
        let others = spread(&entry, columns, &batch.fields, &mut row);
        let attributes = (!others.is_empty()).then(|| serde_json::Value::Object(others).to_string());
        let filled = row.iter().rev().fold(0_u32, |shape, value| shape << 1 | u32::from(value.is_some()));
        let shape = if attributes.is_some() { filled | 1 << ATTRIBUTES } else { filled };
        let rows = by_shape.entry(shape).or_insert_with(|| rows::of_width(KEY_WIDTH + shape.count_ones()));
        rows::text(rows, &batch.journal);
        rows::integer(rows, entry.sequence as i64);
        rows::integer(rows, entry.at as i64);
        rows::text(rows, entry.kind);
        for ((_, stored, _), value) in COLUMNS.iter().zip(&row) {
            match value {
                None => {}
                Some(Value::Text(text)) => rows::text(rows, text),
                Some(Value::Number(number)) if *stored == Stored::Integer => rows::integer(rows, *number as i64),
                Some(Value::Number(number)) => rows::real(rows, *number),
            }
        }
        if let Some(json) = &attributes {
            rows::text(rows, json);
        }
    }
    by_shape.into_iter().map(|(shape, rows)| Step { statement: insert(shape), rows }).collect()
}

/// The statement for a set of columns, one bit each.
fn insert(shape: u32) -> String {
    let filled = COLUMNS.iter().enumerate().filter(|(place, _)| shape >> place & 1 == 1);
    let columns: String = filled.map(|(_, (column, _, _))| format!(", {column}")).collect();
    let marks = ", ?".repeat((KEY_WIDTH + shape.count_ones()) as usize);
    format!("INSERT OR IGNORE INTO entries ({KEY}{columns}) VALUES ({})", marks.trim_start_matches(", "))
}

/// Puts the fields that have a column into the row, and returns the others.
fn spread<'a>(
    entry: &Entry<'a>,
    columns: &[Option<usize>],
    fields: &[Field],
    row: &mut [Option<Value<'a>>; COLUMNS.len()],
) -> serde_json::Map<String, serde_json::Value> {
    let mut others = serde_json::Map::new();
    for (place, value) in &entry.fields {
        let column = columns.get(*place).copied().flatten().and_then(|column| row.get_mut(column));
        match (column, fields.get(*place)) {
            (Some(slot), _) => *slot = Some(*value),
            (None, Some(field)) => {
                let value = match value {
                    Value::Text(text) => (*text).into(),
                    Value::Number(number) => (*number).into(),
                };
                others.insert(field.name.clone(), value);
            }
            (None, None) => {}
        }
    }
    others
}

/// The column of a field; an alert's state and summary have their own names in the schema.
fn column_of(kind: &str, field: &str) -> Option<usize> {
    let named = |name: &str| COLUMNS.iter().position(|(column, _, _)| *column == name);
    match (kind, field) {
        (ALERT, "state") => named("alert_state"),
        (ALERT, "summary") => named("reason"),
        (ALERT, "reason") => None, // why it is told; what it is about is its summary
        _ => COLUMNS.iter().position(|(_, _, stored)| stored.contains(&field)),
    }
}
