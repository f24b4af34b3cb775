//! The rules `threshold` and `anomaly`.

use std::sync::Arc;

use latido_plugin_host::{
    Attribute, Kind, LoadError, MemoryState, PluginSpec, Progress, Rule, Severity, Subject, Usage, Verdict,
};
use serde_json::{Value, json};

use crate::support::{World, builtin, subject};

const NOW: u64 = 1_700_000_000_000;
const MINUTE: u64 = 60_000;

fn spec(name: &str, settings: Value, memory: &Arc<MemoryState>) -> PluginSpec {
    let mut spec = PluginSpec::new(name, Kind::Rule, builtin(name));
    spec.settings = settings;
    spec.grants.state = Some(Arc::clone(memory) as Arc<_>);
    spec
}

/// The keys of the findings at a moment.
async fn found(rule: &mut Rule, now: u64, subjects: &[Subject]) -> Vec<String> {
    let findings = rule.evaluate(now, subjects).await.unwrap();
    findings.iter().map(|finding| format!("{} {}", finding.subject, finding.key)).collect()
}

fn counting(name: &str, errors: u64) -> Subject {
    Subject { errors, ..subject(name, Verdict::Alive) }
}

#[tokio::test]
async fn threshold_finds_what_is_beyond_a_bound_for_its_time() {
    let world = World::new();
    let settings = json!({ "bounds": [{ "fact": "errors", "above": 10, "for_s": 120, "severity": "critical" }] });
    let memory = Arc::default();
    let mut rule = world.host.load_rule(spec("threshold", settings, &memory)).await.unwrap();
    assert_eq!(found(&mut rule, NOW, &[counting("a", 11), counting("b", 10)]).await, [""; 0]);
    assert_eq!(found(&mut rule, NOW + MINUTE, &[counting("a", 12)]).await, [""; 0]);
    let findings = rule.evaluate(NOW + 2 * MINUTE, &[counting("a", 13), counting("b", 10)]).await.unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].key.as_str(), findings[0].severity), ("errors-above", Severity::Critical));
    assert_eq!(findings[0].summary, "errors of a is 13, above 10, for 120 s");
    // Below for one look, and the time begins anew.
    assert_eq!(found(&mut rule, NOW + 3 * MINUTE, &[counting("a", 3)]).await, [""; 0]);
    assert_eq!(found(&mut rule, NOW + 4 * MINUTE, &[counting("a", 11)]).await, [""; 0]);
    assert_eq!(found(&mut rule, NOW + 6 * MINUTE, &[counting("a", 11)]).await, ["a errors-above"]);
}

#[tokio::test]
async fn threshold_remembers_over_a_restart_since_when() {
    let world = World::new();
    let memory = Arc::default();
    let spec = spec("threshold", json!({ "bounds": [{ "fact": "errors", "above": 1, "for_s": 60 }] }), &memory);
    let mut rule = world.host.load_rule(spec.clone()).await.unwrap();
    assert_eq!(found(&mut rule, NOW, &[counting("a", 2)]).await, [""; 0]);
    let mut rule = world.host.load_rule(spec.clone()).await.unwrap();
    assert_eq!(found(&mut rule, NOW + MINUTE, &[counting("a", 2)]).await, ["a errors-above"]);
    // A clock that was set back has not waited.
    let mut rule = world.host.load_rule(spec).await.unwrap();
    assert_eq!(found(&mut rule, NOW - MINUTE, &[counting("a", 2)]).await, [""; 0]);
}

#[tokio::test]
async fn threshold_forgets_who_is_gone_and_finds_who_comes_after() {
    let world = World::new();
    let settings = json!({ "bounds": [{ "fact": "errors", "above": 1, "for_s": 60 }] });
    let mut rule = world.host.load_rule(spec("threshold", settings, &Arc::default())).await.unwrap();
    for generation in 0..4 {
        let now = NOW + generation * 60 * MINUTE;
        let subjects: Vec<Subject> = (0..900).map(|number| counting(&format!("w{generation}-{number}"), 2)).collect();
        assert_eq!(found(&mut rule, now, &subjects).await.len(), 0);
        assert_eq!(found(&mut rule, now + MINUTE, &subjects).await.len(), 900, "generation {generation}");
        for minute in 2..12 {
            assert_eq!(found(&mut rule, now + minute * MINUTE, &[counting("other", 0)]).await.len(), 0);
        }
    }
}

#[tokio::test]
async fn threshold_forgets_nobody_because_the_machine_slept() {
    let world = World::new();
    let settings = json!({ "bounds": [{ "fact": "errors", "above": 1, "for_s": 60 }] });
    let mut rule = world.host.load_rule(spec("threshold", settings, &Arc::default())).await.unwrap();
    assert_eq!(found(&mut rule, NOW, &[counting("a", 2)]).await, [""; 0]);
    for later in [MINUTE, 600 * MINUTE] {
        assert_eq!(found(&mut rule, NOW + later, &[counting("a", 2)]).await, ["a errors-above"]);
    }
}

#[tokio::test]
async fn threshold_knows_every_number_of_a_subject_and_of_its_attributes() {
    let world = World::new();
    let whole = Subject {
        silence: Some(5_000),
        last_beat: Some(NOW - 6_000),
        since: NOW - 7_000,
        progress: Some(Progress { fraction: Some(0.5), done: Some(30), total: Some(40), step: None, checkpoint: None }),
        progress_changed: Some(NOW - 8_000),
        usage: Some(Usage { turns: Some(3), tokens: Some(4), cost_usd: Some(1.5) }),
        attempt: 2,
        errors: 9,
        attributes: vec![
            Attribute { key: "pickups".into(), value: "11".into() },
            Attribute { key: "word".into(), value: "text".into() },
        ],
        ..subject("job-1", Verdict::Alive)
    };
    for (fact, number) in [
        ("silence-s", 5.0),
        ("last-beat-s", 6.0),
        ("verdict-s", 7.0),
        ("progress.fraction", 0.5),
        ("progress.done", 30.0),
        ("progress.total", 40.0),
        ("progress.left", 10.0),
        ("progress.unchanged-s", 8.0),
        ("usage.turns", 3.0),
        ("usage.tokens", 4.0),
        ("usage.cost-usd", 1.5),
        ("attempt", 2.0),
        ("errors", 9.0),
        ("pickups", 11.0),
    ] {
        let bounds = json!({ "bounds": [
            { "fact": fact, "above": number - 0.1 }, { "fact": fact, "below": number + 0.1 },
            { "fact": fact, "above": number, "key": "equal" }, { "fact": fact, "below": number, "key": "equal too" },
            { "fact": fact, "above": -1, "subjects": "other-*", "key": "of others" },
            { "fact": "word", "above": 0, "key": "no number" }, { "fact": "absent", "below": 1, "key": "nothing" },
        ] });
        let mut rule = world.host.load_rule(spec("threshold", bounds, &Arc::default())).await.unwrap();
        let expected = [format!("job-1 {fact}-above"), format!("job-1 {fact}-below")];
        assert_eq!(found(&mut rule, NOW, std::slice::from_ref(&whole)).await, expected, "{fact}");
        let ended = Subject { verdict: Verdict::Ended, ..whole.clone() };
        assert_eq!(found(&mut rule, NOW, &[ended]).await, [""; 0], "{fact}");
    }
}

#[tokio::test]
async fn threshold_refuses_settings_with_a_mistake() {
    let world = World::new();
    for (bounds, part) in [
        (json!([]), "`bounds` is missing"),
        (json!([{ "above": 1 }]), "`bounds.0`: `fact` is missing; known: silence-s"),
        (json!([{ "fact": "errors" }]), "either `above` or `below`"),
        (json!([{ "fact": "errors", "above": 1, "below": 2 }]), "either `above` or `below`"),
        (json!([{ "fact": "errors", "above": "1" }]), "`above` is \"1\"; it is a number"),
        (json!([{ "fact": "errors", "above": 1, "for_s": -1 }]), "`for_s` is -1"),
        (json!([{ "fact": "errors", "above": 1, "severity": "bad" }]), "known: info, warning, critical"),
        (json!([{ "fact": "errors", "above": 1 }, { "fact": "errors", "above": 2 }]), "give it a `key`"),
        (json!([{ "fact": "errors", "abvoe": 1 }]), "unknown setting `abvoe`"),
    ] {
        let loaded = world.host.load_rule(spec("threshold", json!({ "bounds": bounds }), &Arc::default())).await;
        let Err(error @ LoadError::Start { .. }) = loaded.map(drop) else { panic!("{bounds} was taken") };
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(part), "{bounds}: {cause}");
    }
}

fn silent(name: &str, seconds: u64) -> Subject {
    Subject { silence: Some(seconds * 1000), ..subject(name, Verdict::Alive) }
}

/// Thirty looks at a subject that is silent for ten seconds at most.
async fn taught(rule: &mut Rule, name: &str) {
    for look in 0..30 {
        assert_eq!(found(rule, NOW + look * MINUTE, &[silent(name, look % 11)]).await, [""; 0]);
    }
}

#[tokio::test]
async fn anomaly_warns_of_unusual_silence_before_the_ttl_and_says_what_it_compares() {
    let world = World::new();
    let mut rule = world.host.load_rule(spec("anomaly", json!({}), &Arc::default())).await.unwrap();
    taught(&mut rule, "a").await;
    assert_eq!(found(&mut rule, NOW, &[silent("a", 25)]).await, [""; 0], "less than three times as long");
    let mut rule = world.host.load_rule(spec("anomaly", json!({}), &Arc::default())).await.unwrap();
    taught(&mut rule, "a").await;
    let late = Subject { verdict: Verdict::Late, ..silent("a", 65) };
    let findings = rule.evaluate(NOW, &[late]).await.unwrap();
    assert_eq!((findings[0].key.as_str(), findings[0].severity), ("unusual-silence", Severity::Warning));
    let summary = &findings[0].summary;
    assert!(summary.starts_with("a is silent for 65 s, 6.") && summary.contains("times as long as usual"), "{summary}");
    assert!(summary.contains("in 30 looks it was silent for 9."), "{summary}");
    assert_eq!(found(&mut rule, NOW, &[silent("a", 2)]).await, [""; 0], "it ends with the next beat");
}

#[tokio::test]
async fn anomaly_leaves_alone_whom_it_does_not_know_and_who_is_not_expected_to_beat() {
    let world = World::new();
    let mut rule = world.host.load_rule(spec("anomaly", json!({}), &Arc::default())).await.unwrap();
    for look in 0..19 {
        assert_eq!(found(&mut rule, NOW, &[silent("new", 1 + look * 20)]).await, [""; 0]);
    }
    taught(&mut rule, "a").await;
    for verdict in [Verdict::Waiting, Verdict::Stale, Verdict::Ended, Verdict::Unknown, Verdict::Dead] {
        assert_eq!(found(&mut rule, NOW, &[Subject { verdict, ..silent("a", 600) }]).await, [""; 0]);
    }
    let attributes = vec![Attribute { key: "phase".into(), value: "paused".into() }];
    assert_eq!(found(&mut rule, NOW, &[Subject { attributes, ..silent("a", 600) }]).await, [""; 0]);
    // Short silence is never unusual, however often it beats.
    for _ in 0..30 {
        found(&mut rule, NOW, &[silent("quick", 0), silent("other", 0)]).await;
    }
    assert_eq!(found(&mut rule, NOW, &[silent("quick", 4)]).await, [""; 0]);
    assert_eq!(found(&mut rule, NOW, &[silent("other", 5)]).await, ["other unusual-silence"]);
}

#[tokio::test]
async fn anomaly_learns_a_new_habit_and_keeps_what_it_knows() {
    let world = World::new();
    let memory = Arc::default();
    let mut rule = world.host.load_rule(spec("anomaly", json!({}), &memory)).await.unwrap();
    taught(&mut rule, "a").await;
    let mut warned = 0;
    while !found(&mut rule, NOW, &[silent("a", 60)]).await.is_empty() {
        warned += 1;
    }
    assert!((2..20).contains(&warned), "{warned} looks until a minute of silence is usual");
    let many: Vec<Subject> = (0..600).map(|number| silent(&format!("w{number}"), 10)).collect();
    for _ in 0..25 {
        found(&mut rule, NOW, &many).await;
    }
    let mut again = world.host.load_rule(spec("anomaly", json!({}), &memory)).await.unwrap();
    assert_eq!(found(&mut again, NOW, &[silent("w599", 100)]).await, ["w599 unusual-silence"]);
}
