//! The commands that README.md and CI name are there, and wrong ones are refused.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, and a helper of a test is part of it")]

use std::process::{Command, Output};

#[expect(clippy::disallowed_methods, reason = "the program under test is started as a person would start it")]
fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap()
}

#[test]
fn every_command_that_is_promised_is_there() {
    let help = String::from_utf8(xtask(&["--help"]).stdout).unwrap();
    for command in ["guests", "lint", "test", "demo", "ci", "purity", "simulate", "mutants", "wit-check"] {
        assert!(help.contains(&format!("\n  {command} ")), "`{command}` is missing in:\n{help}");
    }
}

#[test]
fn an_unknown_command_is_wrong_use() {
    let output = xtask(&["tset"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("'test'"), "the nearest command is not named");
}

#[test]
fn a_demo_of_a_directory_that_is_not_there_is_refused() {
    let output = xtask(&["demo", "--built", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: cannot find /nowhere/at/all\n"), "{message}");
}
