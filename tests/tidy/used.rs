//! What is kept for a test is used by one.

use crate::assert_none;
use crate::source::{self, Source};

/// Folders of transcripts that tests compare with.
const EXPECTED: &str = "tests/cli/expected";

/// Folder of the guests that misbehave.
const GUESTS: &str = "tests/guests";

/// The things that no text names.
fn unnamed(things: &[String], texts: &[&Source]) -> Vec<String> {
    let named = |thing: &&String| {
        // A folder with hyphens may be named by its crate, which has none.
        let spellings = [(*thing).clone(), thing.replace('-', "_")];
        texts.iter().any(|source| spellings.iter().any(|spelling| source.text.contains(spelling)))
    };
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

/// Names in the last column of a table's rows, where they look like tests: several words joined by `_`.
fn proofs(document: &str) -> Vec<String> {
    let rows = document.lines().filter(|line| line.starts_with("| ") && line.trim_end().ends_with("` |"));
    let cells = rows.filter_map(|row| row.trim_end().trim_end_matches('|').rsplit('|').next());
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.filter(|name| name.matches('_').count() > 2).map(str::to_owned).collect()
}

/// The proofs that no file defines as a function.
fn unproved(proofs: &[String], sources: &[Source]) -> Vec<String> {
    let is_defined = |name: &&String| sources.iter().any(|source| source.text.contains(&format!("fn {name}(")));
    proofs.iter().filter(|name| !is_defined(name)).map(|name| format!("{name} is no test")).collect()
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let document = std::fs::read_to_string(source::root().join("ARCHITECTURE.md")).unwrap();
    let proofs = proofs(&document);
    assert!(proofs.len() >= 11, "the table of invariants was not found: {proofs:?}");
    assert_none(&unproved(&proofs, &source::rust()), "name the test that proves it");
}

#[test]
fn a_proof_that_is_gone_is_found() {
    let names = proofs("| 1 | x | no `y` | `a_b_c_d`, `e_f_g_h` |\n| 2 | x_y_z_w | – |\n");
    assert_eq!(names, ["a_b_c_d", "e_f_g_h"]);
    let sources = [source::sample("a.rs", "fn a_b_c_d() {}")];
    assert_eq!(unproved(&names, &sources), ["e_f_g_h is no test"]);
}

#[test]
fn what_nobody_names_is_found() {
    let script = source::sample("tests/cli/run.rs", "expect(\"run_detached\")");
    let things = ["run_detached".to_owned(), "forgotten".to_owned()];
    assert_eq!(unnamed(&things, &[&script]), ["forgotten is named by no test"]);
}
