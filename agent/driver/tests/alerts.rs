//! Alerts over steps and restarts: what the journal tells, what the store keeps, what people may ask.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use latido_driver::{AlertRefused, Driver, Fact, Finding, ProcessDefinition, Reading, WatchFact};
use latido_policy::AlertSettings;
use latido_protocol::alerts::{AlertRequest, AlertsDocument, SilenceScope, Standing};
use latido_protocol::journal::Severity;
use latido_protocol::{Span, WallTime};
use latido_store::{MemoryStore, Store};

const HOUR: Duration = Duration::from_secs(3600);
const FAULT: &str = "agent/plugin-fault/history";

fn backup() -> Fact {
    let (name, definition) = ("backup".parse().unwrap(), "pid 1".to_owned());
    let process = ProcessDefinition { name, definition, start_within: HOUR };
    Fact::Watched(Box::new(WatchFact::ProcessDefined(process)))
}

/// The driver with clocks that the test moves.
struct World {
    driver: Driver<MemoryStore>,
    monotonic: Duration,
}

impl World {
    fn new(store: MemoryStore) -> Self {
        Self { driver: Driver::new(store, HOUR).unwrap(), monotonic: HOUR }
    }

    fn restart(self) -> Self {
        Self { monotonic: self.monotonic, ..Self::new(self.driver.into_store()) }
    }

    fn wall(&self) -> WallTime {
        WallTime::from_millis(1_700_000_000_000 + u64::try_from(self.monotonic.as_millis()).unwrap())
    }

    fn step(&mut self, facts: Vec<Fact>) -> Duration {
        let reading = Reading { monotonic: self.monotonic, boottime: self.monotonic, wall: self.wall() };
        let output = self.driver.step(facts, reading);
        assert!(output.store_error.is_none(), "{:?}", output.store_error);
        output.wake_in
    }

    fn pass(&mut self, length: Duration) {
        let end = self.monotonic + length;
        let mut wake_in = self.step(vec![]);
        while self.monotonic < end {
            self.monotonic = (self.monotonic + wake_in.max(Duration::from_millis(1))).min(end);
            wake_in = self.step(vec![]);
        }
    }

    /// The agent looks at its plugin `history`, and finds a fault or none.
    fn look(&mut self, is_faulty: bool) {
        let finding = Finding {
            key: "plugin-fault".into(),
            subject: "history".into(),
            severity: Severity::Critical,
            summary: "plugin history is faulty".into(),
        };
        let findings = is_faulty.then_some(finding).into_iter().collect();
        self.step(vec![Fact::RuleAnswered {
            rule: "agent".into(),
            subjects: vec!["history".parse().unwrap()],
            findings,
        }]);
    }

    fn ask(&mut self, request: AlertRequest) -> Result<AlertsDocument, AlertRefused> {
        let wall = self.wall();
        self.driver.handle_alert_request(request, wall)
    }

    fn silence(&mut self, scope: SilenceScope, length: Duration) -> Result<AlertsDocument, AlertRefused> {
        let (by, reason) = ("ana".to_owned(), "maintenance".to_owned());
        self.ask(AlertRequest::Silence { scope, length: Span(length), until_resolved: false, by, reason })
    }

    /// What the journal tells of alerts: `began`, `ended` …
    fn told(&mut self) -> Vec<String> {
        let rows = self.driver.store().entries_after(0, &["alert".to_owned()], 1000).unwrap();
        let telling = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["telling"].clone();
        rows.iter().map(|row| telling(&row.body).as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn an_alert_goes_on_over_restarts_and_is_told_once() {
    let mut world = World::new(MemoryStore::default());
    world.look(true);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.told(), ["began"]);
    assert_eq!(world.driver.store().alerts().unwrap()[0].fingerprint, FAULT);
    for _ in 0..3 {
        world = world.restart();
        world.look(true);
        world.pass(Duration::from_secs(60));
        assert_eq!(world.told(), ["began"]);
    }
    world = world.restart();
    world.look(false);
    world.pass(Duration::from_secs(30));
    assert_eq!(world.told(), ["began", "ended"]);
    assert_eq!(world.driver.store().alerts().unwrap(), []);
}

#[test]
fn a_restored_alert_of_the_agents_own_ends_when_its_cause_is_gone() {
    let mut world = World::new(MemoryStore::default());
    world.look(true);
    world.pass(Duration::from_secs(2));
    world = world.restart();
    world.pass(Duration::from_secs(59));
    assert_eq!(world.told(), ["began"], "it may still be found");
    world.pass(Duration::from_secs(60));
    assert_eq!(world.told(), ["began", "ended"]);
    assert_eq!(world.driver.store().alerts().unwrap(), []);
}

#[test]
fn an_alert_of_a_rule_that_the_config_has_no_longer_ends_at_the_next_start() {
    let rule = || vec!["disk".to_owned()];
    let mut world = World::new(MemoryStore::default());
    world.driver.set_alerts(AlertSettings::default(), &rule(), &[]);
    world.step(vec![backup()]);
    let finding = Finding {
        key: "full".into(),
        subject: "backup".into(),
        severity: Severity::Warning,
        summary: "the disk is full".into(),
    };
    let subjects = vec!["backup".parse().unwrap()];
    for _ in 0..3 {
        let (subjects, findings) = (subjects.clone(), vec![finding.clone()]);
        world.step(vec![Fact::RuleAnswered { rule: "disk".into(), subjects, findings }]);
        world.pass(HOUR / 4);
    }
    assert_eq!(world.told(), ["began"]);
    for (rules, told) in [(rule(), vec!["began"]), (vec![], vec!["began", "ended"])] {
        world = world.restart();
        world.driver.set_alerts(AlertSettings::default(), &rules, &[]);
        world.step(vec![backup()]);
        world.pass(HOUR / 4);
        assert_eq!(world.told(), told);
    }
}

#[test]
fn a_reminder_comes_although_the_agent_is_restarted_more_often_than_it_reminds() {
    let mut world = World::new(MemoryStore::default());
    world.look(true);
    world.pass(Duration::from_secs(2));
    for _ in 0..3 {
        world = world.restart();
        world.look(true);
        world.pass(HOUR + HOUR / 2);
    }
    assert_eq!(world.told(), ["began", "reminder"]);
}

#[test]
fn a_silence_ends_by_the_calendar_also_when_the_agent_could_not_hear() {
    let mut world = World::new(MemoryStore::default());
    world.look(true);
    world.pass(Duration::from_secs(1));
    let document = world.silence(SilenceScope::Rule("agent".into()), HOUR).unwrap();
    assert_eq!((document.silences[0].number, document.silences[0].by.as_str()), (1, "ana"));
    world.pass(Duration::from_secs(60));
    assert_eq!(world.told(), [""; 0]);
    let mut world = world.restart();
    world.look(true);
    world.pass(Duration::from_secs(60));
    let document = world.ask(AlertRequest::List).unwrap();
    assert_eq!(document.alerts[0].state, Standing::Muted);
    assert_eq!(document.alerts[0].muted_by.as_deref(), Some("silence 1"));
    // Asleep for two hours, of which the time on which silence is measured knows nothing.
    world.monotonic += 2 * HOUR;
    world.pass(Duration::from_secs(6));
    assert_eq!(world.told(), ["began"]);
    assert_eq!(world.driver.store().silences().unwrap(), []);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut world = World::new(MemoryStore::default());
    world.look(true);
    let known = |fingerprint: &str| AlertRequest::Acknowledge { fingerprint: fingerprint.into(), by: "ana".into() };
    assert!(matches!(world.ask(known("agent/other/history")), Err(AlertRefused::Unknown(_))));
    assert!(matches!(world.ask(known(FAULT)), Err(AlertRefused::Untold)), "it waits for others of its kind");
    assert!(matches!(world.ask(AlertRequest::Unsilence { number: 1 }), Err(AlertRefused::Unknown(_))));
    let scopes = [
        SilenceScope::Rule("other".into()),
        SilenceScope::Subject("nobody".parse().unwrap()),
        SilenceScope::Alert("agent/other/history".into()),
    ];
    for scope in scopes {
        assert!(matches!(world.silence(scope, HOUR), Err(AlertRefused::Unknown(_))));
    }
    let nothing = world.silence(SilenceScope::Rule("agent".into()), Duration::ZERO);
    assert!(matches!(nothing, Err(AlertRefused::NoLength)));
    assert_eq!(world.ask(AlertRequest::List).unwrap().silences, []);
}

/// The rule `liveness` cannot answer, and nobody has given words for that.
#[test]
fn what_the_policy_finds_by_itself_is_put_into_words() {
    let mut world = World::new(MemoryStore::default());
    world.step(vec![Fact::RuleFailed { rule: "liveness".into(), detail: "it trapped".into() }]);
    world.pass(Duration::from_secs(2));
    let document = world.ask(AlertRequest::List).unwrap();
    assert_eq!(document.alerts[0].fingerprint, "agent/rule-broken/liveness");
    assert_eq!(document.alerts[0].summary, "rule liveness cannot answer: it trapped");
    world.step(vec![Fact::RuleAnswered { rule: "liveness".into(), subjects: vec![], findings: vec![] }]);
    world.pass(Duration::from_secs(30));
    assert_eq!(world.told(), ["began", "ended"]);
}
