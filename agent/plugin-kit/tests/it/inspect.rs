//! What is seen of a component.

use std::sync::Arc;

use latido_plugin_kit::{Inspection, describe, inspect};

use crate::world::{World, builtin, component, guest};

async fn seen(component: Arc<[u8]>) -> Inspection {
    let mut seen = inspect(&component);
    describe(&World::new().host, "it", component, &mut seen).await;
    seen
}

#[tokio::test]
async fn a_plugin_is_seen_whole() {
    let component = builtin("sqlite");
    let seen = seen(Arc::clone(&component)).await;
    assert_eq!(seen.problems, [""; 0]);
    assert_eq!((seen.kind, seen.interface.as_deref()), (Some("sink"), Some("0.2.0")));
    assert_eq!(seen.asks, ["grant.sql.main = \"main.db\""]);
    assert!(seen.imports.iter().any(|name| name == "latido:plugin/sql@0.2.0"), "{:?}", seen.imports);
    assert!(seen.exports.iter().any(|name| name == "latido:plugin/sink@0.2.0"), "{:?}", seen.exports);
    let sum: usize = seen.sections.iter().map(|section| section.bytes).sum();
    assert_eq!((sum, seen.bytes), (component.len(), component.len()));
    assert_eq!(seen.sections[0].name, "code");
    let said = seen.description.unwrap();
    assert_eq!(said.name, "sqlite");
    assert!(said.settings_schema.is_object(), "{}", said.settings_schema);
    assert!(seen.digest.is_some_and(|digest| digest.starts_with("sha256:")) && seen.signer.is_none());
}

#[tokio::test]
async fn a_plugin_that_cannot_be_configured_without_settings_says_what_it_is_all_the_same() {
    for name in ["webhook", "threshold"] {
        let seen = seen(builtin(name)).await;
        assert_eq!(seen.problems, [""; 0], "{name}");
        assert_eq!(seen.description.unwrap().name, name);
    }
}

#[tokio::test]
async fn what_can_be_read_of_a_broken_one_is_told_with_what_is_wrong() {
    let whole = builtin("jsonl");
    let mut lengths: Vec<usize> = (0..whole.len()).step_by(997).collect();
    lengths.push(whole.len() - 1);
    for length in lengths {
        let seen = inspect(&whole[..length]);
        // Where a section ends, only loading it tells what is missing.
        assert!(!seen.problems.is_empty() || seen.kind.is_none() || seen.digest.is_some(), "at {length}: {seen:?}");
    }
    let seen = seen(whole[..whole.len() - 1].into()).await;
    assert_eq!(seen.problems.len(), 1, "{:?}", seen.problems);
    assert!(seen.problems[0].contains("truncated or damaged at byte"), "{:?}", seen.problems);
    assert!(!seen.imports.is_empty() && seen.kind == Some("sink"), "{seen:?}");
}

#[tokio::test]
async fn what_is_no_plugin_is_told_so_in_words() {
    for (bytes, word) in [
        (Arc::from(&b"#!/bin/sh\n"[..]), "truncated or damaged"),
        (Arc::from(&b""[..]), "truncated or damaged"),
        (component(""), "it exports nothing"),
        (wat::parse_str("(module)").unwrap().into(), "none of the interfaces"),
        (component(r#"(import "latido:plugin/log@0.3.0" (instance))"#), "none of the interfaces"),
    ] {
        let seen = seen(bytes).await;
        assert!(seen.problems.iter().any(|problem| problem.contains(word)), "{word}: {:?}", seen.problems);
    }
}

/// What the linker stumbled over first is not what an author can mend.
#[tokio::test]
async fn interfaces_that_are_not_the_packages_are_compared_with_them() {
    let lie = r#"(import "latido:plugin/log@0.2.0" (instance (export "write" (func (param "number" u32)))))
        (instance $nothing)
        (export "latido:plugin/lifecycle@0.2.0" (instance $nothing))
        (export "latido:plugin/rule@0.2.0" (instance $nothing))"#;
    let seen = seen(component(lie)).await;
    let [problem] = seen.problems.as_slice() else { panic!("{:?}", seen.problems) };
    for part in [
        "`write` of `log`: parameters are `number`, the package has `level`, `message`",
        "it does not export `configure` of `lifecycle`",
        "it does not export `evaluate` of `rule`",
        "build it again against that version's text",
    ] {
        assert!(problem.contains(part), "{problem}");
    }
    for raw in ["linker", "instance export", "matching implementation", "component imports"] {
        assert!(!problem.contains(raw), "{problem}");
    }
}

#[tokio::test]
async fn a_wrong_type_deep_inside_is_named_with_its_place() {
    let text = r#"
        (type $value' (variant (case "null") (case "integer" s32) (case "real" f64) (case "text" string) (case "blob" (list u8))))
        (import "latido:plugin/sql@0.2.0" (instance
            (alias outer 1 $value' (type $v))
            (export "value" (type $value (eq $v)))
            (type $e' (variant (case "denied" string) (case "busy") (case "full") (case "failed" string)))
            (export "sql-error" (type $e (eq $e')))
            (export "execute" (func (param "database" string) (param "statement" string) (param "parameters" (list $value))
                (result (result u64 (error $e)))))))
        (instance $nothing)
        (export "latido:plugin/lifecycle@0.2.0" (instance $nothing))
        (export "latido:plugin/sink@0.2.0" (instance $nothing))"#;
    let seen = seen(component(text)).await;
    let place =
        "`execute` of `sql`: parameter `parameters`, its elements, its case `integer` is `s32`, the package has `s64`";
    assert!(seen.problems.iter().any(|problem| problem.contains(place)), "{:?}", seen.problems);
}

#[tokio::test]
async fn plugins_of_the_version_before_are_seen_as_such() {
    let seen = seen(guest("old-sink")).await;
    assert_eq!(seen.problems, [""; 0]);
    assert_eq!(seen.interface.as_deref(), Some("0.1.0"));
}

#[test]
fn the_packages_own_plugins_differ_from_it_in_nothing() {
    for name in ["sqlite", "jsonl", "webhook", "liveness", "threshold", "anomaly", "script"] {
        assert_eq!(latido_plugin_kit::differences(&builtin(name), "0.2.0"), [""; 0], "{name}");
    }
    for name in ["old-sink", "old-rule", "old-strategy"] {
        assert_eq!(latido_plugin_kit::differences(&guest(name), "0.1.0"), [""; 0], "{name}");
    }
    assert_ne!(latido_plugin_kit::differences(&guest("old-sink"), "0.2.0"), [""; 0]);
}

#[tokio::test]
async fn a_type_of_a_hundred_thousand_parts_is_told_in_a_line() {
    let tuples: String = (1..17).map(|n| format!("(type $t{n} (tuple $t{} $t{})) ", n - 1, n - 1)).collect();
    let text = format!(
        r#"(import "latido:plugin/log@0.2.0" (instance (type $t0 (tuple u8 u8)) {tuples}
            (export "write" (func (param "level" $t16) (param "message" string)))))
        (instance $nothing)
        (export "latido:plugin/lifecycle@0.2.0" (instance $nothing))
        (export "latido:plugin/rule@0.2.0" (instance $nothing))"#
    );
    let seen = seen(component(&text)).await;
    let [problem] = seen.problems.as_slice() else { panic!("{:?}", seen.problems) };
    assert!(problem.contains("parameter `level` is `tuple<tuple<tuple<…, …>"), "{problem}");
    assert!(problem.len() < 2_000, "{} bytes", problem.len());
}
