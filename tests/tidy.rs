//! The shape of the code, as tests: what a reviewer would otherwise have to remember.
//!
//! Each rule is a pure function from sources to findings. One test applies it to the repository, another to a sample
//! that breaks it, so that no rule can be dead.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, and a helper of a test is part of it")]

#[path = "tidy/edges.rs"]
mod edges;
#[path = "tidy/guests.rs"]
mod guests;
#[path = "tidy/lengths.rs"]
mod lengths;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/readme.rs"]
mod readme;
#[path = "tidy/shapes.rs"]
mod shapes;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/texts.rs"]
mod texts;
#[path = "tidy/used.rs"]
mod used;
#[path = "tidy/words.rs"]
mod words;

/// Fails with all findings, one a line, and with what to do about them.
#[track_caller]
fn assert_none(findings: &[String], remedy: &str) {
    assert!(findings.is_empty(), "{} finding(s); {remedy}:\n{}", findings.len(), findings.join("\n"));
}
