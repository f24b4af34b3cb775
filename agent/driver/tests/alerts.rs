//! Alerts over steps and restarts: what the journal tells, what the store keeps, what people may ask.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use latido_driver::{AlertRefused, Driver, Fact, Finding, Output, ProcessDefinition, Reading, WatchFact};
use latido_policy::AlertSettings;
use latido_protocol::alerts::{AlertRequest, AlertsDocument, SilenceScope, Standing};
use latido_protocol::journal::Severity;
use latido_protocol::registry::{Question, Registration, WorkerBeat};
use latido_protocol::status::{SubjectStatus, Verdict};
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

    fn question(&mut self, question: Question) -> Output {
        self.monotonic += Duration::from_millis(1);
        let reading = Reading { monotonic: self.monotonic, boottime: self.monotonic, wall: self.wall() };
        self.driver.step(vec![Fact::Asked { ticket: 1, question: Box::new(question) }], reading)
    }

    fn beat(&mut self, worker: &str) {
        let (epoch, sequence, state, active_job, errors) = (None, None, None, None, 0);
        let worker = worker.parse().unwrap();
        self.question(Question::Beat(WorkerBeat { worker, epoch, sequence, state, active_job, errors }));
    }

    fn register(&mut self, worker: &str) -> Output {
        self.question(Question::Register(Registration {
            worker: worker.parse().unwrap(),
            group: "executor".parse().unwrap(),
            instance: None,
            interval_s: None,
            ttl_s: None,
            missed: None,
            start_within_s: None,
            host: Some("web-3".into()),
            pid: None,
        }))
    }

    /// A rule is asked about everybody, and finds all stale that are.
    fn rule(&mut self) {
        let subjects = self.driver.subjects(&[]);
        let is_stale = |subject: &&SubjectStatus| subject.verdict == Verdict::Stale;
        let finding = |subject: &SubjectStatus| Finding {
            key: "stale".into(),
            subject: subject.name.to_string(),
            severity: Severity::Warning,
            summary: format!("{} is stale", subject.name),
        };
        let findings = subjects.iter().filter(is_stale).map(finding).collect();
        let subjects = subjects.into_iter().map(|subject| subject.name).collect();
        self.step(vec![Fact::RuleAnswered { rule: "liveness".into(), subjects, findings }]);
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

/// A worker that beat once and fell silent, as a rule found it, and the alert as people see it.
fn silent_worker() -> World {
    let mut world = World::new(MemoryStore::default());
    world.register("web-3");
    world.beat("web-3");
    world.rule();
    world.pass(Duration::from_secs(185));
    world.rule();
    world.pass(Duration::from_secs(2));
    let document = world.ask(AlertRequest::List).unwrap();
    assert_eq!((document.alerts[0].fingerprint.as_str(), world.told()), (WORKER, vec!["began".to_owned()]));
    world
}

const WORKER: &str = "liveness/stale/web-3";

#[test]
fn a_silent_worker_is_told_of_once_and_ends_when_it_comes_back() {
    let mut world = silent_worker();
    for _ in 0..2 {
        world = world.restart();
        world.rule();
        world.pass(Duration::from_secs(30));
        assert_eq!(world.told(), ["began"]);
    }
    world.register("web-3");
    world.beat("web-3");
    world.rule();
    world.pass(Duration::from_secs(30));
    assert_eq!(world.told(), ["began", "ended"]);
}

#[test]
fn what_fires_for_a_worker_ends_when_its_row_goes() {
    let mut world = silent_worker();
    world.question(Question::OpenGroup { group: "executor".parse().unwrap() });
    world.step(vec![Fact::GroupLockSeen { ticket: 1, group: "executor".parse().unwrap(), is_held: true }]);
    assert_eq!(world.told(), ["began", "ended"]);
    assert_eq!(world.driver.store().alerts().unwrap(), []);
}

#[test]
fn a_worker_can_be_silenced_by_its_name() {
    let mut world = World::new(MemoryStore::default());
    world.register("web-3");
    world.beat("web-3");
    world.silence(SilenceScope::Subject("web-3".parse().unwrap()), HOUR).unwrap();
    let mut world = world.restart();
    world.pass(Duration::from_secs(185));
    world.rule();
    world.pass(Duration::from_secs(30));
    assert_eq!(world.told(), [""; 0]);
    assert_eq!(world.ask(AlertRequest::List).unwrap().alerts[0].muted_by.as_deref(), Some("silence 1"));
}

#[test]
fn rules_are_asked_at_once_about_a_worker_whose_verdict_changed() {
    let mut world = World::new(MemoryStore::default());
    world.register("web-3");
    world.register("web-4");
    let (epoch, sequence, state, active_job, errors) = (None, None, None, None, 0);
    let worker = "web-4".parse().unwrap();
    let output = world.question(Question::Beat(WorkerBeat { worker, epoch, sequence, state, active_job, errors }));
    assert_eq!(output.changed, ["web-4".parse().unwrap()]);
    let named = world.driver.subjects(&output.changed);
    assert_eq!(named.iter().map(|subject| subject.name.as_str()).collect::<Vec<_>>(), ["web-4"]);
}

#[test]
fn while_liveness_cannot_run_the_fixed_minimum_finds_silent_workers() {
    let mut world = World::new(MemoryStore::default());
    let liveness_after = Some(Duration::from_secs(120));
    world.driver.set_alerts(AlertSettings { liveness_after, ..Default::default() }, &[], &[]);
    world.register("web-3");
    world.beat("web-3");
    world.pass(Duration::from_secs(200));
    let document = world.ask(AlertRequest::List).unwrap();
    let found: Vec<&str> = document.alerts.iter().map(|alert| alert.fingerprint.as_str()).collect();
    assert_eq!(found, ["agent/rule-broken/liveness", WORKER]);
    assert!(document.alerts[1].summary.starts_with("web-3 is stale: "), "{}", document.alerts[1].summary);
}
