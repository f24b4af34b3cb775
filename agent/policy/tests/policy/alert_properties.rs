//! Any order of findings, requests, times and restarts.

use std::collections::BTreeMap;

use core::time::Duration;
use latido_policy::{
    About, AlertAction, AlertEvent, AlertKey, AlertSettings, Condition, RuleName, Severity, Silence, SilenceId,
    SilenceScope, SubjectId, Telling,
};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::alert_bench::{Alerts, HOST, blackout, confirm, many_stale, stale};
use crate::harness::seconds;

const SUBJECTS: u32 = 7;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    /// `liveness` is asked about the first so many subjects, and finds those of the mask stale.
    Call {
        asked: u32,
        found: u8,
        severity: Severity,
    },
    Blackout(bool),
    HostDown(bool),
    Removed(u32),
    Acknowledged(AlertKey),
    Silenced {
        id: u32,
        scope: SilenceScope,
        length: u64,
        until_resolved: bool,
    },
    Unsilenced(u32),
    Settings(AlertSettings),
    Confirm(u32, u64),
    RuleFailed(bool),
    Pass(u64),
    Restart,
}

fn any_severity() -> impl Strategy<Value = Severity> {
    prop_oneof![4 => Just(Severity::Warning), 1 => Just(Severity::Info), 1 => Just(Severity::Critical)]
}

fn any_key() -> impl Strategy<Value = AlertKey> {
    prop_oneof![6 => (1..=SUBJECTS).prop_map(stale), 2 => Just(many_stale()), 1 => Just(blackout())]
}

fn any_scope() -> impl Strategy<Value = SilenceScope> {
    prop_oneof![
        (1..=SUBJECTS).prop_map(|subject| SilenceScope::About(stale(subject).about)),
        any_key().prop_map(SilenceScope::Alert),
        Just(SilenceScope::Rule(RuleName::Liveness))
    ]
}

fn any_settings() -> impl Strategy<Value = AlertSettings> {
    let span = || prop_oneof![Just(0_u64), 1_u64..100, 100_u64..2000].prop_map(seconds);
    let least = || (1_u32..6).prop_map(|count| confirm(count, 0).sweeps);
    (span(), least(), span(), span(), span(), least(), proptest::option::of(1_u64..5000)).prop_map(
        |(group_for, group_min, group_every, resolve_after, flap_for, flap_min, remind_every)| AlertSettings {
            group_for,
            group_min,
            group_every,
            resolve_after,
            flap_for,
            flap_min,
            remind_every: remind_every.map(seconds),
            ..AlertSettings::default()
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (1..=SUBJECTS, any::<u8>(), any_severity())
            .prop_map(|(asked, found, severity)| Step::Call { asked, found, severity }),
        1 => any::<bool>().prop_map(Step::Blackout),
        1 => any::<bool>().prop_map(Step::HostDown),
        1 => (1..=SUBJECTS).prop_map(Step::Removed),
        2 => any_key().prop_map(Step::Acknowledged),
        2 => (0_u32..3, any_scope(), 0_u64..5000, any::<bool>())
            .prop_map(|(id, scope, length, until_resolved)| Step::Silenced { id, scope, length, until_resolved }),
        1 => (0_u32..3).prop_map(Step::Unsilenced),
        1 => any_settings().prop_map(Step::Settings),
        1 => (1_u32..4, 0_u64..60).prop_map(|(sweeps, held_for)| Step::Confirm(sweeps, held_for)),
        1 => any::<bool>().prop_map(Step::RuleFailed),
        10 => prop_oneof![0_u64..5, 5_u64..120, 120_u64..5000].prop_map(Step::Pass),
        2 => Just(Step::Restart)
    ]
}

/// The policy, and what people believe after all they were told.
struct World {
    alerts: Alerts,
    settings: AlertSettings,
    /// what they believe to hold
    believed: BTreeMap<AlertKey, ()>,
    log: Vec<String>,
}

impl World {
    fn new() -> Self {
        let settings = AlertSettings::default();
        Self { alerts: Alerts::with(settings), settings, believed: BTreeMap::new(), log: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
        let alerts = &mut self.alerts;
        let actions = match *step {
            Step::Call { asked, found, severity } => {
                let about: Vec<About> = (1..=asked).map(|subject| stale(subject).about).collect();
                let found = (1..=asked).filter(|subject| found & (1 << subject) != 0);
                let found: Vec<_> = found.map(|subject| (stale(subject), severity)).collect();
                alerts.call(RuleName::Liveness, &about, &found)
            }
            Step::Blackout(holds) => alerts.note(blackout(), holds),
            Step::HostDown(holds) => {
                let down = AlertKey { about: About::Host(HOST), condition: Condition::HostDown, ..blackout() };
                alerts.note(down, holds)
            }
            Step::Removed(subject) => alerts.tell(AlertEvent::Removed { about: About::Subject(SubjectId(subject)) }),
            Step::Acknowledged(alert) => alerts.tell(AlertEvent::Acknowledged { alert }),
            Step::Silenced { id, scope, length, until_resolved } => {
                let until = alerts.bench.now.after(seconds(length));
                alerts
                    .tell(AlertEvent::Silenced { silence: Silence { id: SilenceId(id), scope, until, until_resolved } })
            }
            Step::Unsilenced(id) => alerts.tell(AlertEvent::Unsilenced { silence: SilenceId(id) }),
            Step::Settings(settings) => {
                self.settings = settings;
                alerts.tell(AlertEvent::SettingsChanged { settings })
            }
            Step::Confirm(sweeps, held_for) => {
                let confirm = confirm(sweeps, held_for);
                alerts.tell(AlertEvent::ConfirmChanged { rule: RuleName::Liveness, confirm })
            }
            Step::RuleFailed(fails) => {
                let rule = RuleName::Liveness;
                alerts.tell(if fails { AlertEvent::RuleFailed { rule } } else { AlertEvent::RuleAnswered { rule } })
            }
            Step::Pass(length) => return self.pass(length),
            Step::Restart => return self.restart(),
        };
        self.believe(&actions);
    }

    /// Lets time pass in small parts, so that what is believed is compared with what was silenced at the time.
    fn pass(&mut self, length: u64) {
        let end = self.alerts.bench.now.after(seconds(length));
        while let Some(next) = self.alerts.bench.policy.poll_timeout().filter(|&next| next <= end) {
            let actions = self.alerts.pass(next.since(self.alerts.bench.now).as_secs());
            self.believe(&actions);
        }
        let actions = self.alerts.pass(end.since(self.alerts.bench.now).as_secs());
        self.believe(&actions);
    }

    fn restart(&mut self) {
        let mut again = self.alerts.restart(self.settings);
        for &silence in self.alerts.bench.policy.silences() {
            let until = again.bench.now.after(silence.until.since(self.alerts.bench.now));
            again.tell(AlertEvent::Silenced { silence: Silence { until, ..silence } });
        }
        self.alerts = again;
        let actions = self.alerts.take();
        self.believe(&actions);
    }

    /// Takes in what people are told, and checks that it makes sense to them.
    fn believe(&mut self, actions: &[AlertAction]) {
        for action in actions {
            self.log.push(format!("{action:?}"));
            let AlertAction::Tell { alert, telling, .. } = *action else { continue };
            let is_believed = self.believed.contains_key(&alert);
            match telling {
                Telling::Began { .. } | Telling::BeganForMany { .. } => {
                    assert!(!is_believed, "{alert:?} began twice");
                    self.believed.insert(alert, ());
                }
                Telling::Flaps { .. } => drop(self.believed.insert(alert, ())),
                Telling::Grew { .. } | Telling::Settled { .. } | Telling::Rose | Telling::Reminder => {
                    assert!(is_believed, "{alert:?} was told to be {telling:?} and never began");
                }
                Telling::Resolved { .. } => {
                    assert!(self.believed.remove(&alert).is_some(), "{alert:?} ended and never began");
                }
            }
            let view = self.alerts.view(alert);
            let quiet = view.is_some_and(|view| {
                view.mute.is_some() || view.record.is_some_and(|record| record.acknowledged.is_some())
            });
            assert!(telling != Telling::Reminder || !quiet, "{alert:?} was reminded of in spite of all");
        }
    }
}

/// Everything ends, and time enough passes for all of it to be told.
fn calm() -> [Step; 5] {
    [
        Step::RuleFailed(false),
        Step::HostDown(false),
        Step::Blackout(false),
        Step::Call { asked: SUBJECTS, found: 0, severity: Severity::Info },
        Step::Pass(40 * 24 * 3600),
    ]
}

#[test]
fn a_group_whose_members_had_ended_before_a_restart_ends_all_the_same() {
    let least = confirm(1, 0).sweeps;
    let settings = AlertSettings {
        group_for: seconds(1),
        group_min: least,
        group_every: Duration::ZERO,
        resolve_after: Duration::ZERO,
        flap_for: seconds(100),
        flap_min: least,
        remind_every: None,
        ..AlertSettings::default()
    };
    let call = |asked, found| Step::Call { asked, found, severity: Severity::Warning };
    let mut world = World::new();
    let story = [Step::Settings(settings), call(1, 0), call(4, 88), Step::Pass(1), call(4, 32), Step::Restart];
    story.iter().chain(&calm()).for_each(|step| world.take(step));
    assert!(world.believed.is_empty(), "still believed: {:?}", world.believed);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Whatever happens, restarts included: what began ends, once each, and nothing stays due or is left.
    #[test]
    fn what_is_told_to_begin_is_told_to_end_and_nothing_that_is_quiet_reminds(story in vec(any_step(), 1..50)) {
        let mut world = World::new();
        for step in &story {
            world.take(step);
            let next = world.alerts.bench.policy.poll_timeout();
            prop_assert!(next.is_none_or(|next| next > world.alerts.bench.now), "something stays due after {step:?}");
        }
        calm().iter().for_each(|step| world.take(step));
        prop_assert!(world.believed.is_empty(), "still believed: {:?}", world.believed);
        prop_assert_eq!(world.alerts.bench.policy.alerts().count(), 0);
        prop_assert_eq!(world.alerts.bench.policy.silences().count(), 0);
    }

    #[test]
    fn the_same_inputs_give_the_same_alerts(story in vec(any_step(), 1..40)) {
        let run = || {
            let mut world = World::new();
            story.iter().for_each(|step| world.take(step));
            world.log
        };
        prop_assert_eq!(run(), run());
    }
}
