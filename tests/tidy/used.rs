//! What is kept for a test is used by one.

use crate::assert_none;
use crate::source::{self, Source};

/// Folders of transcripts that tests compare with.
const EXPECTED: &str = "tests/cli/expected";

/// Folder of the guests that misbehave.
const GUESTS: &str = "tests/guests";

/// The things that no text names.
fn unnamed(things: &[String], texts: &[&Source]) -> Vec<String> {
    let named = |thing: &&String| texts.iter().any(|source| source.text.contains(thing.as_str()));
    things.iter().filter(|thing| !named(thing)).map(|thing| format!("{thing} is named by no test")).collect()
}

fn tests(sources: &[Source]) -> Vec<&Source> {
    let is_test = |source: &&Source| {
        source.path.ends_with(".rs") && (source.path.starts_with("tests/") || source.path.contains("/tests/"))
    };
    sources.iter().filter(is_test).collect()
}

/// The names of a folder's entries, without their endings.
fn stems(folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(source::root().join(folder)) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_transcript_is_compared_with() {
    let sources = source::all();
    let scripts: Vec<&Source> =
        tests(&sources).into_iter().filter(|source| source.path.starts_with("tests/cli/")).collect();
    assert_none(&unnamed(&stems(EXPECTED), &scripts), "remove the transcript or use it");
}

#[test]
fn every_guest_that_misbehaves_has_a_test() {
    let sources = source::all();
    let hosts: Vec<&Source> =
        tests(&sources).into_iter().filter(|source| !source.path.starts_with(&format!("{GUESTS}/"))).collect();
    let guests: Vec<String> = stems(GUESTS)
        .into_iter()
        .filter(|name| source::root().join(GUESTS).join(name).join("Cargo.toml").is_file())
        .collect();
    assert_none(&unnamed(&guests, &hosts), "a guest without a test proves nothing");
}

#[test]
fn what_nobody_names_is_found() {
    let script = source::sample("tests/cli/run.rs", "expect(\"run_detached\")");
    let things = ["run_detached".to_owned(), "forgotten".to_owned()];
    assert_eq!(unnamed(&things, &[&script]), ["forgotten is named by no test"]);
}
