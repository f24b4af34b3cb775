//! Help, wrong use, man pages.

use std::collections::BTreeSet;

use super::transcript::{LATIDO, Transcript, command};

/// Every command, with those below it.
const COMMANDS: [&str; 57] = [
    "run",
    "wait",
    "status",
    "why",
    "logs",
    "stop",
    "resume",
    "pause",
    "unpause",
    "remove",
    "beat",
    "fence",
    "worker",
    "worker register",
    "worker list",
    "worker leave",
    "group",
    "group open",
    "claim",
    "assign",
    "release",
    "drain",
    "ledger",
    "events",
    "alerts",
    "alerts list",
    "alerts silence",
    "alerts unsilence",
    "alerts ack",
    "alerts test",
    "orphans",
    "metrics",
    "plugin",
    "plugin bench",
    "plugin chaos",
    "plugin list",
    "plugin reload",
    "plugin new",
    "plugin build",
    "plugin run",
    "plugin test",
    "plugin inspect",
    "plugin check",
    "plugin pack",
    "plugin verify",
    "plugin install",
    "plugin record",
    "plugin replay",
    "agent",
    "replay",
    "config",
    "config check",
    "config show",
    "config schema",
    "doctor",
    "completions",
    "man",
];

fn stdout(words: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let output = command(LATIDO, home.path()).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_list_of_commands_is_complete() {
    let help = stdout(&["--help"]);
    let listed: BTreeSet<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let known: BTreeSet<&str> = COMMANDS.into_iter().filter(|name| !name.contains(' ')).collect();
    assert_eq!(listed, known);
}

#[test]
fn every_command_explains_itself() {
    let mut transcript = Transcript::new();
    transcript.latido("--help").expect("help/latido");
    for name in COMMANDS {
        let mut transcript = Transcript::new();
        transcript.latido(&format!("{name} --help")).expect(&format!("help/{}", name.replace(' ', "-")));
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(stdout(&["--version"]), concat!("latido ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn wrong_use_ends_with_2_and_says_what_was_meant() {
    let mut transcript = Transcript::new();
    for words in [
        "",
        "statsu",
        "run",
        "run --detahc -- true",
        "run true",
        "run --name ../x -- true",
        "run --name UPPER -- true",
        "run --ttl 30 -- true",
        "run --ttl soon -- true",
        "run --run-for -1 -- true",
        "run --run-for 0s -- true",
        "run --hung-after infinite -- true",
        "run --max-attempts 0 -- true",
        "run --max-attempts many -- true",
        "run --resume-on lots -- true",
        "run --backoff 5m..5s -- true",
        "run --backoff 5..10 -- true",
        "run --beats sometimes -- true",
        "run --env NAME -- true",
        "run --env LATIDO_EPOCH=1 -- true",
        "wait",
        "wait --for 5 a",
        "status A",
        "why",
        "logs a --attempt 0",
        "stop a --grace 10",
        "stop a --force --grace 10s",
        "beat --progress 140%",
        "beat --done -1",
        "config chekc",
        "completions tcsh",
    ] {
        transcript.latido(words);
    }
    transcript.expect("help/wrong-use");
}

#[test]
fn what_contradicts_the_policy_is_refused() {
    let mut transcript = Transcript::new();
    for words in [
        "run --policy defualt -- true",
        "run --strategy scritp -- true",
        "run --interval 30s --ttl 30s -- true",
        "run --resume-on hung -- true",
    ] {
        transcript.latido(words);
    }
    transcript.expect("help/contradiction");
}

#[test]
fn every_command_has_a_man_page_that_renders() {
    let home = tempfile::tempdir().unwrap();
    let written = command(LATIDO, home.path()).args(["man", "pages"]).output().unwrap();
    assert!(written.status.success(), "{written:?}");
    let pages: Vec<String> = std::iter::once("latido.1".to_owned())
        .chain(COMMANDS.iter().map(|name| format!("latido-{}.1", name.replace(' ', "-"))))
        .collect();
    for page in &pages {
        let text = std::fs::read_to_string(home.path().join("pages").join(page)).unwrap();
        for part in [".TH ", ".SH NAME", ".SH SYNOPSIS"] {
            assert!(text.contains(part), "{page} has no {part}");
        }
    }
    assert!(stdout(&["man"]).contains(".TH latido 1"));
    if std::path::Path::new("/usr/bin/groff").exists() {
        for page in &pages {
            let mut groff = command("groff", home.path());
            let rendered = groff.args(["-man", "-Tutf8", "-ww", &format!("pages/{page}")]).output().unwrap();
            assert!(rendered.status.success() && rendered.stderr.is_empty(), "{page}: {rendered:?}");
            assert!(rendered.stdout.len() > 200, "{page}");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let mut transcript = Transcript::new();
    transcript.file("pages", "").latido("man pages").expect("help/man-refused");
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let home = tempfile::tempdir().unwrap();
    for words in ["config schema", "--help", "man", "completions bash", "config show"] {
        let script = format!("\"{LATIDO}\" {words} | true; echo ${{PIPESTATUS[0]}}");
        let output = command("bash", home.path()).args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{words}: {output:?}");
        assert!(output.stderr.is_empty(), "{words}: {output:?}");
    }
}
