//! The documented formats are the real ones: each example of README.md is read by the type that it is an example of.

use std::collections::BTreeSet;

use latido_protocol::alerts::AlertsDocument;
use latido_protocol::files::{Busy, End, JobFile, LedgerLine, Start, Status, Wanted};
use latido_protocol::status::StatusDocument;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::assert_none;
use crate::source;

/// The mark before an example.
const MARK: &str = "<!-- shape: ";

/// The formats that have to be documented.
const SHAPES: [&str; 9] = ["status", "alerts", "job", "wanted", "busy", "start", "beat", "end", "ledger"];

/// One documented format: its example, and the fields of the table below it.
struct Shape {
    name: String,
    example: String,
    fields: BTreeSet<String>,
}

fn shapes(document: &str) -> Vec<Shape> {
    let parts = document.split(MARK).skip(1);
    parts
        .map(|part| {
            let (name, rest) = part.split_once(" -->").unwrap();
            let (_, rest) = rest.split_once("```json\n").unwrap();
            let (example, rest) = rest.split_once("```").unwrap();
            let rows = rest.trim_start().lines().take_while(|line| line.starts_with('|')).skip(2);
            let fields = rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned()));
            Shape { name: name.to_owned(), example: example.to_owned(), fields: fields.collect() }
        })
        .collect()
}

/// What the type writes when it has read the example.
fn read_and_write<T: DeserializeOwned + Serialize>(example: &str) -> Result<Value, String> {
    let read: T = serde_json::from_str(example).map_err(|error| error.to_string())?;
    serde_json::to_value(read).map_err(|error| error.to_string())
}

fn written(shape: &Shape) -> Result<Value, String> {
    match shape.name.as_str() {
        "status" => read_and_write::<StatusDocument>(&shape.example),
        "alerts" => read_and_write::<AlertsDocument>(&shape.example),
        "job" => read_and_write::<JobFile>(&shape.example),
        "wanted" => read_and_write::<Wanted>(&shape.example),
        "busy" => read_and_write::<Busy>(&shape.example),
        "start" => read_and_write::<Start>(&shape.example),
        "beat" => read_and_write::<Status>(&shape.example),
        "end" => read_and_write::<End>(&shape.example),
        "ledger" => read_and_write::<LedgerLine>(&shape.example),
        other => Err(format!("no format is called {other}")),
    }
}

/// Where example, table and type differ.
fn differences(shape: &Shape) -> Vec<String> {
    let name = &shape.name;
    let written = match written(shape) {
        Ok(written) => written,
        Err(error) => return vec![format!("{name}: the example cannot be read: {error}")],
    };
    let example: Value = serde_json::from_str(&shape.example).unwrap();
    let mut findings = Vec::new();
    if written != example {
        findings.push(format!("{name}: the example is\n{example}\nand latido writes\n{written}"));
    }
    let fields: BTreeSet<String> = written.as_object().unwrap().keys().cloned().collect();
    for missing in fields.difference(&shape.fields) {
        findings.push(format!("{name}: the table lacks `{missing}`"));
    }
    for unknown in shape.fields.difference(&fields) {
        findings.push(format!("{name}: there is no `{unknown}`"));
    }
    findings
}

#[test]
fn documented_formats_are_the_real_ones() {
    let document = std::fs::read_to_string(source::root().join("README.md")).unwrap();
    let shapes = shapes(&document);
    let names: Vec<&str> = shapes.iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(names, SHAPES);
    let findings: Vec<String> = shapes.iter().flat_map(differences).collect();
    assert_none(&findings, "mend README.md");
}

#[test]
fn a_documented_format_that_is_not_real_is_found() {
    let document = "<!-- shape: wanted -->\n```json\n{\"version\":1,\"want\":\"run\",\"epoch\":1,\
                    \"at\":\"2026-11-29T17:39:19.607Z\",\"by\":\"x\",\"more\":1}\n```\n\n| field | meaning |\n|---|---|\n\
                    | `version` | a |\n| `want` | b |\n| `epoch` | c |\n| `at` | d |\n| `until` | e |\n| `who` | f |\n";
    let findings = shapes(document).iter().flat_map(differences).collect::<Vec<_>>();
    assert_eq!(findings.len(), 3, "{findings:#?}");
    assert!(findings[0].contains("\"until\":null"), "{}", findings[0]);
    assert_eq!(findings[1..], ["wanted: the table lacks `by`", "wanted: there is no `who`"]);
    let unreadable = Shape { name: "busy".to_owned(), example: "{}".to_owned(), fields: BTreeSet::new() };
    assert!(differences(&unreadable)[0].contains("cannot be read"));
}
