//! Each misdeed of a guest has a test that sees the host bear it.

use crate::assert_none;
use crate::source::{self, Source, sample};

/// Where the guests of the tests are.
const GUESTS: &str = "tests/guests/";

/// The misdeeds that no test outside the guests names.
fn untested(sources: &[Source]) -> Vec<String> {
    let (guests, others): (Vec<&Source>, Vec<&Source>) = sources
        .iter()
        .filter(|source| source.path.ends_with(".rs"))
        .partition(|source| source.path.starts_with(GUESTS));
    let tests: Vec<&Source> = others.into_iter().filter(|source| source.path.contains("tests/")).collect();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for guest in guests {
        names.extend(guest.text.lines().filter_map(misdeed).map(|name| (guest.path.as_str(), name)));
    }
    names.sort_unstable();
    names.dedup();
    let is_named = |name: &str| tests.iter().any(|test| test.text.contains(&format!("\"{name}\"")));
    names.iter().filter(|(_, name)| !is_named(name)).map(|(path, name)| format!("{path}: {name}")).collect()
}

/// The name of a misdeed that a line chooses: `"loop" => …`.
fn misdeed(line: &str) -> Option<&str> {
    let (name, rest) = line.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start();
    (rest.starts_with("=>") || rest.starts_with("if ")).then_some(name)
}

#[test]
fn every_misdeed_of_a_guest_has_a_test() {
    let untested = untested(&source::all());
    assert_none(&untested, "write a test in agent/plugin-host/tests that sees the host bear it");
}

#[test]
fn a_misdeed_without_a_test_is_found() {
    let guest = "match what {\n    \"loop\" => endless(),\n    \"trap\" if late => panic!(),\n    _ => {}\n}";
    let sources = [
        sample("tests/guests/bad/src/lib.rs", guest),
        sample("agent/plugin-host/tests/it/faults.rs", "load(guest(\"bad\"), \"loop\")"),
        sample("agent/plugin-host/src/host.rs", "\"trap\""),
    ];
    assert_eq!(untested(&sources), ["tests/guests/bad/src/lib.rs: trap"]);
}
