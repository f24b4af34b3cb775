//! Who looks on sees what a plugin asks, and may answer, delay or end it; fuel and memory are counted.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use latido_plugin_host::{
    Asked, FaultKind, Field, Fixed, Host, HostSettings, HttpGrant, Kind, PluginError, PluginSpec, Probe, RefusalKind,
    Ruling, Then, Verdict,
};
use serde_json::{Value, json};

use crate::support::{World, beat, beats, builtin, fault, misbehaving, none, subject, write};

/// Writes down what it sees, and rules as it was told.
#[derive(Debug)]
struct Onlooker {
    seen: Mutex<Vec<String>>,
    answers: Mutex<Vec<Value>>,
    /// the function that it rules on, and how
    ruling: Mutex<Option<(&'static str, Ruling)>>,
}

impl Onlooker {
    fn new(function: &'static str, ruling: Option<Ruling>) -> Arc<Self> {
        let ruling = ruling.map(|ruling| (function, ruling));
        Arc::new(Self { seen: Mutex::default(), answers: Mutex::default(), ruling: Mutex::new(ruling) })
    }

    fn rule(&self, ruling: Option<(&'static str, Ruling)>) {
        *self.ruling.lock().unwrap() = ruling;
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Probe for Onlooker {
    fn asked(&self, asked: &Asked) -> Ruling {
        self.seen.lock().unwrap().push(format!("{}.{} {}", asked.interface, asked.function, asked.arguments));
        match &*self.ruling.lock().unwrap() {
            Some((function, ruling)) if *function == asked.function => ruling.clone(),
            Some(_) | None => Then::CarryOut.at_once(),
        }
    }

    fn answered(&self, _: &Asked, answer: &Value) {
        self.answers.lock().unwrap().push(answer.clone());
    }

    fn logged(&self, level: &'static str, message: &str) {
        self.seen.lock().unwrap().push(format!("{level}: {message}"));
    }
}

fn jsonl(world: &World, onlooker: &Arc<Onlooker>) -> PluginSpec {
    let mut spec = PluginSpec::new("lines", Kind::Sink, builtin("jsonl"));
    spec.limits.cpu = Duration::from_secs(60);
    spec.grants.files.insert("main".to_owned(), world.path("lines.jsonl").into());
    spec.probe = Some(Arc::clone(onlooker) as Arc<dyn Probe>);
    spec
}

fn sqlite(world: &World, onlooker: &Arc<Onlooker>) -> PluginSpec {
    let mut spec = PluginSpec::new("history", Kind::Sink, builtin("sqlite"));
    spec.limits.cpu = Duration::from_secs(60);
    spec.grants.sql.insert("main".to_owned(), world.path("history.db").into());
    spec.probe = Some(Arc::clone(onlooker) as Arc<dyn Probe>);
    spec
}

#[tokio::test]
async fn who_looks_on_sees_each_call_and_its_answer() {
    let world = World::new();
    let onlooker = Onlooker::new("", None);
    let mut sink = world.host.load_sink(sqlite(&world, &onlooker)).await.unwrap();
    let configured = onlooker.seen();
    let first = configured.first().unwrap();
    assert!(first.starts_with(r#"sql.query {"database":"main","#) && first.contains("PRAGMA user_version"), "{first}");
    onlooker.answers.lock().unwrap().clear();
    assert_eq!(write(&mut sink, &beat(7)).await, Ok(7));
    let seen = onlooker.seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let call = &seen[0];
    assert!(call.starts_with("sql.execute-all ") && call.contains(r#""agent-1",7,"#), "{call}");
    assert_eq!(*onlooker.answers.lock().unwrap(), [json!({ "ok": 1 })]);

    let onlooker = Onlooker::new("", None);
    let mut spec = misbehaving("write", "chatter");
    spec.probe = Some(Arc::clone(&onlooker) as Arc<dyn Probe>);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(write(&mut sink, &beat(1)).await, Ok(1));
    assert_eq!(onlooker.seen().first().map(String::as_str), Some("info: line 0"));
}

#[tokio::test]
async fn who_looks_on_answers_in_a_capabilitys_place() {
    let world = World::new();
    let refuse = |refusal| Then::Refuse(refusal, "as it was told".to_owned()).at_once();
    let onlooker = Onlooker::new("append", Some(refuse(RefusalKind::Full)));
    let mut sink = world.host.load_sink(jsonl(&world, &onlooker)).await.unwrap();
    let error = sink.write(&beat(1)).await.unwrap_err();
    assert_eq!(error.answer(), Some(&PluginError::RetryAfter(10_000)), "the disk is full");
    onlooker.rule(Some(("append", refuse(RefusalKind::Denied))));
    let error = sink.write(&beat(1)).await.unwrap_err();
    assert!(matches!(error.answer(), Some(PluginError::Denied(what)) if what == "as it was told"), "{error}");
    assert!(!world.path("lines.jsonl").exists(), "nothing was carried out");
    assert_eq!(
        *onlooker.answers.lock().unwrap(),
        [json!({ "error": "full" }), json!({ "error": { "denied": "as it was told" } })]
    );

    let answer = json!({ "ok": { "status": 503, "headers": [["Retry-After", "3"]], "body": "" } });
    let onlooker = Onlooker::new("send", Some(Then::Answer(answer).at_once()));
    let mut spec = PluginSpec::new("hook", Kind::Sink, builtin("webhook"));
    spec.settings = json!({ "url": "https://example.org/{{secret:path}}" });
    spec.grants.http = Some(HttpGrant::to(["https://example.org".to_owned()]));
    spec.probe = Some(Arc::clone(&onlooker) as Arc<dyn Probe>);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let mut entries = none();
    entries.add(1, 1, "alert").text(Field::Summary, "night is stale");
    let error = sink.write(&entries).await.unwrap_err();
    assert_eq!(error.answer(), Some(&PluginError::RetryAfter(3000)));
    let seen = onlooker.seen();
    assert!(seen[0].contains("https://example.org/{{secret:path}}") && seen[0].contains("night is stale"), "{seen:?}");
    onlooker.rule(Some(("send", Then::Answer(json!("nonsense")).at_once())));
    let error = sink.write(&entries).await.unwrap_err();
    assert!(error.answer().is_some(), "an answer that cannot be read is a failed request: {error}");
}

#[tokio::test]
async fn who_looks_on_ends_the_guest_in_the_middle_of_a_call() {
    let world = World::new();
    let trap = FaultKind::Trap("as it was told".to_owned());
    let end = |carried_out| Then::End { kind: trap.clone(), carried_out }.at_once();
    let onlooker = Onlooker::new("append", Some(end(false)));
    let mut sink = world.host.load_sink(jsonl(&world, &onlooker)).await.unwrap();
    let lines = || fs::read_to_string(world.path("lines.jsonl")).unwrap_or_default().lines().count();
    assert_eq!(fault(sink.write(&beat(1)).await), trap);
    assert_eq!((lines(), sink.is_warm()), (0, false));
    onlooker.rule(Some(("append", end(true))));
    assert_eq!(fault(sink.write(&beat(1)).await), trap);
    assert_eq!(lines(), 1, "it was carried out, and the plugin did not hear of it");
    onlooker.rule(None);
    assert_eq!(write(&mut sink, &beat(1)).await, Ok(1));
    assert_eq!((lines(), sink.costs().instances), (2, 3));

    let mut spec = jsonl(&world, &onlooker);
    spec.limits.wall = Duration::from_millis(200);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    onlooker.rule(Some(("append", Ruling { after: Duration::from_secs(60), then: Then::CarryOut })));
    assert_eq!(fault(sink.write(&beat(2)).await), FaultKind::WallDeadline(Duration::from_millis(200)));
}

#[tokio::test]
async fn the_same_work_takes_the_same_fuel_on_every_host() {
    let world = World::new();
    let mut used = Vec::new();
    for name in ["one", "two"] {
        let cache = world.path(name);
        let host = Host::new(HostSettings { cache, compiler: None, metered: true }).unwrap();
        let mut spec = PluginSpec::new("rule", Kind::Rule, builtin("liveness"));
        spec.limits.cpu = Duration::from_secs(60);
        spec.fixed = Some(Fixed { now_ms: 1_000, seed: 1 });
        let mut rule = host.load_rule(spec).await.unwrap();
        let before = rule.costs().fuel;
        rule.evaluate(1_000, &[subject("a", Verdict::Stale)]).await.unwrap();
        let once = rule.costs().fuel - before;
        rule.restart().await.unwrap();
        assert_eq!(rule.costs().instances, 2);
        used.push((before, once, rule.costs().fuel, rule.costs().memory_peak));
    }
    assert_eq!(used[0], used[1]);
    let (started, once, _, peak) = used[0];
    assert!(started > 0 && once > 100 && peak >= 64 << 10, "{used:?}");
    let mut rule = world.host.load_rule(PluginSpec::new("rule", Kind::Rule, builtin("liveness"))).await.unwrap();
    rule.evaluate(1_000, &[subject("a", Verdict::Stale)]).await.unwrap();
    assert_eq!(rule.costs().fuel, 0, "an engine that does not count tells nothing");
    assert!(rule.costs().memory_peak >= 64 << 10);
}

#[tokio::test]
async fn fuel_of_a_call_that_fails_is_counted_too() {
    let world = World::new();
    let host = Host::new(HostSettings { cache: world.path("metered"), compiler: None, metered: true }).unwrap();
    let mut sink = host.load_sink(misbehaving("write", "trap")).await.unwrap();
    let before = sink.costs().fuel;
    let ended = fault(sink.write(&beats(1..=3)).await);
    assert!(matches!(ended, FaultKind::Trap(_)), "{ended:?}");
    assert!(sink.costs().fuel > before);
}
