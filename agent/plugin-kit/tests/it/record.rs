//! What is taken down of a plugin, and what is not.

use latido_plugin_host::{Asked, Attribute, Command, EnvironmentValue, EnvironmentVariable, Probe as _, Then};
use latido_plugin_kit::{Clean, Recorder};
use serde_json::json;

#[derive(Debug)]
struct Hidden;

impl Clean for Hidden {
    fn text(&self, text: &str) -> String {
        text.replace("hidden", "***")
    }

    fn is_secret(&self, name: &str) -> bool {
        name.to_lowercase().contains("token") || name.eq_ignore_ascii_case("authorization")
    }
}

fn recorder() -> Recorder {
    let recorder = Recorder::new(Box::new(Hidden));
    recorder.loaded();
    recorder
}

#[test]
fn no_secret_is_taken_down_wherever_it_stands() {
    let recorder = recorder();
    let asked = Asked {
        number: 1,
        interface: "http",
        function: "send",
        arguments: json!({
            "url": "https://example.org/hidden", "headers": [["Authorization", "Bearer abc"], ["accept", "*/*"]],
            "body": "{\"x\": \"hidden\"}", "token": "abc",
        }),
    };
    assert_eq!(recorder.asked(&asked), Then::CarryOut.at_once(), "it looks on and changes nothing");
    recorder.answered(&asked, &json!({ "ok": { "status": 200, "headers": [["set-token", "abc"]], "body": "hidden" } }));
    recorder.logged("info", "sent hidden");
    recorder.evaluated((1, &[]), &Ok(Vec::new()));
    let settings = json!({ "api_token": "abc", "tokens_max": 7, "nested": [{ "token": "abc" }], "url": "hidden" });
    let recorded = recorder.finish(("rule-1", "rule"), &settings, 1_700_000_000_000);
    for text in [&recorded.case, &recorded.golden] {
        assert!(!text.contains("hidden") && !text.contains("abc"), "{text}");
    }
    assert!(recorded.case.contains("tokens_max = 7"), "a number is no secret: {}", recorded.case);
    assert!(recorded.golden.contains("*/*") && recorded.golden.contains("info: sent ***"), "{}", recorded.golden);
    assert_eq!((recorded.calls, recorded.is_cut), (1, false));
}

#[test]
fn values_of_an_environment_are_never_taken_down() {
    let recorder = recorder();
    let variable = |name: &str, value| EnvironmentVariable { name: name.to_owned(), value };
    let mut situation = crate::world::situation();
    situation.command = Command {
        program: "work".to_owned(),
        arguments: vec!["--fast".to_owned()],
        directory: None,
        environment: vec![
            variable("PLAIN", EnvironmentValue::Plain("abc".to_owned())),
            variable("WITHHELD", EnvironmentValue::Withheld),
            variable("SECRET", EnvironmentValue::Secret("name".to_owned())),
        ],
    };
    situation.attributes.push(Attribute { key: "by-hand".to_owned(), value: "true".to_owned() });
    recorder.decided(&situation, &Ok(latido_plugin_host::Decision::Hold("why".to_owned())));
    let recorded = recorder.finish(("strategy-1", "strategy"), &json!({}), 1);
    assert!(!recorded.case.contains("abc") && recorded.case.contains("PLAIN"), "{}", recorded.case);
    assert!(recorded.case.contains("secret = \"name\""), "{}", recorded.case);
}

#[test]
fn a_record_has_a_bound_and_says_that_it_is_cut() {
    let recorder = recorder();
    for _ in 0..1_000 {
        recorder.evaluated((1, &[]), &Ok(Vec::new()));
    }
    assert!(recorder.is_over());
    let recorded = recorder.finish(("a", "rule"), &json!({}), 1);
    assert_eq!((recorded.calls, recorded.is_cut), (200, true));
    let late = Recorder::new(Box::new(Hidden));
    late.evaluated((1, &[]), &Ok(Vec::new()));
    assert_eq!(late.finish(("a", "rule"), &json!({}), 1).calls, 0, "the instance before is not recorded");
}

#[test]
fn a_plugin_that_asks_without_an_end_within_one_call_fills_no_memory() {
    let recorder = recorder();
    let asked = |number| Asked {
        number,
        interface: "state",
        function: "set",
        arguments: json!({ "key": "k", "value": "x".repeat(100_000) }),
    };
    for number in 1..=1_000 {
        recorder.asked(&asked(number));
        recorder.answered(&asked(number), &json!({ "ok": null }));
    }
    recorder.evaluated((1, &[]), &Ok(Vec::new()));
    let recorded = recorder.finish(("rule-1", "rule"), &json!({}), 1);
    assert!(recorded.is_cut && recorded.golden.len() < 8 << 20, "{} bytes", recorded.golden.len());
}
