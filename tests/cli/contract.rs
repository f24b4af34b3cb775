//! What scripts rely on: the JSON of every command, and the tables and messages for people, as committed files.

use serde_json::Value;

use super::transcript;
use crate::support::{Ran, World, wait_until};

/// Values that differ from run to run, by the key they stand under.
const VARYING: [&str; 12] = [
    "at",
    "since",
    "host",
    "pid",
    "silence_s",
    "in_s",
    "last_beat",
    "progress_changed",
    "started_at",
    "ended_at",
    "directory",
    "environment",
];

/// Replaces what varies by the name of its kind, and keeps `null`.
fn neutral_json(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                if VARYING.contains(&key.as_str()) && !value.is_null() {
                    *value = Value::String(format!("[{}]", key.to_uppercase()));
                } else if let Value::String(text) = value {
                    *text = neutral_line(text);
                } else {
                    neutral_json(value);
                }
            }
        }
        Value::Array(array) => array.iter_mut().for_each(neutral_json),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Replaces times, pids and paths of this run in a text.
fn neutral_text(world: &World, text: &str) -> String {
    let host = latido::jobs::launch::host_name();
    let text = text.replace(world.home().to_str().unwrap(), "HOME").replace(&format!("on {host}"), "on [HOST]");
    text.lines().map(|line| neutral_line(line) + "\n").collect()
}

fn neutral_line(line: &str) -> String {
    let mut previous = String::new();
    let mut parts = Vec::new();
    for word in line.split(' ') {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_time = bare.len() == 24 && bare.ends_with('Z') && bare.contains('T');
        let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        let is_span = bare.ends_with('s') && bare.starts_with(|c: char| c.is_ascii_digit());
        parts.push(if is_time {
            word.replace(bare, "[TIME]")
        } else if is_number && ["pid", "process", "time", "CONT"].contains(&previous.as_str()) {
            word.replace(bare, "[NUMBER]")
        } else if is_span && previous == "silence" {
            word.replace(bare, "[SPAN]")
        } else {
            word.to_owned()
        });
        previous = bare.to_owned();
    }
    parts.join(" ").trim_end().to_owned()
}

/// What was typed and what came.
fn told(world: &World, text: &mut String, words: &[&str], ran: &Ran) {
    text.push_str(&format!("$ latido {}\n", words.join(" ")));
    match serde_json::from_str::<Value>(&ran.stdout) {
        Ok(mut document) => {
            neutral_json(&mut document);
            text.push_str(&serde_json::to_string_pretty(&document).unwrap());
            text.push('\n');
        }
        Err(_) => text.push_str(&neutral_text(world, &ran.stdout)),
    }
    for line in neutral_text(world, &ran.stderr).lines() {
        text.push_str(&format!("! {line}\n"));
    }
    if ran.code != Some(0) {
        text.push_str(&format!("(exit {})\n", ran.code.unwrap()));
    }
}

#[track_caller]
fn expect(world: &World, name: &str, commands: &[&[&str]]) {
    let mut text = String::new();
    for words in commands {
        let ran = world.latido(words);
        told(world, &mut text, words, &ran);
    }
    transcript::expect(&format!("jobs/{name}"), &text);
}

/// One job of each kind that a look can find without an agent.
fn jobs() -> World {
    let world = World::new();
    world.detach("completed", &[], "exit 0");
    world.detach("failed", &[], "exit 3");
    world.detach("killed", &[], "kill -9 $$");
    world.detach(
        "running",
        &[],
        "latido beat --done 1 --total 4 --step one --checkpoint c1 --state busy --errors 2; exec sleep 100",
    );
    world.latido(&["run", "--name", "unknown-program", "--", "/no/such/program"]).ends_with(125);
    for ended in ["completed", "failed", "killed", "unknown-program"] {
        world.end(ended, 1);
    }
    wait_until("the beat", || world.status("running").state.is_some());
    world
}

#[test]
fn looking_at_jobs() {
    let world = jobs();
    let looks: [&[&str]; 6] = [
        &["status", "completed", "failed", "killed", "running", "unknown-program"],
        &["status", "--json"],
        &["why", "killed"],
        &["orphans"],
        &["orphans", "--json"],
        &["events"],
    ];
    expect(&world, "looking", &looks);
}

#[test]
fn the_ledger_of_jobs() {
    let world = World::new();
    for (name, script) in [("a", "exit 0"), ("b", "exit 3"), ("c", "kill -9 $$")] {
        world.detach(name, &[], script);
        world.end(name, 1);
    }
    expect(&world, "ledger", &[&["ledger"], &["ledger", "--json"]]);
}

#[test]
fn a_life_of_a_job() {
    let world = World::new();
    let life: [&[&str]; 15] = [
        &["status"],
        &["run", "--detach", "--name", "a", "--", "sleep", "100"],
        &["run", "--detach", "--name", "a", "--", "sleep", "100"],
        &["status", "a"],
        &["remove", "a"],
        &["wait", "a", "--for", "1ms"],
        &["stop", "a"],
        &["stop", "a"],
        &["wait", "a"],
        &["beat", "a", "--answer"],
        &["resume", "a"],
        &["resume", "a"],
        &["stop", "a", "--force"],
        &["remove", "a"],
        &["status", "a"],
    ];
    let mut text = String::new();
    for words in life {
        let ran = world.latido(words);
        // The pids of those that live are as many as the moment has them.
        let stderr = ran.stderr.lines().map(|line| match line.strip_prefix("  cause: pid ") {
            Some(_) => "  cause: [PROCESSES] lives\n".to_owned(),
            None => format!("{line}\n"),
        });
        let ran = Ran { stderr: stderr.collect(), ..ran };
        told(&world, &mut text, words, &ran);
    }
    transcript::expect("jobs/life", &text);
}

#[test]
fn what_would_be_run() {
    let world = World::new();
    let plans: [&[&str]; 2] = [
        &["run", "--dry-run", "--ttl", "90s", "--max-attempts", "3", "--backoff", "1s..1m", "--", "sleep", "1"],
        &["run", "--dry-run", "--json", "--resume-on", "lost,failed", "--run-for", "1h", "--", "sleep", "1"],
    ];
    expect(&world, "dry-run", &plans);
    assert!(!world.state().path().exists(), "a dry run made something");
}

#[test]
fn starting_with_json() {
    let world = World::new();
    expect(&world, "run-json", &[&["run", "--detach", "--json", "--name", "a", "--", "sleep", "100"]]);
    let ran = world.latido(&["run", "--json", "--name", "b", "--", "echo", "hello"]).ends_with(0);
    assert_eq!(ran.stdout, "hello\n");
    let started: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!((&started["name"], &started["attempt"]), (&Value::from("b"), &Value::from(1)));
    let lines = world.latido(&["logs", "b", "--json"]).ends_with(0).stdout;
    assert_eq!(lines, "{\"attempt\":1,\"text\":\"hello\"}\n");
}
