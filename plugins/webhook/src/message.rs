//! An entry as templates see it.

use std::collections::BTreeMap;

use super::bindings::latido::plugin::journal::Batch;
use super::entries::{Entry, Value};
use super::line::{self, Lines};
use super::settings::Settings;

/// What is known of one entry.
pub(crate) struct Message {
    /// The entry's number.
    pub(crate) sequence: u64,
    /// The entry as a JSON object.
    pub(crate) json: String,
    said: BTreeMap<String, String>,
}

impl Message {
    pub(crate) fn of(batch: &Batch, lines: &mut Lines, entry: &Entry<'_>, settings: &Settings) -> Self {
        let mut said = BTreeMap::new();
        for (place, value) in &entry.fields {
            let Some(field) = batch.fields.get(*place) else { continue };
            let text = match value {
                Value::Text(text) => (*text).to_owned(),
                Value::Number(number) => number.to_string(),
            };
            said.insert(field.name.clone(), text);
        }
        let mut json = String::new();
        lines.add(&mut json, entry);
        let mut message = Self { sequence: entry.sequence, json: json.trim_end().into(), said };
        message.derive(batch, entry, settings.text_max);
        message
    }

    /// What the entry says under a name.
    pub(crate) fn says(&self, name: &str) -> &str {
        self.said.get(name).map_or("", String::as_str)
    }

    /// Adds what presets need beside the entry's own fields.
    fn derive(&mut self, batch: &Batch, entry: &Entry<'_>, text_max: usize) {
        let is_over = self.says("state") == "resolved";
        let subject = match self.says("subject") {
            "" => "latido",
            subject => subject,
        };
        let title = if entry.kind == "alert" {
            let state = if is_over { "resolved" } else { self.says("severity") };
            format!("{subject}: {state}")
        } else {
            format!("{subject}: {}", entry.kind)
        };
        let severity = match self.says("severity") {
            "" => "info",
            severity => severity,
        };
        let priority = match (severity, is_over) {
            ("critical", false) => "5",
            ("warning", false) => "4",
            _ => "3",
        };
        let fingerprint = match self.says("fingerprint") {
            "" => format!("{}-{}", batch.journal, entry.sequence),
            fingerprint => fingerprint.to_owned(),
        };
        let text = ["summary", "reason", "detail", "outcome.detail"].iter().map(|name| self.says(name));
        let text = cut(text.into_iter().find(|text| !text.is_empty()).unwrap_or_default(), text_max);
        for (name, value) in [
            ("title", cut(&title, text_max)),
            ("text", text),
            ("severity", severity.to_owned()),
            ("priority", priority.to_owned()),
            ("fingerprint", fingerprint),
            ("action", if is_over { "resolve" } else { "trigger" }.to_owned()),
            ("tag", if is_over { "white_check_mark" } else { "warning" }.to_owned()),
            ("type", entry.kind.to_owned()),
            ("sequence", entry.sequence.to_string()),
            ("journal", batch.journal.clone()),
            ("id", format!("{}-{}", batch.journal, entry.sequence)),
            ("at", line::rfc3339(entry.at)),
            ("at-s", (entry.at / 1000).to_string()),
        ] {
            self.said.insert(name.into(), value);
        }
    }
}

/// The text, at most so many bytes of it, with an ellipsis where it was longer.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.into();
    }
    let mut end = bytes_max.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", text.get(..end).unwrap_or_default())
}
