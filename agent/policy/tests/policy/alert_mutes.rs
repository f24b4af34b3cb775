//! What is kept quiet, by a silence or by what explains it, and told when that ends.

use latido_policy::{
    About, AlertAction, AlertEvent, AlertKey, Condition, Fingerprint, Mute, RuleName, Severity, SilenceEnd, SilenceId,
    SilenceScope, Standing,
};

use crate::alert_bench::{Alerts, HOST, blackout, confirm, key, stale, told};
use crate::harness::seconds;

const HOST_DOWN: AlertKey =
    AlertKey { rule: RuleName::Agent, about: About::Host(HOST), condition: Condition::HostDown };

fn ends(actions: &[AlertAction]) -> Vec<SilenceEnd> {
    let end = |action: &AlertAction| match action {
        AlertAction::EndSilence { because, .. } => Some(*because),
        AlertAction::Tell { .. }
        | AlertAction::Record { .. }
        | AlertAction::Forget { .. }
        | AlertAction::KeepSilence { .. } => None,
    };
    actions.iter().filter_map(end).collect()
}

#[test]
fn what_is_silenced_is_visible_and_told_when_the_silence_ends_and_it_still_holds() {
    let scopes =
        [SilenceScope::About(stale(1).about), SilenceScope::Rule(RuleName::Liveness), SilenceScope::Alert(stale(1))];
    for scope in scopes {
        let mut alerts = Alerts::new();
        alerts.silence(scope, 600, false);
        assert_eq!(told(&alerts.fire()), [""; 0]);
        let view = alerts.view(stale(1)).unwrap();
        assert_eq!((view.mute, view.record.unwrap().standing), (Some(Mute::Silenced(SilenceId(1))), Standing::Muted));
        assert_eq!(told(&alerts.pass(590)), [""; 0]);
        assert_eq!(told(&alerts.pass(10)), ["1 stale warning: it was found"], "{scope:?}");
        assert_eq!(alerts.bench.policy.silences().count(), 0);
    }
}

#[test]
fn what_is_silenced_and_ends_is_never_told() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::About(stale(1).about), 600, false);
    alerts.fire();
    alerts.sweep(false);
    assert_eq!(told(&alerts.pass(5000)), [""; 0]);
    let mut brief = Alerts::new();
    brief.silence(SilenceScope::About(stale(1).about), 600, false);
    brief.sweep(true);
    brief.sweep(false);
    assert_eq!(told(&brief.pass(5000)), [""; 0], "also where it ended while it waited for others");
}

#[test]
fn a_silence_spares_reminders_and_not_the_ending_of_what_was_told() {
    let mut alerts = Alerts::new();
    alerts.fire();
    alerts.silence(SilenceScope::Alert(stale(1)), 100 * 3600, false);
    assert_eq!(told(&alerts.pass(50 * 3600)), [""; 0]);
    assert_eq!(told(&alerts.sweep_at(Some(Severity::Critical))), [""; 0]);
    alerts.sweep(false);
    assert_eq!(told(&alerts.pass(30)), ["1 stale critical: it is over"]);
}

#[test]
fn a_silence_until_it_is_resolved_ends_with_the_alert_and_not_with_a_moment_of_quiet() {
    let mut alerts = Alerts::new();
    alerts.fire();
    alerts.silence(SilenceScope::About(stale(1).about), 3600, true);
    alerts.sweep(false);
    assert_eq!(ends(&alerts.pass(10)), []);
    alerts.sweep(true);
    assert_eq!(ends(&alerts.pass(60)), []);
    alerts.sweep(false);
    assert_eq!(ends(&alerts.pass(30)), [SilenceEnd::Resolved]);
}

#[test]
fn a_silence_until_resolved_waits_for_all_that_it_covers() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::Rule(RuleName::Liveness), 3600, true);
    alerts.sweep_all(2, [1, 2]);
    alerts.pass(10);
    assert_eq!(ends(&alerts.sweep_all(2, [2])), []);
    assert_eq!(ends(&alerts.sweep_all(2, [])), [SilenceEnd::Resolved]);
}

/// Whoever asks for a silence for ever gets one that ends.
#[test]
fn no_silence_is_without_an_end() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::Rule(RuleName::Liveness), u64::MAX / 4, true);
    let until = alerts.bench.policy.silences().next().unwrap().until;
    assert_eq!(until, alerts.bench.now.after(seconds(30 * 24 * 3600)));
    assert_eq!(ends(&alerts.pass(30 * 24 * 3600)), [SilenceEnd::Expired]);
}

#[test]
fn a_silence_is_lifted_by_hand_and_with_its_subject() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::About(stale(1).about), 3600, false);
    alerts.fire();
    let actions = alerts.tell(AlertEvent::Unsilenced { silence: SilenceId(1) });
    assert_eq!(
        (ends(&actions), told(&actions)),
        (vec![SilenceEnd::Lifted], vec!["1 stale warning: it was found".into()])
    );
    alerts.tell(AlertEvent::Unsilenced { silence: SilenceId(1) });
    assert_eq!(alerts.bench.policy.refused_count(), 1, "there is none of this number");

    alerts.silence(SilenceScope::Alert(stale(1)), 3600, false);
    let actions = alerts.tell(AlertEvent::Removed { about: stale(1).about });
    assert_eq!(ends(&actions), [SilenceEnd::Removed]);
    assert_eq!(told(&actions), ["1 stale warning: its subject is watched no longer"]);
}

#[test]
fn silences_are_bounded_and_a_known_one_is_changed_all_the_same() {
    let mut alerts = Alerts::new();
    let until = alerts.bench.now.after(seconds(60));
    let silence = |id| latido_policy::Silence {
        id: SilenceId(id),
        scope: SilenceScope::Rule(RuleName::Liveness),
        until,
        until_resolved: false,
    };
    for id in 0..1000 {
        assert_eq!(ends(&alerts.tell(AlertEvent::Silenced { silence: silence(id) })), []);
    }
    assert_eq!(ends(&alerts.tell(AlertEvent::Silenced { silence: silence(1000) })), [SilenceEnd::TooMany]);
    assert_eq!(ends(&alerts.tell(AlertEvent::Silenced { silence: silence(7) })), []);
}

#[test]
fn a_host_that_is_down_explains_what_runs_on_it() {
    let mut alerts = Alerts::new();
    alerts.note(HOST_DOWN, true);
    assert_eq!(told(&alerts.fire()), ["host host-down critical: it was found"]);
    assert_eq!(alerts.view(stale(1)).unwrap().mute, Some(Mute::Inhibited(HOST_DOWN)));
    let elsewhere = AlertEvent::Found { alert: stale(2), severity: Severity::Warning, host: Some(Fingerprint(1)) };
    alerts.tell(elsewhere);
    assert_eq!(told(&alerts.pass(2)), ["2 stale warning: it was found"]);
    alerts.note(HOST_DOWN, false);
    assert_eq!(told(&alerts.pass(29)), [""; 0], "what runs on it has time to come back");
    let after = told(&alerts.pass(1));
    assert_eq!(after, ["host host-down critical: it is over", "1 stale warning: it was found"], "and this did not");
}

#[test]
fn an_agent_that_could_not_hear_tells_of_itself_and_not_of_mass_silence() {
    let mut alerts = Alerts::new();
    alerts.note(blackout(), true);
    alerts.sweep_all(100, 1..=100);
    alerts.call(RuleName::Liveness, &[key(7, Condition::Dead).about], &[(key(7, Condition::Dead), Severity::Warning)]);
    let lines = told(&alerts.pass(60));
    assert_eq!(lines, ["agent blackout critical: it was found", "7 dead warning: it was found"], "death is proven");
    alerts.sweep_all(6, [3]);
    let others: Vec<About> = (8..=100).map(|subject| stale(subject).about).collect();
    alerts.call(RuleName::Liveness, &others, &[]);
    alerts.call(RuleName::Liveness, &[key(7, Condition::Dead).about], &[(key(7, Condition::Dead), Severity::Warning)]);
    alerts.note(blackout(), false);
    assert_eq!(told(&alerts.pass(30)), ["agent blackout critical: it is over", "3 stale warning: it was found"]);
}

#[test]
fn an_inhibitor_that_is_not_confirmed_yet_holds_back_already() {
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Agent, confirm: confirm(3, 0) });
    alerts.note(HOST_DOWN, true);
    assert_eq!(told(&alerts.fire()), [""; 0]);
    assert_eq!(told(&alerts.note(HOST_DOWN, false)), ["1 stale warning: it was found"]);
}

#[test]
fn a_silenced_member_is_no_part_of_a_group() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::About(stale(3).about), 60, false);
    alerts.sweep_all(6, 1..=6);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 5 subjects have it at once"]);
    assert_eq!(told(&alerts.pass(400)), ["many stale warning: 6 subjects have it by now"], "until it may join");
}

#[test]
fn a_look_of_the_agents_own_ends_nothing_that_it_did_not_look_for() {
    let mut alerts = Alerts::new();
    let note = |condition, severity| AlertEvent::Noted { condition, about: About::Agent, severity };
    alerts.tell(note(Condition::Blackout, Some(Severity::Critical)));
    alerts.tell(note(Condition::StoreAway, Some(Severity::Critical)));
    alerts.tell(note(Condition::StoreAway, None));
    alerts.pass(3600);
    assert_eq!(alerts.view(blackout()).unwrap().record.unwrap().standing, Standing::Firing);
    let store_away = AlertKey { condition: Condition::StoreAway, ..blackout() };
    assert_eq!(alerts.view(store_away), None);
}

#[test]
fn a_silence_that_ends_hurries_nothing_that_waits_for_others() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::About(stale(9).about), 1, false);
    alerts.sweep(true);
    assert_eq!(told(&alerts.pass(1)), [""; 0]);
    assert_eq!(told(&alerts.pass(1)), ["1 stale warning: it was found"]);
}

#[test]
fn a_silence_until_resolved_does_not_end_by_what_was_never_confirmed() {
    let mut alerts = Alerts::new();
    alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Liveness, confirm: confirm(2, 0) });
    alerts.silence(SilenceScope::Rule(RuleName::Liveness), 3600, true);
    alerts.sweep(true);
    assert_eq!(ends(&alerts.sweep(false)), []);
    assert_eq!(alerts.bench.policy.silences().count(), 1);
}

#[test]
fn a_silence_until_resolved_ends_with_the_subject_of_the_last_alert_that_it_covers() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::Rule(RuleName::Liveness), 3600, true);
    alerts.fire();
    assert_eq!(ends(&alerts.tell(AlertEvent::Removed { about: stale(1).about })), [SilenceEnd::Resolved]);
}

/// Only the agent knows whether it could hear.
#[test]
fn what_a_rule_calls_a_blackout_keeps_nobody_quiet() {
    let mut alerts = Alerts::new();
    let rule = RuleName::Other(Fingerprint(5));
    let its_own = AlertKey { rule, ..blackout() };
    alerts.call(rule, &[its_own.about], &[(its_own, Severity::Warning)]);
    let lines = told(&alerts.fire());
    assert!(lines.contains(&"1 stale warning: it was found".to_owned()), "{lines:?}");
}
