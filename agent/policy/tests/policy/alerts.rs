//! What people are told of, and once.

use latido_policy::{
    AlertEvent, AlertSettings, Condition, Event, Fingerprint, Found, Heard, Phase, Resolution, RuleName, Severity,
    Standing, Telling, Verdict, Want,
};

use crate::alert_bench::{Alerts, blackout, confirm, key, stale, told};
use crate::harness::{JOB, attempt, beat, found_running, seconds, settings};

#[test]
fn a_finding_is_told_once_and_its_ending_once() {
    let mut alerts = Alerts::new();
    assert_eq!(told(&alerts.fire()), ["1 stale warning: it was found"]);
    for _ in 0..20 {
        assert_eq!(told(&alerts.sweep(true)), [""; 0]);
        assert_eq!(told(&alerts.pass(60)), [""; 0]);
    }
    assert_eq!(told(&alerts.sweep(false)), [""; 0], "an ending is told when it has lasted");
    assert_eq!(told(&alerts.pass(29)), [""; 0]);
    assert_eq!(told(&alerts.pass(1)), ["1 stale warning: it is over"]);
    assert_eq!(told(&alerts.pass(10_000)), [""; 0]);
    assert_eq!((alerts.view(stale(1)), alerts.bench.policy.poll_timeout()), (None, None), "nothing of it is left");
}

#[test]
fn a_finding_ends_only_by_a_call_of_its_rule_that_contained_its_subject() {
    let mut alerts = Alerts::new();
    alerts.fire();
    let other = RuleName::Other(Fingerprint(5));
    alerts.call(RuleName::Liveness, &[stale(2).about], &[]);
    alerts.call(other, &[stale(1).about], &[]);
    alerts.pass(600);
    assert_eq!(alerts.view(stale(1)).unwrap().record.unwrap().standing, Standing::Firing);
}

#[test]
fn what_has_to_hold_for_a_time_is_told_when_it_has_and_not_before() {
    let rule = RuleName::Liveness;
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule, confirm: confirm(1, 300) });
    assert_eq!(told(&alerts.sweep(true)), [""; 0]);
    assert_eq!(told(&alerts.pass(200)), [""; 0]);
    alerts.sweep(false);
    alerts.sweep(true);
    assert_eq!(told(&alerts.pass(299)), [""; 0], "it begins anew when it did not hold in between");
    assert_eq!(told(&alerts.pass(3)), ["1 stale warning: it was found"]);
}

#[test]
fn what_was_confirmed_and_ended_while_it_waited_for_others_is_told() {
    let mut alerts = Alerts::new();
    alerts.sweep(true);
    alerts.pass(1);
    alerts.sweep(false);
    assert_eq!(told(&alerts.pass(60)), ["1 stale warning: it was found", "1 stale warning: it is over"]);
}

#[test]
fn a_severity_that_rises_is_told_and_one_that_falls_is_not() {
    let mut alerts = Alerts::new();
    alerts.fire();
    assert_eq!(told(&alerts.sweep_at(Some(Severity::Info))), [""; 0]);
    assert_eq!(told(&alerts.sweep_at(Some(Severity::Critical))), ["1 stale critical: it is worse than it was"]);
    for severity in [Severity::Warning, Severity::Critical, Severity::Info, Severity::Critical] {
        assert_eq!(told(&alerts.sweep_at(Some(severity))), [""; 0], "what swings is told once");
    }
}

#[test]
fn a_reminder_comes_at_its_time_and_not_once_it_is_acknowledged() {
    let mut alerts = Alerts::new();
    alerts.fire();
    assert_eq!(told(&alerts.pass(4 * 3600)), ["1 stale warning: it still holds"]);
    alerts.tell(AlertEvent::Acknowledged { alert: stale(1) });
    assert_eq!(told(&alerts.pass(40 * 3600)), [""; 0]);
    assert_eq!(told(&alerts.sweep_at(Some(Severity::Critical))), ["1 stale critical: it is worse than it was"]);
    assert_eq!(told(&alerts.pass(4 * 3600)), ["1 stale critical: it still holds"], "nobody knew that it is so bad");
}

#[test]
fn an_acknowledgement_ends_with_the_alert() {
    let mut alerts = Alerts::new();
    alerts.fire();
    alerts.tell(AlertEvent::Acknowledged { alert: stale(1) });
    alerts.sweep(false);
    assert_eq!(told(&alerts.pass(30)), ["1 stale warning: it is over"]);
    alerts.pass(10_000);
    alerts.fire();
    assert_eq!(alerts.view(stale(1)).unwrap().record.unwrap().acknowledged, None);
}

#[test]
fn what_nobody_was_told_of_cannot_be_acknowledged() {
    let mut alerts = Alerts::new();
    alerts.sweep(true);
    alerts.tell(AlertEvent::Acknowledged { alert: stale(1) });
    alerts.tell(AlertEvent::Acknowledged { alert: stale(2) });
    assert_eq!(alerts.bench.policy.refused_count(), 2);
}

#[test]
fn what_comes_and_goes_slowly_is_told_each_time() {
    let mut alerts = Alerts::new();
    for _ in 0..5 {
        assert_eq!(told(&alerts.fire()), ["1 stale warning: it was found"]);
        alerts.sweep(false);
        assert_eq!(told(&alerts.pass(3600)), ["1 stale warning: it is over"]);
    }
}

#[test]
fn what_flapped_and_stays_is_told_to_hold_steadily() {
    let mut alerts = Alerts::new();
    let mut lines = Vec::new();
    for _ in 0..4 {
        lines.extend(told(&alerts.fire()));
        lines.extend(told(&alerts.sweep(false)));
        lines.extend(told(&alerts.pass(5)));
    }
    alerts.sweep(true);
    lines.extend(told(&alerts.pass(600)));
    assert_eq!(
        lines,
        [
            "1 stale warning: it was found",
            "1 stale warning: it comes and goes, 3 times so far; told again when that is over",
            "1 stale warning: it came 5 times and holds steadily",
        ]
    );
}

/// The rule `liveness` cannot run: the policy finds the minimum by itself, and tells that it has to.
#[test]
fn a_broken_rule_is_told_of_and_the_minimum_goes_on_without_it() {
    let mut alerts = Alerts::new();
    alerts.bench.policy.handle_event(
        Event::JobAdded { subject: JOB, settings: settings(), found: found_running(1, beat(1, 5)) },
        alerts.bench.now,
    );
    alerts.tell(AlertEvent::RuleFailed { rule: RuleName::Liveness });
    assert_eq!(told(&alerts.pass(10)), ["rule rule-broken critical: it was found"]);
    let lines = told(&alerts.pass(200));
    assert_eq!(lines, ["7 stale warning: it was found"]);
    alerts.tell(AlertEvent::RuleAnswered { rule: RuleName::Liveness });
    assert_eq!(told(&alerts.pass(60)), ["rule rule-broken critical: it is over"]);
    let stale = AlertEvent::Found { alert: stale(JOB.0), severity: Severity::Warning, host: None };
    alerts.tell(stale);
    assert_eq!(told(&alerts.pass(600)), [""; 0], "the rule goes on with the same alert");
}

/// A task that ended without a word, a call that never returned: nobody tells of it, so its silence has to.
#[test]
fn a_rule_that_is_not_heard_of_counts_as_broken() {
    let within = AlertSettings { liveness_after: Some(seconds(180)), ..AlertSettings::default() };
    let mut alerts = Alerts::with(within);
    alerts.pass(170);
    alerts.tell(AlertEvent::RuleAnswered { rule: RuleName::Liveness });
    assert_eq!(told(&alerts.pass(179)), [""; 0]);
    assert_eq!(told(&alerts.pass(3)), ["rule rule-broken critical: it was found"]);
}

#[test]
fn the_minimum_ends_only_what_it_could_have_found() {
    let mut alerts = Alerts::new();
    let found = Found { want: Want::Pause(None), ..Found::default() };
    alerts.bench.policy.handle_event(Event::JobAdded { subject: JOB, settings: settings(), found }, alerts.bench.now);
    let own = key(JOB.0, Condition::Other(Fingerprint(3)));
    alerts.call(RuleName::Liveness, &[own.about], &[(own, Severity::Warning), (stale(JOB.0), Severity::Warning)]);
    alerts.pass(2);
    alerts.tell(AlertEvent::RuleFailed { rule: RuleName::Liveness });
    let lines = told(&alerts.pass(60));
    assert_eq!(lines, ["rule rule-broken critical: it was found", "7 stale warning: it is over"]);
    assert!(alerts.view(own).is_some());
}

/// Everything that somebody has to act on is in the minimum, and nothing else.
#[test]
fn the_minimum_finds_each_verdict_that_somebody_has_to_act_on() {
    let mut alerts = Alerts::new();
    let eager = settings();
    alerts.bench.policy.handle_event(
        Event::JobAdded { subject: JOB, settings: eager, found: found_running(1, beat(1, 5)) },
        alerts.bench.now,
    );
    alerts.bench.policy.handle_event(Event::LookFailed { subject: JOB, attempt: attempt(1) }, alerts.bench.now);
    let view = alerts.bench.policy.subject(JOB).unwrap();
    assert_eq!((view.verdict, view.phase), (Verdict::Unknown, Phase::Running));
    alerts.tell(AlertEvent::RuleFailed { rule: RuleName::Liveness });
    let lines = told(&alerts.pass(2));
    assert_eq!(lines, ["rule rule-broken critical: it was found", "7 unknown warning: it was found"]);
}

#[test]
fn how_long_an_alert_has_held_is_shown_and_stands_still_once_it_has_ended() {
    let mut alerts = Alerts::new();
    alerts.fire();
    alerts.pass(98);
    assert_eq!(alerts.view(stale(1)).unwrap().held_for, seconds(100));
    alerts.sweep(false);
    alerts.pass(20);
    assert_eq!(alerts.view(stale(1)).unwrap().held_for, seconds(100));
}

#[test]
fn a_series_goes_on_over_a_finding_that_was_not_confirmed() {
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Liveness, confirm: confirm(2, 0) });
    alerts.sweep(true);
    alerts.fire();
    alerts.sweep(false);
    alerts.pass(30);
    alerts.sweep(true);
    alerts.sweep(false);
    alerts.sweep(true);
    assert_eq!(told(&alerts.fire()), ["1 stale warning: it was found 2 times in a row"]);
    alerts.sweep(false);
    assert_eq!(told(&alerts.pass(30)), ["1 stale warning: it is over, after it came 2 times"]);
}

#[test]
fn what_was_told_as_critical_when_it_began_to_flap_is_not_told_as_worse_again() {
    let mut alerts = Alerts::new();
    alerts.fire();
    for severity in [None, Some(Severity::Warning), None] {
        alerts.sweep_at(severity);
    }
    let lines = told(&alerts.sweep_at(Some(Severity::Critical)));
    assert_eq!(lines, ["1 stale critical: it comes and goes, 3 times so far; told again when that is over"]);
    assert_eq!(told(&alerts.sweep_at(Some(Severity::Critical))), [""; 0]);
}

#[test]
fn the_first_reminder_of_what_settled_is_due_from_its_settling_on() {
    let mut alerts = Alerts::new();
    alerts.fire();
    for is_stale in [false, true, false, true] {
        alerts.sweep(is_stale);
    }
    assert_eq!(told(&alerts.pass(600)), ["1 stale warning: it came 3 times and holds steadily"]);
    assert_eq!(told(&alerts.pass(4 * 3600 - 1)), [""; 0]);
    assert_eq!(told(&alerts.pass(1)), ["1 stale warning: it still holds"]);
}

#[test]
fn a_series_is_opened_by_what_people_have_not_heard_of() {
    let because = Resolution::NotFound;
    for (telling, opens) in [
        (Telling::Began { sweeps: 1 }, true),
        (Telling::BeganForMany { subjects: 5 }, true),
        (Telling::Flaps { comings: 3 }, true),
        (Telling::Grew { subjects: 9 }, false),
        (Telling::Settled { comings: 3 }, false),
        (Telling::Rose, false),
        (Telling::Reminder, false),
        (Telling::Resolved { comings: 1, because }, false),
    ] {
        assert_eq!(telling.opens(), opens, "{telling}");
    }
}

#[test]
fn found_twice_in_one_call_is_found_once_and_as_bad_as_the_worse() {
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Liveness, confirm: confirm(2, 0) });
    let twice = [(stale(1), Severity::Warning), (stale(1), Severity::Warning)];
    alerts.call(RuleName::Liveness, &[stale(1).about], &twice);
    assert_eq!(told(&alerts.pass(60)), [""; 0], "one call of the two that it needs");
    let worse = [(stale(1), Severity::Warning), (stale(1), Severity::Critical)];
    alerts.call(RuleName::Liveness, &[stale(1).about], &worse);
    assert_eq!(told(&alerts.pass(2)), ["1 stale critical: it was found 2 times in a row"]);
}

#[test]
fn what_a_rule_finds_needs_what_the_config_says_and_the_agents_own_needs_nothing() {
    let mut alerts = Alerts::with(AlertSettings { confirm: confirm(2, 0), ..AlertSettings::default() });
    alerts.note(blackout(), true);
    alerts.sweep_at(None);
    let dead = key(2, Condition::Dead);
    alerts.call(RuleName::Liveness, &[dead.about], &[(dead, Severity::Warning)]);
    assert_eq!(told(&alerts.pass(60)), ["agent blackout critical: it was found"]);
    alerts.call(RuleName::Liveness, &[dead.about], &[(dead, Severity::Warning)]);
    assert_eq!(told(&alerts.pass(2)), ["2 dead warning: it was found 2 times in a row"]);
}

/// A rule that never answers once is as broken as one that stops.
#[test]
fn a_rule_that_was_never_heard_of_counts_as_broken() {
    let mut alerts = Alerts::with(AlertSettings { liveness_after: Some(seconds(180)), ..AlertSettings::default() });
    assert_eq!(told(&alerts.pass(179)), [""; 0]);
    assert_eq!(told(&alerts.pass(3)), ["rule rule-broken critical: it was found"]);
}

#[test]
fn an_agent_that_comes_late_to_a_broken_rule_stands_in_for_it_all_the_same() {
    let mut alerts = Alerts::new();
    let found = found_running(1, Heard { silence: seconds(200), ..beat(1, 300) });
    alerts.bench.add(settings(), found);
    let failed = AlertEvent::RuleFailed { rule: RuleName::Liveness };
    alerts.bench.policy.handle_event(Event::Alert(failed), alerts.bench.now);
    alerts.bench.now = alerts.bench.now.after(seconds(5));
    let lines = told(&alerts.pass(2));
    assert_eq!(lines, ["rule rule-broken critical: it was found", "7 stale warning: it was found"]);
}
