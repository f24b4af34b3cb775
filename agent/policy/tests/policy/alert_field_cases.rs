//! Faults of alerting that people have met elsewhere, at the level of decisions. Each names where it was reported.

use latido_policy::{About, AlertEvent, AlertKey, AlertSettings, Condition, Fingerprint, RuleName, Severity};

use crate::alert_bench::{Alerts, confirm, key, stale, told};

// pmcfadin/acmon#29
#[test]
fn c106_a_restart_tells_of_what_died_meanwhile_and_repeats_nothing() {
    let mut before = Alerts::new();
    before.sweep_all(3, [1]);
    before.pass(2);
    let mut unchanged = before.restart(AlertSettings::default());
    unchanged.sweep_all(3, [1]);
    assert_eq!(told(&unchanged.pass(600)), [""; 0]);
    let mut meanwhile = before.restart(AlertSettings::default());
    meanwhile.sweep_all(3, [1, 3]);
    assert_eq!(told(&meanwhile.pass(600)), ["3 stale warning: it was found"]);
}

// prometheus/alertmanager#627
#[test]
fn c107_a_config_that_is_read_again_repeats_nothing() {
    let mut alerts = Alerts::new();
    for subject in 1..=10 {
        alerts.call(RuleName::Liveness, &[stale(subject).about], &[(stale(subject), Severity::Warning)]);
        alerts.pass(2);
    }
    for _ in 0..5 {
        assert_eq!(told(&alerts.tell(AlertEvent::SettingsChanged { settings: AlertSettings::default() })), [""; 0]);
    }
    let settings = AlertSettings { resolve_after: core::time::Duration::ZERO, ..AlertSettings::default() };
    assert_eq!(told(&alerts.tell(AlertEvent::SettingsChanged { settings })), [""; 0]);
    assert_eq!(told(&alerts.pass(3600)), [""; 0]);
}

// sonic-net/sonic-buildimage#5751
#[test]
fn c109_a_rule_confirmed_over_three_sweeps_fires_at_the_third_and_once() {
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Liveness, confirm: confirm(3, 0) });
    let mut told_at = |sweeps: &[bool]| -> Vec<usize> {
        let mut at = Vec::new();
        for (number, &is_stale) in sweeps.iter().enumerate() {
            let mut lines = told(&alerts.sweep(is_stale));
            lines.extend(told(&alerts.pass(5)));
            at.extend(lines.iter().map(|_| number + 1));
        }
        at
    };
    assert_eq!(told_at(&[true, true, false]), [0; 0]);
    assert_eq!(told_at(&[true, true, true, true, true, true]), [3]);
    let lines = told(&alerts.pass(4 * 3600));
    assert_eq!(lines, ["1 stale warning: it still holds"], "the reminder, when it is due");
}

// alerta/alerta#295, jamesoff/simplemonitor#463
#[test]
fn c110_what_comes_and_goes_is_told_to_flap_and_once_that_it_is_over() {
    let mut alerts = Alerts::new();
    let mut lines = Vec::new();
    for _ in 0..20 {
        lines.extend(told(&alerts.pass(10)));
        lines.extend(told(&alerts.sweep(true)));
        lines.extend(told(&alerts.pass(2)));
        lines.extend(told(&alerts.sweep(false)));
        lines.extend(told(&alerts.pass(3)));
    }
    lines.extend(told(&alerts.pass(3600)));
    assert_eq!(
        lines,
        [
            "1 stale warning: it was found",
            "1 stale warning: it comes and goes, 3 times so far; told again when that is over",
            "1 stale warning: it is over, after it came 20 times",
        ]
    );
}

// healthchecks/healthchecks#587, healthchecks/healthchecks#858
#[test]
fn c113_each_rule_counts_for_itself() {
    let failures = RuleName::Other(Fingerprint(1));
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule: failures, confirm: confirm(3, 0) });
    let about: About = stale(1).about;
    let failed = AlertKey { rule: failures, about, condition: Condition::Failing };
    let mut lines = Vec::new();
    for _ in 0..3 {
        lines.push(told(&alerts.call(failures, &[about], &[(failed, Severity::Warning)])));
        let missing = key(1, Condition::Missing);
        lines.push(told(&alerts.call(RuleName::Liveness, &[about], &[(missing, Severity::Critical)])));
        lines.push(told(&alerts.pass(2)));
    }
    let lines: Vec<String> = lines.concat();
    assert_eq!(lines, ["1 missing critical: it was found", "1 failing warning: it was found 3 times in a row"]);
}

// littlebearapps/untether#264
#[test]
fn c115_a_long_standstill_is_one_warning_and_one_notice_that_it_moves() {
    let mut alerts = Alerts::new();
    let hung = key(1, Condition::Hung);
    let mut lines = Vec::new();
    for _ in 0..10 {
        lines.extend(told(&alerts.call(RuleName::Liveness, &[hung.about], &[(hung, Severity::Warning)])));
        lines.extend(told(&alerts.pass(60)));
    }
    alerts.sweep(false);
    lines.extend(told(&alerts.pass(60)));
    assert_eq!(lines, ["1 hung warning: it was found", "1 hung warning: it is over"]);
}

// JSONbored/metagraphed#9440
#[test]
fn c117_every_condition_is_told_and_recorded() {
    let named = [
        "missing",
        "late",
        "stale",
        "hung",
        "failing",
        "orphaned",
        "dead",
        "unknown",
        "held",
        "stuck",
        "host-down",
        "blackout",
        "store-away",
        "rule-broken",
    ];
    let conditions =
        named.map(|word| Condition::of(word).unwrap()).into_iter().chain([Condition::Other(Fingerprint(1))]);
    for condition in conditions {
        for rule in [RuleName::Agent, RuleName::Liveness, RuleName::Other(Fingerprint(9))] {
            let alert = AlertKey { rule, ..key(1, condition) };
            let mut alerts = Alerts::new();
            alerts.call(rule, &[alert.about], &[(alert, Severity::Critical)]);
            assert_eq!(told(&alerts.pass(2)).len(), 1, "{alert:?}");
            assert!(alerts.view(alert).is_some_and(|view| view.record.is_some()), "{alert:?}");
        }
    }
}
