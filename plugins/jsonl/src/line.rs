//! One entry as a line.

use core::fmt::Write as _;

use super::bindings::latido::plugin::journal::{Batch, Field, ValueKind};
use super::entries::{Entry, Value};

/// A field of the batch on its way into lines.
struct Name {
    /// of `progress.done` it is `progress`
    record: Option<String>,
    /// of `progress.done` it is `"done":`
    key: String,
    holds: ValueKind,
}

/// Writes the entries of one batch as lines. What they share is made once.
pub(crate) struct Lines {
    /// the journal, quoted
    journal: String,
    names: Vec<Name>,
    moments: Moments,
}

impl Lines {
    /// Lines for the entries of this batch.
    pub(crate) fn of(batch: &Batch) -> Self {
        let mut journal = String::new();
        text(&mut journal, &batch.journal);
        Self { journal, names: names(&batch.fields), moments: Moments::default() }
    }

    /// Adds an entry as one JSON object, with a line feed behind it.
    pub(crate) fn add(&mut self, lines: &mut String, entry: &Entry<'_>) {
        lines.push_str("{\"sequence\":");
        whole(lines, entry.sequence as i64);
        lines.push_str(",\"agent\":");
        lines.push_str(&self.journal);
        lines.push_str(",\"at\":");
        self.moments.add(lines, entry.at);
        lines.push_str(",\"type\":");
        text(lines, entry.kind);
        // Fields of one record come together: `progress.done` after `progress.fraction`.
        let mut open: Option<&str> = None;
        for (place, value) in &entry.fields {
            let Some(name) = self.names.get(*place) else { continue };
            if open != name.record.as_deref() {
                if open.is_some() {
                    lines.push('}');
                }
                open = name.record.as_deref();
                if let Some(record) = open {
                    lines.push(',');
                    text(lines, record);
                    lines.push_str(":{");
                }
            }
            if !lines.ends_with('{') {
                lines.push(',');
            }
            lines.push_str(&name.key);
            self.moments.value(lines, name.holds, *value);
        }
        if open.is_some() {
            lines.push('}');
        }
        lines.push_str("}\n");
    }
}

fn names(fields: &[Field]) -> Vec<Name> {
    let name = |field: &Field| {
        let (record, name) = match field.name.split_once('.') {
            Some((record, name)) => (Some(record.to_owned()), name),
            None => (None, field.name.as_str()),
        };
        let suffix = if field.holds == ValueKind::Duration { "_s" } else { "" };
        let mut key = String::new();
        text(&mut key, &format!("{}{suffix}", name.replace('-', "_")));
        key.push(':');
        Name { record, key, holds: field.holds }
    };
    fields.iter().map(name).collect()
}

/// Writes moments. Those of one second have all but their milliseconds in common, and follow each other.
#[derive(Default)]
struct Moments {
    second: Option<u64>,
    /// the second, up to its point
    text: String,
}

impl Moments {
    /// Adds a moment, quoted.
    fn add(&mut self, out: &mut String, millis: u64) {
        let (second, milli) = (millis / 1000, millis % 1000);
        if self.second != Some(second) {
            self.text = rfc3339(second * 1000);
            self.text.truncate(self.text.len() - "000Z".len());
            self.second = Some(second);
        }
        out.push('"');
        out.push_str(&self.text);
        out.push_str(match milli {
            0..=9 => "00",
            10..=99 => "0",
            _ => "",
        });
        whole(out, milli as i64);
        out.push_str("Z\"");
    }

    fn value(&mut self, out: &mut String, holds: ValueKind, value: Value<'_>) {
        match value {
            Value::Text(value) => text(out, value),
            Value::Number(value) => match holds {
                ValueKind::Time => self.add(out, value as u64),
                ValueKind::Duration => number(out, value / 1000.0),
                ValueKind::Flag => out.push_str(if value == 0.0 { "false" } else { "true" }),
                ValueKind::Text | ValueKind::Whole | ValueKind::Real => number(out, value),
            },
        }
    }
}

/// A number: whole ones without a point. JSON has no word for what is no number.
fn number(out: &mut String, value: f64) {
    /// Beyond it not every whole number is one.
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

    if value.fract() == 0.0 && value.abs() < WHOLE_MAX {
        whole(out, value as i64);
    } else if value.is_finite() {
        let _always = write!(out, "{value}");
    } else {
        out.push_str("null");
    }
}

fn whole(out: &mut String, value: i64) {
    out.push_str(itoa::Buffer::new().format(value));
}

/// A text between quotes. What needs no escape, mostly all of it, is added at once.
fn text(out: &mut String, value: &str) {
    out.push('"');
    let mut rest = value;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        let (plain, escaped) = rest.split_at(at);
        out.push_str(plain);
        match escaped.as_bytes().first() {
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(b'\n') => out.push_str("\\n"),
            Some(b'\r') => out.push_str("\\r"),
            Some(b'\t') => out.push_str("\\t"),
            control => drop(write!(out, "\\u{:04x}", control.copied().unwrap_or_default())),
        }
        rest = escaped.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

/// A moment in UTC, with milliseconds. The calendar is Howard Hinnant's `civil_from_days`.
pub(crate) fn rfc3339(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let shifted = days + 719_468; // days since 0000-03-01
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}
