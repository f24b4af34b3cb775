//! From the text of a config to its document, with the place of every key and every fault that was found.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, ValueDeserializer};

use super::Problem;
use super::document::Document;
use super::nearest::nearest;
use super::schema::{Keys, keys, schema};

/// A file with more faults than this is not a config; the first ones say so.
const PROBLEMS_MAX: usize = 50;

/// A config as it was read.
pub(super) struct Reading {
    /// what it says; what was wrong is left out
    pub(super) document: Document,
    /// where things stand
    pub(super) places: Places,
    /// what was wrong
    pub(super) problems: Vec<Problem>,
}

/// Where each key stands, by its path (`policy.default.ttl`, `sink.0.name`).
pub(super) struct Places {
    file: std::path::PathBuf,
    lines: Vec<usize>,
    text: String,
    spans: BTreeMap<String, Range<usize>>,
}

impl Places {
    fn new(file: &Path, text: &str) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { file: file.to_owned(), lines, text: text.to_owned(), spans: BTreeMap::new() }
    }

    /// A problem at the key with this path, or at the nearest key above it.
    pub(super) fn problem(&self, key: &str, what: String, hint: Option<String>) -> Problem {
        let mut above = key;
        let span = loop {
            match (self.spans.get(above), above.rsplit_once('.')) {
                (Some(span), _) => break Some(span.clone()),
                (None, Some((shorter, _))) => above = shorter,
                (None, None) => break None,
            }
        };
        self.at(span, key, what, hint)
    }

    fn at(&self, span: Option<Range<usize>>, key: &str, what: String, hint: Option<String>) -> Problem {
        let place = span.map(|span| self.line_and_column(span.start));
        Problem { file: self.file.clone(), place, key: key.to_owned(), what, hint }
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        (line, column + 1)
    }
}

/// Reads a config. Every fault is collected, up to a bound.
pub(super) fn read(file: &Path, text: &str) -> Reading {
    let mut places = Places::new(file, text);
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problems = errors.iter().map(|error| places.at(error.span(), "", error.message().to_owned(), None));
        let problems = problems.take(PROBLEMS_MAX).collect();
        return Reading { document: Document::default(), places, problems };
    }
    let span = root.span();
    let mut table = root.into_inner();
    note_table(&table, "", &mut places.spans);
    let mut problems = Vec::new();
    refuse_unknown(&mut table, &schema(), "", &places, &mut problems);
    let document = take_document(table, span, &places, &mut problems);
    problems.sort_by_key(|problem| problem.place);
    problems.truncate(PROBLEMS_MAX);
    Reading { document, places, problems }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn note_table(table: &DeTable<'_>, path: &str, spans: &mut BTreeMap<String, Range<usize>>) {
    for (key, value) in table {
        let path = below(path, key.get_ref());
        spans.insert(path.clone(), key.span());
        note_value(value, &path, spans);
    }
}

fn note_value(value: &Spanned<DeValue<'_>>, path: &str, spans: &mut BTreeMap<String, Range<usize>>) {
    if let Some(table) = value.get_ref().as_table() {
        note_table(table, path, spans);
    } else if let Some(array) = value.get_ref().as_array() {
        for (index, value) in array.iter().enumerate() {
            let path = below(path, &index.to_string());
            spans.insert(path.clone(), value.span());
            note_value(value, &path, spans);
        }
    }
}

/// Takes out every key that the schema does not know, and says so with the nearest that it knows.
fn refuse_unknown(table: &mut DeTable<'_>, schema: &Value, path: &str, places: &Places, problems: &mut Vec<Problem>) {
    match keys(schema) {
        Keys::Known(known) => {
            let mut unknown = Vec::new();
            for (key, value) in table.iter_mut() {
                let path = below(path, key.get_ref());
                if let Some(schema) = known.get(key.get_ref().as_ref()) {
                    refuse_unknown_in(value.get_mut(), schema, &path, places, problems);
                } else {
                    let near = nearest(key.get_ref(), known.keys()).map(|near| format!("did you mean `{near}`?"));
                    let hint = near.unwrap_or_else(|| format!("known here: {}", list(known.keys())));
                    problems.push(places.at(Some(key.span()), &path, "no such key".to_owned(), Some(hint)));
                    unknown.push(key.clone());
                }
            }
            for key in unknown {
                table.remove(&key);
            }
        }
        Keys::Named(each) => {
            for (key, value) in table.iter_mut() {
                refuse_unknown_in(value.get_mut(), each, &below(path, key.get_ref()), places, problems);
            }
        }
        Keys::Free => {}
    }
}

fn refuse_unknown_in(
    value: &mut DeValue<'_>,
    schema: &Value,
    path: &str,
    places: &Places,
    problems: &mut Vec<Problem>,
) {
    match value {
        DeValue::Table(table) => refuse_unknown(table, schema, path, places, problems),
        DeValue::Array(array) => {
            let Some(items) = schema.get("items") else { return };
            for (index, value) in array.iter_mut().enumerate() {
                refuse_unknown_in(value.get_mut(), items, &below(path, &index.to_string()), places, problems);
            }
        }
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

fn list<'k>(names: impl Iterator<Item = &'k String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Reads the table; takes out what cannot be read, says so, and reads again.
fn take_document(mut table: DeTable<'_>, span: Range<usize>, places: &Places, problems: &mut Vec<Problem>) -> Document {
    while problems.len() < PROBLEMS_MAX {
        let whole = Spanned::new(span.clone(), DeValue::Table(table.clone()));
        let error = match Document::deserialize(ValueDeserializer::from(whole)) {
            Ok(document) => return document,
            Err(error) => error,
        };
        let fault = error.span().unwrap_or_else(|| span.clone());
        let path = take_out(&mut table, &fault, "");
        let at = path.as_ref().map_or(Some(fault.clone()), |path| places.spans.get(path).cloned().or(Some(fault)));
        problems.push(places.at(at, path.as_deref().unwrap_or(""), error.message().to_owned(), None));
        if path.is_none() {
            break;
        }
    }
    Document::default()
}

/// Takes the smallest value out that holds the fault; returns its path.
fn take_out(table: &mut DeTable<'_>, fault: &Range<usize>, path: &str) -> Option<String> {
    let key = table.iter().find(|(_, value)| holds(value, fault)).map(|(key, _)| key.clone())?;
    let here = below(path, key.get_ref());
    let deeper = table.get_mut(&key).and_then(|value| match value.get_mut() {
        DeValue::Table(table) => take_out(table, fault, &here),
        DeValue::Array(array) => take_out_of_array(array, fault, &here),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            None
        }
    });
    if deeper.is_none() {
        table.remove(&key);
    }
    deeper.or(Some(here))
}

fn take_out_of_array<'i>(array: &mut DeArray<'i>, fault: &Range<usize>, path: &str) -> Option<String> {
    let index = array.iter().position(|value| holds(value, fault))?;
    let here = below(path, &index.to_string());
    let deeper = array.get_mut(index).and_then(|value| match value.get_mut() {
        DeValue::Table(table) => take_out(table, fault, &here),
        DeValue::Array(inner) => take_out_of_array(inner, fault, &here),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            None
        }
    });
    if deeper.is_none() {
        let kept: DeArray<'i> =
            array.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, value)| value.clone()).collect();
        *array = kept;
    }
    deeper.or(Some(here))
}

/// True if the fault lies in this value, or in one of those below it: a table's own span is its header alone.
fn holds(value: &Spanned<DeValue<'_>>, fault: &Range<usize>) -> bool {
    let span = value.span();
    let own = span.start <= fault.start && fault.end <= span.end;
    own || match value.get_ref() {
        DeValue::Table(table) => table.iter().any(|(_, value)| holds(value, fault)),
        DeValue::Array(array) => array.iter().any(|value| holds(value, fault)),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            false
        }
    }
}
