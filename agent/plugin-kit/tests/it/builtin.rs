//! Every built-in plugin passes its own cases and the suite of its kind.

use latido_plugin_kit::{Plan, test};

use crate::support::{Ground, component, root};

#[test]
fn every_built_in_plugin_passes_its_cases_and_the_suite_of_its_kind() {
    let ground = Ground::new();
    let mut faults = Vec::new();
    for name in ["anomaly", "jsonl", "liveness", "script", "sqlite", "threshold", "webhook"] {
        let cases = Some(root().join("plugins").join(name).join("cases"));
        let plan = Plan { cases, conformance: true, ..Plan::default() };
        let outcome = test(&ground.workshop, &component(name), &plan).unwrap();
        for (suite, report) in outcome.reports() {
            faults.extend(report.faults.iter().map(|fault| format!("{name}: {suite}: {}: {fault}", report.name)));
        }
        assert!(outcome.cases.len() >= 2, "{name} has cases of what it does and of what it refuses");
        assert!(outcome.conformance.len() >= 14, "{name}: the whole suite ran");
        assert!(outcome.cases.iter().any(|report| report.fuel > 0 && report.memory > 0));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
