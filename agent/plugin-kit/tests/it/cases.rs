//! Cases: what they expect, what is wrong with them, and what they tell.

use std::fs;

use latido_plugin_kit::{Plan, junit, tap};

use crate::support::{Ground, component};

const STALE: &str = r#"
[[call]]
evaluate = { subjects = [{ name = "night", verdict = "stale", silence_s = 200 }] }
"#;

#[test]
fn a_case_with_a_typo_names_the_line_and_the_nearest_key() {
    let ground = Ground::new();
    let rule = component("liveness");
    for (text, expected) in [
        ("abuot = \"x\"\n[[call]]\nrestart = {}\n", "case.toml:1: there is no key `abuot` here; did you mean `about`?"),
        ("[[call]]\n\nevaluate = { subjets = [] }\n", ":3: there is no key `subjets` here; did you mean `subjects`?"),
        (
            "[[call]]\n[call.evaluate]\nsubjects = [\n  { name = \"a\" },\n  { name = \"b\", verdikt = \"stale\" },\n]\n",
            ":5: there is no key `verdikt` here; did you mean `verdict`?",
        ),
        (
            "[[call]]\nevaluate = { subjects = [{ name = \"a\", verdict = \"stael\" }] }\n",
            "`verdict` is \"stael\"; it is one of waiting",
        ),
        ("[[call]]\nevaluate = { subjects = [{}] }\n", ":2: `name` is missing here"),
        ("[[call]]\nevaluate = { subjects = [{ name = 3 }] }\n", "`name` is 3; it is a text in quotes"),
        ("[[call]]\nwrite = { entries = [] }\n", "a rule has no `write`; a sink has"),
        ("[[call]]\nexpect = {}\n", "a [[call]] has one of configure, write"),
        (
            "[[call]]\nrestart = {}\nexpect = {}\nfault = \"trap\"\n",
            "one of expect, error, fault, and this one has more",
        ),
        ("[[call]]\nrestart = {}\nfault = \"trapp\"\n", "there is no fault `trapp`; it is one of trap"),
        ("[[call]]\nrestart = {}\nerror = { permanet = \"x\" }\n", "there is no error `permanet`"),
        ("deny = [\"sqll\"]\n[[call]]\nrestart = {}\n", ":1: there is no capability `sqll` to deny"),
        ("[limits]\nfuel = -1\n[[call]]\nrestart = {}\n", ":2: `fuel` is -1; it is a whole number of at least 0"),
        (
            "[[call]]\nevaluate = { subjects = [{ name = \"a\", silence_s = -5 }] }\n",
            "`silence_s` is -5; it is a number of seconds",
        ),
        ("now = \"yesterday\"\n[[call]]\nrestart = {}\n", "it is a time such as"),
        ("", "it has no [[call]]"),
        ("[[call]\n", "case.toml:1: "),
        ("[limits]\nfuell = 3\n[[call]]\nrestart = {}\n", ":2: there is no key `fuell` here; did you mean `fuel`?"),
    ] {
        let faults = ground.faults(&rule, text);
        assert!(faults.contains(expected), "{text}lacks {expected:?}: {faults}");
    }
    let entry = "[[call]]\nwrite = { entries = [{ kind = \"beat\", sbuject = \"a\" }] }\n";
    let faults = ground.faults(&component("jsonl"), entry);
    assert!(faults.contains(":2: there is no key `sbuject` here; did you mean `subject`?"), "{faults}");
}

#[test]
fn what_is_expected_and_not_found_is_told_by_its_path() {
    let ground = Ground::new();
    let rule = component("liveness");
    let expecting = |expect: &str| ground.faults(&rule, &format!("{STALE}{expect}\n"));
    assert_eq!(expecting("expect = { findings = [{ key = \"stale\", severity = \"warning\" }] }"), "");
    let faults = expecting("expect = { findings = [{ severity = \"critical\" }] }");
    assert_eq!(faults, "line 2: `evaluate`: findings[0].severity: expected \"critical\", found \"warning\"");
    let faults = expecting("expect = { findings = [] }");
    assert!(faults.contains("findings: expected 0 of them, found 1"), "{faults}");
    let faults = expecting("error = \"denied\"");
    assert!(faults.contains("expected the error denied: it answered {"), "{faults}");
    let faults = expecting("fault = \"trap\"");
    assert!(faults.contains("expected the fault trap: it answered {"), "{faults}");
    let faults = expecting("capabilities = [\"state.get\"]");
    assert!(faults.contains("-state.get"), "{faults}");
}

#[test]
fn files_databases_and_requests_are_looked_at_in_the_end() {
    let ground = Ground::new();
    let write = "[[call]]\nwrite = { entries = [{ kind = \"alert\", subject = \"night\", summary = \"bad\" }] }\n";
    let lines = component("jsonl");
    let faults = ground.faults(&lines, &format!("{write}[[file]]\nname = \"main\"\ntext = \"\"\"\none\n\"\"\"\n"));
    assert!(faults.contains("line 3: the file `main`:") && faults.contains("-one\n+{\"sequence\":1,"), "{faults}");
    let history = component("sqlite");
    let query = "[[query]]\ndatabase = \"main\"\nsql = \"SELECT count(*) FROM entries\"\nrows = [[2]]\n";
    let faults = ground.faults(&history, &format!("{write}{query}"));
    assert!(faults.contains("line 3: [[query]]: rows[0][0]: expected 2, found 1"), "{faults}");
    let faults = ground.faults(&history, &format!("{write}{}", query.replace("main", "other")));
    assert!(faults.contains("asks for no database `other`; it asks for main"), "{faults}");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let faults = ground.faults(&history, &format!("{write}{}", query.replace("SELECT count(*) FROM entries", endless)));
    assert!(faults.contains("cannot be run: interrupted"), "{faults}");
    let hook = component("webhook");
    let settings = "settings = { url = \"https://example.org/hook\" }\n";
    let faults = ground.faults(&hook, &format!("{settings}{write}"));
    assert!(faults.contains("it sent POST https://example.org/hook, and no [[http]] is left to answer it"), "{faults}");
    let http = "[[http]]\nurl = \"https://example.org/other\"\nbody_contains = \"good\"\n[[http]]\n";
    let faults = ground.faults(&hook, &format!("{settings}{http}{write}"));
    assert!(faults.contains("line 2: a request: expected the address https://example.org/other"), "{faults}");
    assert!(faults.contains("expected a body with \"good\""), "{faults}");
    assert!(faults.contains("line 5: no request came for this [[http]]"), "{faults}");
}

#[test]
fn limits_of_a_case_are_kept_and_what_was_used_is_told() {
    let ground = Ground::new();
    ground.case("used", &format!("[limits]\nfuel = 10\nmemory = 65536\ncalls = 0\n{STALE}"));
    let outcome = ground.test(&component("liveness"));
    let report = outcome.cases.first().unwrap();
    let faults = report.faults.join("\n");
    let fuel = format!("it used {} of `limits.fuel`, which is 10", report.fuel);
    assert!(faults.contains(&fuel) && faults.contains("of `limits.memory`, which is 65536"), "{faults}");
    assert!(!faults.contains("limits.calls"));
    let again = ground.test(&component("liveness"));
    assert_eq!(again.cases.first().unwrap().fuel, report.fuel, "the same work takes the same fuel");
}

#[test]
fn a_plugin_that_loops_ends_the_case_and_not_the_test() {
    let ground = Ground::new();
    let settings = "settings = { where = \"write\", what = \"loop\" }\n";
    let expected =
        format!("{settings}[[call]]\nwrite = {{ entries = [{{}}] }}\nfault = \"cpu\"\n[[call]]\nflush = {{}}\n");
    assert_eq!(ground.faults(&component("guests/misbehave"), &expected), "");
    let unexpected = format!("{settings}[[call]]\nwrite = {{ entries = [{{}}] }}\n");
    let faults = ground.faults(&component("guests/misbehave"), &unexpected);
    assert!(faults.contains("`write` of plugin `misbehave`: it computed longer than its limit"), "{faults}");
    let took_ms: u64 = ground.test(&component("guests/misbehave")).cases.iter().map(|report| report.took_ms).sum();
    assert!(took_ms < 30_000, "{took_ms} ms");
}

#[test]
fn a_golden_file_is_written_when_asked_for_and_compared_ever_after() {
    let ground = Ground::new();
    let sink = component("jsonl");
    ground.case("golden", "[[call]]\nwrite = { entries = [{ kind = \"agent\", what = \"started\" }] }\n");
    let update = Plan { update: true, ..Plan::default() };
    let outcome = ground.test_with(&sink, &update);
    assert!(outcome.passes() && outcome.cases.first().unwrap().updated);
    let path = ground.cases().join("golden.golden.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("files.append") && text.contains("started"), "{text}");
    assert!(ground.test(&sink).passes());
    fs::write(&path, text.replace("started", "stopped")).unwrap();
    let outcome = ground.test(&sink);
    let fault = outcome.cases.first().unwrap().faults.join("\n");
    assert!(fault.contains("--update") && fault.contains("stopped") && fault.contains("+"), "{fault}");
}

#[test]
fn a_log_and_hostile_words_reach_every_format_whole() {
    let ground = Ground::new();
    let chatter = "settings = { where = \"write\", what = \"chatter\" }\n[[call]]\nwrite = { entries = [{}] }\n";
    ground.case("one # <b>", chatter);
    ground.case("two", &chatter.replace("[[call]]\n", "[[call]]\nfault = \"exit\"\n"));
    let outcome = ground.test(&component("guests/misbehave"));
    assert_eq!(outcome.cases.first().unwrap().logs.len(), 100);
    let text = tap(&outcome);
    assert!(text.starts_with("TAP version 14\n1..2\nok 1 - cases: one \\# <b>\n"), "{text}");
    assert!(
        text.contains("\nnot ok 2 - cases: two\n") && text.contains("    line 2: `write`: expected the fault exit")
    );
    let text = junit(&outcome).unwrap();
    assert!(text.contains("tests=\"2\"") && text.contains("failures=\"1\"") && text.contains("&lt;b&gt;"), "{text}");
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json.pointer("/cases/1/name"), Some(&serde_json::json!("two")));
}

#[test]
fn the_job_s_directory_and_the_memory_are_as_the_case_says() {
    let ground = Ground::new();
    let strategy = component("guests/probe-strategy");
    let faults = ground.faults(
        &strategy,
        "workspace = { \"../out\" = \"x\", \"a/b.txt\" = \"text\" }\nstate = { k = \"v\" }\n[[call]]\nrestart = {}\n",
    );
    assert!(faults.contains("cannot write \"../out\": it leads out"), "{faults}");
}
