//! New projects in each language build, pass their own first case, and bear what every plugin of their kind has to bear.

use latido_plugin_host::Kind;
use latido_plugin_kit::{Language, Plan, Plugin, test};

use crate::projects::{built, project};
use crate::support::Ground;

fn works(language: Language, kind: Kind) {
    let ground = Ground::new();
    let project = project(ground.folder.path(), language, kind);
    let Some(built) = built(&project) else { return };
    assert_eq!(built.warnings, "");
    let plan = Plan { cases: Some(project.cases()), conformance: true, ..Plan::default() };
    let outcome = test(&ground.workshop, &Plugin::of(&project).unwrap(), &plan).unwrap();
    assert!(!outcome.cases.is_empty() && !outcome.conformance.is_empty());
    let faults: Vec<String> = outcome
        .reports()
        .filter(|(_, report)| !report.passes())
        .map(|(suite, report)| format!("{suite} {}: {:#?}\n{:#?}", report.name, report.faults, report.logs))
        .collect();
    assert!(outcome.passes(), "{} {kind}: {}", language.name(), faults.join("\n"));
}

macro_rules! works {
    ($($name:ident: $language:ident $kind:ident,)*) => {
        $(#[test]
        fn $name() {
            works(Language::$language, Kind::$kind);
        })*
    };
}

works! {
    a_new_sink_in_rust_builds_and_passes: Rust Sink,
    a_new_rule_in_rust_builds_and_passes: Rust Rule,
    a_new_strategy_in_rust_builds_and_passes: Rust Strategy,
    a_new_sink_in_python_builds_and_passes: Python Sink,
    a_new_rule_in_python_builds_and_passes: Python Rule,
    a_new_strategy_in_python_builds_and_passes: Python Strategy,
    a_new_sink_in_javascript_builds_and_passes: JavaScript Sink,
    a_new_rule_in_javascript_builds_and_passes: JavaScript Rule,
    a_new_strategy_in_javascript_builds_and_passes: JavaScript Strategy,
    a_new_sink_in_c_builds_and_passes: C Sink,
    a_new_rule_in_c_builds_and_passes: C Rule,
    a_new_strategy_in_c_builds_and_passes: C Strategy,
    a_new_sink_in_go_builds_and_passes: Go Sink,
    a_new_rule_in_go_builds_and_passes: Go Rule,
    a_new_strategy_in_go_builds_and_passes: Go Strategy,
}
