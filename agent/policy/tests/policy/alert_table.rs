//! Every state of one alert met with every event. The result is a text that is reviewed as code: `UPDATE_EXPECTED=1`
//! writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use latido_policy::{AlertAction, AlertEvent, AlertSettings, RuleName, Severity, SilenceId, SilenceScope};

use crate::alert_bench::{Alerts, blackout, confirm, kept, line, many_stale, name, stale};

type Setup = fn() -> Alerts;
type Act = fn(&mut Alerts) -> Vec<AlertAction>;

fn after(mut alerts: Alerts, act: impl FnOnce(&mut Alerts)) -> Alerts {
    act(&mut alerts);
    alerts
}

fn needs_two() -> Alerts {
    after(Alerts::new(), |alerts| {
        alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Liveness, confirm: confirm(2, 0) });
    })
}

fn firing() -> Alerts {
    after(Alerts::new(), |alerts| drop(alerts.fire()))
}

fn ending() -> Alerts {
    after(firing(), |alerts| drop(alerts.sweep(false)))
}

fn flapping() -> Alerts {
    after(firing(), |alerts| {
        for is_stale in [false, true, false, true] {
            alerts.sweep(is_stale);
        }
    })
}

fn silence_it(alerts: &mut Alerts) -> Vec<AlertAction> {
    alerts.silence(SilenceScope::About(stale(1).about), 3600, false)
}

const STATES: &[(&str, Setup)] = &[
    ("unknown", Alerts::new),
    ("pending", || after(needs_two(), |alerts| drop(alerts.sweep(true)))),
    ("confirmed, waits for others", || after(Alerts::new(), |alerts| drop(alerts.sweep(true)))),
    ("confirmed and ended, waits for others", || {
        after(Alerts::new(), |alerts| {
            alerts.sweep(true);
            alerts.sweep(false);
        })
    }),
    ("silenced", || {
        after(Alerts::new(), |alerts| {
            silence_it(alerts);
            alerts.fire();
        })
    }),
    ("inhibited", || {
        after(Alerts::new(), |alerts| {
            alerts.note(blackout(), true);
            alerts.fire();
        })
    }),
    ("grouped", || {
        after(Alerts::new(), |alerts| {
            alerts.sweep_all(5, 1..=5);
            alerts.pass(2);
        })
    }),
    ("firing", firing),
    ("firing, acknowledged", || {
        after(firing(), |alerts| drop(alerts.tell(AlertEvent::Acknowledged { alert: stale(1) })))
    }),
    ("firing, silenced", || after(firing(), |alerts| drop(silence_it(alerts)))),
    ("ending", ending),
    ("flapping, holds", flapping),
    ("flapping, does not hold", || after(flapping(), |alerts| drop(alerts.sweep(false)))),
    ("quiet", || after(ending(), |alerts| drop(alerts.pass(30)))),
];

const EVENTS: &[(&str, Act)] = &[
    ("found", |alerts| alerts.sweep(true)),
    ("found worse", |alerts| alerts.sweep_at(Some(Severity::Critical))),
    ("found less bad", |alerts| alerts.sweep_at(Some(Severity::Info))),
    ("not found", |alerts| alerts.sweep(false)),
    ("acknowledged", |alerts| alerts.tell(AlertEvent::Acknowledged { alert: stale(1) })),
    ("silenced", silence_it),
    ("unsilenced", |alerts| alerts.tell(AlertEvent::Unsilenced { silence: SilenceId(1) })),
    ("the agent could not hear", |alerts| alerts.note(blackout(), true)),
    ("its subject is removed", |alerts| alerts.tell(AlertEvent::Removed { about: stale(1).about })),
    ("four others are found", |alerts| {
        let mut actions = alerts.call(
            RuleName::Liveness,
            &[2, 3, 4, 5].map(|subject| stale(subject).about),
            &[2, 3, 4, 5].map(|subject| (stale(subject), Severity::Warning)),
        );
        actions.extend(alerts.pass(2));
        actions
    }),
    ("the settings change", |alerts| {
        alerts.tell(AlertEvent::SettingsChanged {
            settings: AlertSettings { remind_every: None, ..AlertSettings::default() },
        })
    }),
    ("its time comes", |alerts| {
        let next = alerts.bench.policy.poll_timeout().unwrap_or(alerts.bench.now);
        alerts.pass(next.since(alerts.bench.now).as_secs())
    }),
];

/// What an action says of the alert, of its group or of a silence; other subjects have tables of their own.
fn short(action: &AlertAction) -> Option<String> {
    let shown = |alert| alert == stale(1) || alert == many_stale();
    match action {
        AlertAction::Tell { alert, severity, telling, .. } if shown(*alert) => {
            Some(format!("TELL {}", line(*alert, *severity, *telling)))
        }
        AlertAction::Record { alert, record } if shown(*alert) => {
            let kept = record.as_ref().map_or("nothing".to_owned(), kept);
            Some(format!("keep of {}: {kept}", name(*alert)))
        }
        AlertAction::Forget { alert } if shown(*alert) => Some(format!("forget {}", name(*alert))),
        AlertAction::KeepSilence { .. } => Some("keep silence".to_owned()),
        AlertAction::EndSilence { because, .. } => Some(format!("end silence: {because}")),
        AlertAction::Tell { .. } | AlertAction::Record { .. } | AlertAction::Forget { .. } => None,
    }
}

fn state(alerts: &Alerts) -> String {
    alerts.view(stale(1)).map_or("no alert".to_owned(), |view| {
        let standing = view.record.map_or("untold".to_owned(), |record| record.standing.to_string());
        let mute = if view.mute.is_some() { ", muted" } else { "" };
        format!("{standing}{mute}")
    })
}

fn table() -> String {
    let mut text = String::new();
    for (state_name, setup) in STATES {
        writeln!(text, "{state_name}: {}", state(&setup())).unwrap();
        for (event_name, act) in EVENTS {
            let mut alerts = setup();
            let refused_count = alerts.bench.policy.refused_count();
            let actions = act(&mut alerts);
            let mut line = format!("  {event_name:<26} {:<18}", state(&alerts));
            for action in actions.iter().filter_map(short) {
                write!(line, " | {action}").unwrap();
            }
            if alerts.bench.policy.refused_count() > refused_count {
                line.push_str(" | refused");
            }
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
    }
    text
}

#[test]
fn every_state_of_an_alert_meets_every_event_as_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/alert_table.txt");
    let actual = table();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    for (number, (actual, expected)) in actual.lines().zip(expected.lines()).enumerate() {
        assert_eq!(actual, expected, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(actual.lines().count(), expected.lines().count());
}

#[test]
fn an_event_told_twice_tells_people_what_it_tells_once() {
    let repeatable = ["found", "found worse", "found less bad", "not found", "acknowledged", "silenced"];
    for (state_name, setup) in STATES {
        for (event_name, act) in EVENTS.iter().filter(|(name, _)| repeatable.contains(name)) {
            let mut alerts = setup();
            act(&mut alerts);
            let again = crate::alert_bench::told(&act(&mut alerts));
            assert_eq!(again, [""; 0], "{state_name}, {event_name} again");
        }
    }
}
