//! One entry as a line.

use super::bindings::latido::plugin::journal::{Field, ValueKind};
use super::entries::{Entry, Value};

/// Adds an entry as one JSON object, with a line feed behind it.
pub(crate) fn add(lines: &mut String, journal: &str, fields: &[Field], entry: &Entry<'_>) {
    lines.push_str("{\"sequence\":");
    lines.push_str(&entry.sequence.to_string());
    pair(lines, "agent", |out| text(out, journal));
    pair(lines, "at", |out| text(out, &rfc3339(entry.at)));
    pair(lines, "type", |out| text(out, entry.kind));
    // Fields of one record come together: `progress.done` after `progress.fraction`.
    let mut open: Option<&str> = None;
    for (place, value) in &entry.fields {
        let Some(field) = fields.get(*place) else { continue };
        let (record, name) = match field.name.split_once('.') {
            Some((record, name)) => (Some(record), name),
            None => (None, field.name.as_str()),
        };
        if open != record {
            if open.is_some() {
                lines.push('}');
            }
            if let Some(record) = record {
                pair(lines, record, |out| out.push('{'));
            }
            open = record;
        }
        let suffix = if field.holds == ValueKind::Duration { "_s" } else { "" };
        pair(lines, &format!("{}{suffix}", name.replace('-', "_")), |out| self::value(out, field.holds, *value));
    }
    if open.is_some() {
        lines.push('}');
    }
    lines.push_str("}\n");
}

/// Adds a name and what `write` writes.
fn pair(out: &mut String, name: &str, write: impl FnOnce(&mut String)) {
    if !out.ends_with('{') {
        out.push(',');
    }
    text(out, name);
    out.push(':');
    write(out);
}

fn value(out: &mut String, holds: ValueKind, value: Value<'_>) {
    match value {
        Value::Text(value) => text(out, value),
        Value::Number(value) => match holds {
            ValueKind::Time => text(out, &rfc3339(value as u64)),
            ValueKind::Duration => number(out, value / 1000.0),
            ValueKind::Flag => out.push_str(if value == 0.0 { "false" } else { "true" }),
            ValueKind::Text | ValueKind::Whole | ValueKind::Real => number(out, value),
        },
    }
}

/// A number: whole ones without a point. JSON has no word for what is no number.
fn number(out: &mut String, value: f64) {
    if value.is_finite() { out.push_str(&value.to_string()) } else { out.push_str("null") }
}

fn text(out: &mut String, value: &str) {
    out.push('"');
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
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
