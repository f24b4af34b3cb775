//! What tests answered, for machines that read TAP or JUnit.

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use crate::suite::Outcome;
use crate::trial::Report;

/// The outcome in TAP, version 14.
pub fn tap(outcome: &Outcome) -> String {
    let count = outcome.reports().count();
    let mut text = format!("TAP version 14\n1..{count}\n");
    for (number, (suite, report)) in (1..).zip(outcome.reports()) {
        let ok = if report.passes() { "ok" } else { "not ok" };
        text.push_str(&format!("{ok} {number} - {suite}: {}\n", description(&report.name)));
        text.push_str(&format!(
            "  ---\n  duration_ms: {}\n  fuel: {}\n  memory: {}\n  capabilities: {}\n",
            report.took_ms, report.fuel, report.memory, report.capabilities
        ));
        if !report.passes() {
            text.push_str("  message: |\n");
            for line in report.faults.iter().flat_map(|fault| fault.lines()) {
                text.push_str(&format!("    {line}\n"));
            }
        }
        text.push_str("  ...\n");
    }
    text
}

/// A name in which nothing begins a directive.
fn description(name: &str) -> String {
    name.replace('#', "\\#")
}

/// The outcome as a JUnit document.
///
/// # Errors
///
/// In the writer's words.
pub fn junit(outcome: &Outcome) -> Result<String, String> {
    let mut document = Document::new(format!("latido plugin test {}", outcome.plugin));
    for (name, reports) in [("cases", &outcome.cases), ("conformance", &outcome.conformance)] {
        if reports.is_empty() {
            continue;
        }
        let mut suite = TestSuite::new(format!("{}.{name}", outcome.plugin));
        suite.add_test_cases(reports.iter().map(test_case));
        document.add_test_suite(suite);
    }
    document.to_string().map_err(|error| error.to_string())
}

fn test_case(report: &Report) -> TestCase {
    let status = if report.passes() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        let first = report.faults.first().and_then(|fault| fault.lines().next()).unwrap_or_default();
        status.set_message(first).set_type("failed").set_description(report.faults.join("\n"));
        status
    };
    let mut case = TestCase::new(&*report.name, status);
    case.set_time(std::time::Duration::from_millis(report.took_ms));
    if !report.logs.is_empty() {
        case.set_system_out(report.logs.join("\n"));
    }
    case
}
