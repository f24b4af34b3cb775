//! Many at once, restarts and limits.

use latido_policy::{AlertEvent, AlertSettings, Condition, Moment, RuleName, Severity, SilenceScope, SubjectId};

use crate::alert_bench::{Alerts, blackout, key, many_stale, name, stale, told};
use crate::harness::seconds;

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
        ["many stale warning: 110 subjects have it by now", "many stale warning: 210 subjects have it by now"]
    );
}

#[test]
fn a_mass_event_counts_whom_it_still_holds_of() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(500, 1..=60);
    alerts.pass(1);
    alerts.sweep_all(500, 21..=60);
    assert_eq!(told(&alerts.pass(1)), ["many stale warning: 40 subjects have it at once"]);
    alerts.sweep_all(500, 51..=70);
    assert_eq!(told(&alerts.pass(300)), ["many stale warning: 20 subjects have it by now"], "ten of them are others");
    alerts.sweep_all(500, 61..=70);
    assert_eq!(told(&alerts.pass(900)), [""; 0], "nobody has come");
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
fn alerts_are_bounded_and_what_found_no_room_is_found_again() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(20_010, 1..=20_010);
    assert_eq!(alerts.bench.policy.refused_count(), 10);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 20000 subjects have it at once"]);
    alerts.sweep_all(20_010, 20_000..=20_010);
    alerts.pass(700);
    alerts.sweep_all(20_010, 20_000..=20_010);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 11 subjects have it by now"]);
    assert_eq!(alerts.bench.policy.alerts().count(), 12, "eleven and their group");
}

#[test]
fn every_name_in_a_view_is_the_name_that_was_given() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(5, 1..=5);
    alerts.pass(2);
    let names: Vec<String> = alerts.bench.policy.alerts().map(|view| name(view.alert)).collect();
    assert_eq!(names, ["1 stale", "2 stale", "3 stale", "4 stale", "5 stale", "many stale"]);
    assert_eq!(alerts.view(many_stale()).unwrap().record.unwrap().subjects, 5);
    assert_eq!(alerts.bench.policy.poll_timeout().map(|next| next > Moment::ORIGIN), Some(true));
    assert!(alerts.bench.policy.subject(SubjectId(1)).is_none(), "whom it is about need not be known here");
}

#[test]
fn a_mass_event_that_grew_and_ended_is_told_to_be_over_when_its_end_has_lasted() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(9, 1..=5);
    alerts.pass(2);
    alerts.pass(280);
    alerts.sweep_all(9, 1..=6);
    alerts.pass(10);
    alerts.sweep_all(9, []);
    assert_eq!(told(&alerts.pass(29)), [""; 0], "nobody has it by now");
    assert_eq!(told(&alerts.pass(1)), ["many stale warning: it is over"]);
}

#[test]
fn a_mass_event_that_comes_and_goes_and_grows_does_not_count_as_steady_for_that() {
    let mut alerts = Alerts::new();
    let mut lines = Vec::new();
    for _ in 0..3 {
        alerts.sweep_all(9, 1..=5);
        lines.extend(told(&alerts.pass(2)));
        alerts.sweep_all(9, []);
    }
    alerts.sweep_all(9, 1..=5);
    lines.extend(told(&alerts.pass(10)));
    alerts.sweep_all(9, 1..=9);
    lines.extend(told(&alerts.pass(400)));
    assert_eq!(lines.len(), 3, "{lines:?}");
    let begins = [
        "many stale warning: 5 subjects have it at once",
        "many stale warning: it comes and goes, 3 times so far; told again when that is over",
    ];
    assert_eq!(lines[..2], begins);
    assert_eq!(lines[2], "many stale warning: 9 subjects have it by now");
}

#[test]
fn a_member_that_goes_and_comes_again_is_no_other_and_is_counted_once() {
    let mut alerts = Alerts::new();
    alerts.sweep_all(9, 1..=5);
    assert_eq!(told(&alerts.pass(2)), ["many stale warning: 5 subjects have it at once"]);
    for _ in 0..3 {
        alerts.sweep_all(9, 2..=5);
        alerts.pass(2000);
        alerts.sweep_all(9, 1..=5);
        assert_eq!(told(&alerts.pass(2000)), [""; 0], "all of them are known");
    }
    alerts.sweep_all(9, 2..=7);
    alerts.sweep_all(9, 2..=6);
    assert_eq!(told(&alerts.pass(2000)), ["many stale warning: 5 subjects have it by now"], "one of them is another");
}

#[test]
fn a_mass_event_that_is_over_lends_its_number_to_no_other() {
    let mut alerts = Alerts::new();
    for _ in 0..2 {
        alerts.sweep_all(9, 1..=5);
        assert_eq!(told(&alerts.pass(2)), ["many stale warning: 5 subjects have it at once"]);
        alerts.sweep_all(9, []);
        assert_eq!(told(&alerts.pass(2000)), ["many stale warning: it is over"]);
    }
}

#[test]
fn a_restart_keeps_of_how_many_a_group_was_told() {
    let mut before = Alerts::new();
    before.sweep_all(9, 1..=9);
    before.pass(2);
    let mut after = before.restart(AlertSettings::default());
    assert_eq!(after.view(many_stale()).unwrap().record.unwrap().subjects, 9);
    after.sweep_all(10, 1..=10);
    assert_eq!(told(&after.pass(600)), ["many stale warning: 10 subjects have it by now"]);
}

#[test]
fn what_the_agent_had_found_of_itself_is_over_when_it_does_not_find_it_again() {
    let mut before = Alerts::new();
    before.note(blackout(), true);
    before.pass(2);
    let mut after = before.restart(AlertSettings::default());
    assert_eq!(told(&after.pass(60 + 29)), [""; 0], "it has a minute to find it again, and its end lasts");
    assert_eq!(told(&after.pass(1)), ["agent blackout critical: it is over"]);
}

#[test]
fn an_alert_is_remembered_once() {
    let mut before = Alerts::new();
    before.fire();
    let record = before.view(stale(1)).unwrap().record.unwrap();
    let mut after = Alerts::new();
    for refused_count in 0..3 {
        let (alert, held_for, told_ago) = (stale(1), seconds(0), seconds(0));
        after.tell(AlertEvent::Restored { alert, record, held_for, told_ago, host: None });
        assert_eq!(after.bench.policy.refused_count(), refused_count);
    }
}
