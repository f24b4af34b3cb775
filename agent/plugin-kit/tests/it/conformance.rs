//! A plugin that misbehaves does not pass the suite of its kind.

use latido_plugin_kit::{Outcome, Plan};

use crate::support::{Ground, component};

/// The suite's outcome for a guest with these settings, which a case gives.
fn suite(ground: &Ground, guest: &str, settings: &str, call: &str) -> Outcome {
    ground.case("settings", &format!("settings = {settings}\n[[call]]\n{call}\n"));
    let plan = Plan { conformance: true, ..Plan::default() };
    ground.test_with(&component(guest), &plan)
}

#[track_caller]
fn fails_at(outcome: &Outcome, trial: &str, words: &str) {
    let report = outcome.conformance.iter().find(|report| report.name == trial).unwrap();
    let text = report.faults.join("\n");
    assert!(text.contains(words), "{trial} lacks {words:?}: {text}");
}

#[test]
fn a_sink_that_misbehaves_fails_where_it_does() {
    let ground = Ground::new();
    let flush = "flush = {}";
    let outcome = suite(&ground, "guests/misbehave", r#"{ where = "write", what = "trap" }"#, flush);
    fails_at(&outcome, "nothing", "trapped");
    let outcome = suite(&ground, "guests/misbehave", r#"{ where = "never", what = "forge-acknowledgement" }"#, flush);
    fails_at(&outcome, "the same again", "it acknowledged entry 10");
    let outcome = suite(&ground, "guests/misbehave", r#"{ where = "write", what = "grow" }"#, flush);
    fails_at(&outcome, "the most", "limit `memory`");
    let outcome = suite(&ground, "guests/misbehave", r#"{ where = "never", what = "" }"#, flush);
    assert!(outcome.passes(), "who takes everything and stores nothing has nothing to lose: {:?}", outcome.conformance);
}

#[test]
fn a_rule_and_a_strategy_that_misbehave_fail_where_they_do() {
    let ground = Ground::new();
    let nobody = "evaluate = { subjects = [] }";
    let rule = |what: &str| format!("{{ what = \"{what}\" }}");
    let outcome = suite(&ground, "guests/misbehave-rule", &rule("foreign-subject"), "restart = {}");
    fails_at(&outcome, "hostile text", "which it was not asked about");
    let outcome = suite(&ground, "guests/misbehave-rule", &rule("huge-list"), "restart = {}");
    fails_at(&outcome, "nothing", "its answer cannot be");
    let outcome = suite(&ground, "guests/misbehave-rule", &rule(""), nobody);
    assert!(outcome.passes());
    let settings = r#"{ where = "observe", what = "trap" }"#;
    let outcome = suite(&ground, "guests/misbehave-strategy", settings, "restart = {}");
    fails_at(&outcome, "a new instance", "trapped");
}

#[test]
fn a_sink_that_acknowledges_what_it_could_not_store_fails() {
    let ground = Ground::new();
    let outcome = suite(&ground, "guests/forgetful", r#"{ how = "whatever" }"#, "flush = {}");
    fails_at(&outcome, "capabilities that answer `full`", "it acknowledged entries that it could not store: 1, 2");
    assert!(outcome.conformance.iter().any(|report| report.name == "hostile text" && report.passes()));
}

#[test]
fn a_plugin_that_loops_ends_the_suite_and_not_the_patience() {
    let ground = Ground::new();
    let outcome = suite(&ground, "guests/misbehave", r#"{ where = "write", what = "loop" }"#, "flush = {}");
    fails_at(&outcome, "nothing", "it computed longer than its limit");
    fails_at(&outcome, "capabilities that refuse", "not run, since it does not answer in time");
    let took_ms: u64 = outcome.conformance.iter().map(|report| report.took_ms).sum();
    assert!(took_ms < 60_000, "{took_ms} ms");
}

#[test]
fn plugins_of_the_package_version_before_are_tested_like_all_others() {
    let ground = Ground::new();
    for guest in ["old-sink", "old-rule", "old-strategy"] {
        let plan = Plan { conformance: true, ..Plan::default() };
        let outcome = ground.test_with(&component(&format!("guests/{guest}")), &plan);
        assert!(outcome.conformance.len() >= 14 && outcome.passes(), "{guest}: {:?}", outcome.conformance);
    }
}
