//! Plugins without an agent: tests, chaos, figures, recorded entries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use super::transcript::{LATIDO, command};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn component(name: &str) -> String {
    root().join("target/components").join(format!("{name}.wasm")).display().to_string()
}

fn cases(name: &str) -> String {
    root().join("plugins").join(name).join("cases").display().to_string()
}

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn latido(&self, words: &[&str]) -> Output {
        command(LATIDO, self.0.path()).arg("plugin").args(words).output().unwrap()
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_plugin_is_tested_without_an_agent_in_every_format() {
    let home = Home::new();
    let (wasm, cases) = (component("script"), cases("script"));
    let output = home.latido(&["test", &wasm, "--cases", &cases]);
    let said = text(&output);
    assert!(output.status.success(), "{said}{}", errors(&output));
    assert!(said.contains("ok    again  (") && said.contains("2 of 2 cases pass"), "{said}");
    assert!(said.contains("what every strategy has to bear\n  ok    settings that mean nothing\n"), "{said}");
    let output = home.latido(&["test", &wasm, "--cases", &cases, "--cases-only", "--json"]);
    let json: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!((&json["passes"], &json["cases"][0]["name"]), (&Value::Bool(true), &Value::from("again")));
    let output =
        home.latido(&["test", &wasm, "--cases", &cases, "--only", "settings", "--cases-only", "--format", "tap"]);
    assert!(text(&output).starts_with("TAP version 14\n1..1\nok 1 - cases: settings\n"), "{}", text(&output));
    let output = home.latido(&["test", &wasm, "--cases", &cases, "--cases-only", "--format", "junit"]);
    assert!(text(&output).contains("<testsuite name=\"script.cases\" tests=\"2\""), "{}", text(&output));
}

#[test]
fn a_case_that_does_not_pass_ends_with_1_and_says_where() {
    let home = Home::new();
    home.file("cases/wrong.toml", "[[call]]\nobserve = { lines = [\"x\"] }\nexpect = { finished = true }\n");
    home.file("cases/typo.toml", "[[call]]\nobserv = { lines = [\"x\"] }\n");
    let output = home.latido(&["test", &component("script"), "--cases", "cases", "--cases-only"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(said.contains("FAIL  wrong") && said.contains("line 1: `observe`: finished: expected true"), "{said}");
    assert!(said.contains("typo.toml:2: there is no key `observ` here; did you mean `observe`?"), "{said}");
    assert!(said.contains("0 of 2 cases pass\n"), "{said}");
    let chatter = "settings = { where = \"write\", what = \"chatter\" }\n[[call]]\nwrite = { entries = [{}] }\n";
    home.file("talks/chatter.toml", chatter);
    let output = home.latido(&["test", &component("guests/misbehave"), "--cases", "talks", "--cases-only", "--logs"]);
    let said = text(&output);
    assert!(said.contains("        log info: line 0\n") && said.contains("        log info: line 99\n"), "{said}");
}

#[test]
fn what_is_no_plugin_is_wrong_use_and_says_what_next() {
    let home = Home::new();
    home.file("text.wasm", "no component");
    home.file("core.wasm", "\0asm\u{1}\0\0\0");
    for (words, why, next) in [
        (["test", "."], "plugin.toml", "latido plugin new"),
        (["test", "nowhere.wasm"], "nowhere.wasm", "name a component"),
        (["chaos", "text.wasm"], "text.wasm: it is a text, and a plugin is", "name a component"),
        (["test", "core.wasm"], "core.wasm: it is a core module", "latido plugin build"),
        (["bench", "cases"], "cases", "name a component"),
    ] {
        let output = home.latido(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", errors(&output));
        let said = errors(&output);
        assert!(said.contains(why) && said.contains(next), "{words:?}: {said}");
    }
}

#[test]
fn chaos_says_what_is_twice_and_that_nothing_is_lost() {
    let home = Home::new();
    let output = home.latido(&["chaos", &component("jsonl"), "--what", "trap-after", "--at", "2"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}{}", errors(&output));
    assert!(said.contains("ok    trap-after at call 2: twice: 11-20"), "{said}");
    let output = home.latido(&["chaos", &component("sqlite"), "--seed", "7", "--rounds", "3", "--json"]);
    let json: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(json["recovers"], true, "{json}");
    assert!(json["rounds"].as_array().unwrap().iter().all(|round| round["twice"] == serde_json::json!([])), "{json}");
    let output = home.latido(&["chaos", &component("sqlite"), "--what", "flood"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("trap, trap-after, deadline"), "{}", errors(&output));
}

#[test]
fn figures_are_told_and_kept_within_a_budget_and_a_baseline() {
    let home = Home::new();
    let wasm = component("script");
    let output = home.latido(&["bench", &wasm, "--rounds", "5", "--json"]);
    let json: Value = serde_json::from_str(&text(&output)).unwrap();
    for figure in ["compile.ms", "load.ms", "instantiate.us", "call-1000.p99-us", "call-100.fuel", "memory.bytes"] {
        assert!(json["figures"][figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {json}");
    }
    let output = home.latido(&["bench", &wasm, "--rounds", "5", "--budget", "call-1.fuel=10"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("ABOVE the budget: call-1.fuel is "), "{}", text(&output));
    let output = home.latido(&["bench", &wasm, "--rounds", "5", "--budget", "call-1.fule=10"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    let mut low = json.clone();
    low["figures"]["call-1.fuel"] = 1.0.into();
    let baseline = home.file("low.json", &low.to_string());
    let output = home.latido(&["bench", &wasm, "--rounds", "5", "--baseline", baseline.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("ABOVE the baseline: call-1.fuel is "), "{}", text(&output));
}

#[test]
fn recorded_entries_are_fed_to_a_sink() {
    let home = Home::new();
    let entry = |sequence: u64| {
        format!(
            r#"{{"sequence":{sequence},"agent":"agent-1","at":"2026-01-02T03:04:05.000Z","type":"agent","what":"started","detail":"e{sequence}"}}"#
        )
    };
    let entries = home.file("entries.jsonl", &format!("{}\n{}\n\n{}\n", entry(1), entry(2), entry(9)));
    let entries = entries.to_str().unwrap();
    let output = home.latido(&["run", &component("jsonl"), "--entries", entries, "--keep", "out", "--batch", "2"]);
    let said = text(&output);
    assert!(output.status.success(), "{said}{}", errors(&output));
    assert!(said.contains("3 of 3 entries are durable") && said.contains("files.append: 2"), "{said}");
    let lines = fs::read_to_string(home.0.path().join("out/main.txt")).unwrap();
    assert_eq!(lines, format!("{}\n{}\n{}\n", entry(1), entry(2), entry(9)));
    let output = home.latido(&["run", &component("liveness"), "--entries", entries]);
    assert_eq!(output.status.code(), Some(4));
    assert!(errors(&output).contains("it is a rule, and only a sink takes entries"), "{}", errors(&output));
    let torn = home.file("torn.jsonl", &format!("{}\n{{\"sequence\":", entry(1)));
    let output = home.latido(&["run", &component("jsonl"), "--entries", torn.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("line 2: "), "{}", errors(&output));
}

#[test]
fn recorded_subjects_are_asked_of_a_rule() {
    let home = Home::new();
    let output = command(LATIDO, home.0.path()).args(["run", "--name", "night", "--", "false"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let output = command(LATIDO, home.0.path()).args(["status", "--json"]).output().unwrap();
    let document = text(&output);
    let status = home.file("status.json", &format!("{document}{document}"));
    let status = status.to_str().unwrap();
    let output = home.latido(&["run", &component("liveness"), "--status", status, "--json"]);
    let json: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(json["answers"][1]["findings"][0]["key"], "failed", "{json}");
    assert_eq!(json["answers"][0], json["answers"][1], "{json}");
    let output = home.latido(&["run", &component("jsonl"), "--status", status]);
    assert_eq!(output.status.code(), Some(4));
    assert!(errors(&output).contains("it is a sink, and only a rule is asked"), "{}", errors(&output));
    let output = home.latido(&["run", &component("liveness")]);
    assert_eq!(output.status.code(), Some(2));
}
