//! What people are told of, and what they are spared.

use latido_policy::{
    About, AlertAction, AlertEvent, AlertKey, AlertSettings, Condition, Event, Fingerprint, Found, Moment, Mute, Phase,
    RuleName, Severity, SilenceEnd, SilenceId, SilenceScope, Standing, SubjectId, Verdict, Want,
};

use crate::alert_bench::{Alerts, HOST, blackout, confirm, key, many_stale, name, stale, told};
use crate::harness::{JOB, attempt, beat, found_running, seconds, settings};

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
    assert_eq!((alerts.view(stale(1)), alerts.policy.poll_timeout()), (None, None), "nothing of it is left");
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
    assert_eq!(alerts.policy.refused_count(), 2);
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
        assert_eq!(alerts.policy.silences().count(), 0);
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
    let until = alerts.policy.silences().next().unwrap().until;
    assert_eq!(until, alerts.now.after(seconds(30 * 24 * 3600)));
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
    assert_eq!(alerts.policy.refused_count(), 1, "there is none of this number");

    alerts.silence(SilenceScope::Alert(stale(1)), 3600, false);
    let actions = alerts.tell(AlertEvent::Removed { about: stale(1).about });
    assert_eq!(ends(&actions), [SilenceEnd::Removed]);
    assert_eq!(told(&actions), ["1 stale warning: its subject is watched no longer"]);
}

#[test]
fn silences_are_bounded_and_a_known_one_is_changed_all_the_same() {
    let mut alerts = Alerts::new();
    let until = alerts.now.after(seconds(60));
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
fn many_at_once_are_told_as_one_with_their_number() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(100, 1..=60);
    alerts.pass(1);
    alerts.sweep_all(100, 1..=100);
    assert_eq!(told(&alerts.pass(1)), ["many stale warning: 100 subjects have it at once"]);
    alerts.sweep_all(100, 2..=100);
    assert_eq!(told(&alerts.pass(600)), [""; 0], "one that is well again ends nothing");
    alerts.sweep_all(100, []);
    assert_eq!(told(&alerts.pass(30)), ["many stale warning: it is over"]);
}

#[test]
fn a_few_are_told_one_by_one() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(4, 1..=4);
    let lines = told(&alerts.pass(2));
    assert_eq!(lines.len(), 4);
    assert!(lines.iter().all(|line| line.ends_with("it was found")), "{lines:?}");
}

#[test]
fn only_what_is_the_same_is_told_as_one() {
    let mut alerts = Alerts::new();
    let conditions = [Condition::Stale, Condition::Dead, Condition::Hung, Condition::Stuck, Condition::Held];
    let found: Vec<_> = (1..).zip(conditions).map(|(subject, one)| (key(subject, one), Severity::Warning)).collect();
    let asked: Vec<_> = found.iter().map(|(alert, _)| alert.about).collect();
    alerts.call(RuleName::Liveness, &asked, &found);
    assert_eq!(told(&alerts.pass(2)).len(), 5);
}

#[test]
fn a_mass_event_that_grows_is_told_again_at_most_every_few_minutes() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(500, 1..=10);
    alerts.pass(2);
    let mut lines = Vec::new();
    for minute in 1..=10_u32 {
        alerts.sweep_all(500, 1..=10 + minute * 20);
        lines.extend(told(&alerts.pass(60)));
    }
    assert_eq!(
        lines,
        ["many stale warning: 110 subjects have had it so far", "many stale warning: 210 subjects have had it so far"]
    );
}

#[test]
fn a_member_that_gets_worse_makes_its_group_worse() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(9, 1..=9);
    alerts.pass(2);
    let found = [(stale(4), Severity::Critical), (stale(5), Severity::Critical)];
    let actions = alerts.call(RuleName::Liveness, &[stale(4).about, stale(5).about], &found);
    assert_eq!(told(&actions), ["many stale critical: it is worse than it was"]);
}

#[test]
fn a_removed_member_ends_its_group_when_it_was_the_last() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(5, 1..=5);
    alerts.pass(2);
    for subject in 1..=5 {
        assert_eq!(told(&alerts.tell(AlertEvent::Removed { about: stale(subject).about })), [""; 0]);
    }
    assert_eq!(told(&alerts.pass(30)), ["many stale warning: it is over"]);
}

#[test]
fn a_silenced_member_is_no_part_of_a_group() {
    let mut alerts = Alerts::new();
    alerts.silence(SilenceScope::About(stale(3).about), 60, false);
    alerts.sweep_all(6, 1..=6);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 5 subjects have it at once"]);
    assert_eq!(told(&alerts.pass(400)), ["many stale warning: 6 subjects have had it so far"], "until it may join");
}

/// A restart repeats nothing, misses nothing, and resolves what ended meanwhile by the first call that contains it.
#[test]
fn a_restart_repeats_nothing_and_misses_nothing() {
    let mut before = Alerts::new();
    before.sweep_all(3, [1, 2]);
    before.pass(2);
    before.tell(AlertEvent::Acknowledged { alert: stale(1) });
    let mut after = before.restart(AlertSettings::default());
    assert_eq!(told(&after.sweep_all(3, [1, 3])), [""; 0]);
    assert_eq!(told(&after.pass(60)), ["3 stale warning: it was found", "2 stale warning: it is over"]);
    assert!(after.view(stale(1)).unwrap().record.unwrap().acknowledged.is_some());
    assert_eq!(told(&after.pass(8 * 3600)), ["3 stale warning: it still holds", "3 stale warning: it still holds"]);
}

#[test]
fn a_restart_keeps_a_group_together() {
    let mut before = Alerts::new();
    before.sweep_all(9, 1..=9);
    before.pass(2);
    let mut after = before.restart(AlertSettings::default());
    after.sweep_all(9, 1..=9);
    assert_eq!(told(&after.pass(600)), [""; 0]);
    after.sweep_all(9, [9]);
    assert_eq!(told(&after.pass(600)), [""; 0]);
    after.sweep_all(9, []);
    assert_eq!(told(&after.pass(30)), ["many stale warning: it is over"]);
}

#[test]
fn what_was_muted_before_a_restart_is_told_only_if_it_is_found_again() {
    let mut before = Alerts::new();
    before.silence(SilenceScope::Rule(RuleName::Liveness), 60, false);
    before.sweep_all(2, [1, 2]);
    before.pass(10);
    let mut after = before.restart(AlertSettings::default());
    assert_eq!(told(&after.pass(100)), [""; 0]);
    after.sweep_all(2, [2]);
    assert_eq!(told(&after.pass(100)), ["2 stale warning: it was found"]);
}

#[test]
fn a_reminder_is_due_by_what_was_told_before_the_restart() {
    let mut before = Alerts::new();
    before.fire();
    let record = before.view(stale(1)).unwrap().record.unwrap();
    let mut after = Alerts::new();
    let (alert, held_for, told_ago) = (stale(1), seconds(4 * 3600), seconds(3 * 3600));
    after.tell(AlertEvent::Restored { alert, record, held_for, told_ago, host: None });
    assert_eq!(told(&after.pass(3599)), [""; 0]);
    assert_eq!(told(&after.pass(1)), ["1 stale warning: it still holds"]);
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
    alerts.policy.handle_event(
        Event::JobAdded { subject: JOB, settings: settings(), found: found_running(1, beat(1, 5)) },
        alerts.now,
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
    alerts.policy.handle_event(Event::JobAdded { subject: JOB, settings: settings(), found }, alerts.now);
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
    alerts.policy.handle_event(
        Event::JobAdded { subject: JOB, settings: eager, found: found_running(1, beat(1, 5)) },
        alerts.now,
    );
    alerts.policy.handle_event(Event::LookFailed { subject: JOB, attempt: attempt(1) }, alerts.now);
    let view = alerts.policy.subject(JOB).unwrap();
    assert_eq!((view.verdict, view.phase), (Verdict::Unknown, Phase::Running));
    alerts.tell(AlertEvent::RuleFailed { rule: RuleName::Liveness });
    let lines = told(&alerts.pass(2));
    assert_eq!(lines, ["rule rule-broken critical: it was found", "7 unknown warning: it was found"]);
}

#[test]
fn alerts_are_bounded_and_what_found_no_room_is_found_again() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(20_010, 1..=20_010);
    assert_eq!(alerts.policy.refused_count(), 10);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 20000 subjects have it at once"]);
    alerts.sweep_all(20_010, 20_000..=20_010);
    alerts.pass(700);
    alerts.sweep_all(20_010, 20_000..=20_010);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 20010 subjects have had it so far"]);
    assert_eq!(alerts.policy.alerts().count(), 12, "eleven and their group");
}

#[test]
fn every_name_in_a_view_is_the_name_that_was_given() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(5, 1..=5);
    alerts.pass(2);
    let names: Vec<String> = alerts.policy.alerts().map(|view| name(view.alert)).collect();
    assert_eq!(names, ["1 stale", "2 stale", "3 stale", "4 stale", "5 stale", "many stale"]);
    assert_eq!(alerts.view(many_stale()).unwrap().record.unwrap().subjects, 5);
    assert_eq!(alerts.policy.poll_timeout().map(|next| next > Moment::ORIGIN), Some(true));
    assert!(alerts.policy.subject(SubjectId(1)).is_none(), "whom it is about need not be known here");
}
