//! Plugins that were built against 0.1 of the package: they are told the same facts, their answers count, and grants and
//! limits hold for them as for the others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use latido_plugin_host::{
    Acknowledgement, Attribute, CallError, Command, Decision, Entries, EnvironmentValue, EnvironmentVariable,
    FaultKind, Field, Finding, Kind, LoadError, Loaded as _, MemoryState, Observation, Outcome, PastAttempt, Pause,
    PluginError, PluginSpec, Progress, QuietKind, Severity, Situation, Usage, Verdict, WorkspaceGrant,
};
use rusqlite::Connection;
use serde_json::json;

use crate::support::{
    World, about_attempt, add_beat, add_transition, at, beat, beats, builtin, fault, guest, none, output, situation,
    subject, told,
};

fn old_sink(world: &World, what: &str) -> PluginSpec {
    let mut spec = PluginSpec::new("old", Kind::Sink, guest("old-sink"));
    spec.settings = json!({ "what": what });
    spec.grants.sql.insert("main".into(), world.path("old.db").into());
    spec.grants.files.insert("main".into(), world.path("old.txt").into());
    spec
}

fn old_strategy(decision: &str) -> PluginSpec {
    let mut spec = PluginSpec::new("old", Kind::Strategy, guest("old-strategy"));
    spec.settings = json!({ "decision": decision });
    spec.grants.workspace = Some(WorkspaceGrant::default());
    spec
}

/// One entry of each kind.
fn one_of_each() -> Entries {
    let mut entries = none();
    add_beat(&mut entries, 1);
    add_transition(&mut entries, 2);
    about_attempt(&mut entries.add(3, at(3), "attempt-started")).text(Field::Reason, "lost");
    let mut says = entries.add(4, at(4), "attempt-ended");
    about_attempt(&mut says).text(Field::OutcomeKind, "signaled").whole(Field::OutcomeSignal, 9);
    says.text(Field::OutcomeClass, "lost").text(Field::OutcomeDetail, "killed by SIGKILL").whole(Field::Started, 5);
    says.whole(Field::UsageTokens, 12).real(Field::UsageCost, 0.25);
    let mut says = entries.add(5, at(5), "lease-expired");
    about_attempt(&mut says).text(Field::PreviousHolder, "web-3").text(Field::Target, "acme/shop#42");
    says.whole(Field::Silence, 181_000).whole(Field::Pickups, 1);
    let mut says = entries.add(6, at(6), "alert");
    says.text(Field::Rule, "liveness").text(Field::Fingerprint, "f").text(Field::Subject, "catalogue");
    says.text(Field::Severity, "warning").text(Field::State, "resolved").text(Field::Summary, "silent");
    says.whole(Field::Started, 5).text(Field::Telling, "ended").whole(Field::Comings, 2);
    about_attempt(&mut entries.add(7, at(7), "phase"))
        .text(Field::Phase, "held")
        .text(Field::Reason, "a person is needed");
    entries.add(8, at(8), "agent").text(Field::What, "began").text(Field::Detail, "0.1");
    entries
}

#[tokio::test]
async fn a_sink_of_0_1_gets_the_same_facts_as_records() {
    let world = World::new();
    let mut sink = world.host.load_sink(old_sink(&world, "")).await.unwrap();
    assert_eq!((sink.package_version(), sink.description().name.as_str()), ("0.1.0", "old-sink"));
    assert_eq!(sink.write(&one_of_each()).await, Ok(Acknowledgement { durable: 8, refused: Vec::new() }));
    sink.flush().await.unwrap();

    let kept = Connection::open(world.path("old.db")).unwrap();
    let mut rows = kept.prepare("SELECT sequence, agent, at, body, attributes FROM entries ORDER BY sequence").unwrap();
    let rows: Vec<(u64, String, u64, String, String)> = rows
        .query_map([], |row| {
            let number = |index: usize| row.get(index).map(i64::unsigned_abs);
            Ok((number(0)?, row.get(1)?, number(2)?, row.get(3)?, row.get(4)?))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let attempt = r#"subject: "catalogue", attempt: 2, epoch: 7"#;
    let expected = [
        (
            format!(
                r#"Body::Beat(Beat {{ {attempt}, sequence: 1, progress: Some(Progress {{ fraction: Some(0.5), done: Some(1), total: Some(1000), step: Some("hashing"), checkpoint: None }}), usage: None, state: Some("walking"), errors: 0 }})"#
            ),
            "",
        ),
        (
            r#"Body::Transition(Transition { subject: "catalogue", kind: SubjectKind::Job, attempt: 2, epoch: 7, previous: Verdict::Alive, current: Verdict::Stale, reason: "silent for 181 s" })"#.to_owned(),
            "",
        ),
        (format!(r#"Body::AttemptStarted(AttemptStarted {{ {attempt}, reason: "lost" }})"#), ""),
        (
            format!(
                r#"Body::AttemptEnded(AttemptEnded {{ {attempt}, outcome: Outcome::Signaled(9), class: "lost", reason: "killed by SIGKILL", started: 5, progress: None, usage: Some(Usage {{ turns: None, tokens: Some(12), cost-usd: Some(0.25) }}) }})"#
            ),
            "",
        ),
        (
            format!(r#"Body::Reap(Reap {{ {attempt}, previous-holder: Some("web-3"), silence: 181000, pickups: 1 }})"#),
            "target=acme/shop#42",
        ),
        (
            r#"Body::Alert(Alert { rule: "liveness", fingerprint: "f", subject: "catalogue", severity: Severity::Warning, state: AlertState::Resolved, summary: "silent", started: 5, attributes: [Attribute { key: "telling", value: "ended" }, Attribute { key: "comings", value: "2" }] })"#.to_owned(),
            "",
        ),
        (
            r#"Body::Other(OtherEntry { kind: "phase", subject: Some("catalogue"), attempt: Some(2), epoch: Some(7), detail: "held: a person is needed" })"#.to_owned(),
            "phase=held reason=a person is needed",
        ),
        (
            r#"Body::Other(OtherEntry { kind: "agent", subject: None, attempt: None, epoch: None, detail: "began: 0.1" })"#.to_owned(),
            "what=began detail=0.1",
        ),
    ];
    assert_eq!(rows.len(), expected.len());
    for (sequence, ((body, attributes), row)) in (1..).zip(expected.into_iter().zip(rows)) {
        assert_eq!(row, (sequence, "agent-1".to_owned(), at(sequence), body, attributes.to_owned()));
    }
    let lines: String = (1..=8).map(|sequence| format!("{sequence} of 8\n")).collect();
    assert_eq!(std::fs::read_to_string(world.path("old.txt")).unwrap(), lines);
}

#[tokio::test]
async fn grants_and_limits_hold_for_a_sink_of_0_1_too() {
    let world = World::new();
    let mut spec = old_sink(&world, "");
    spec.grants.sql.clear();
    let Err(LoadError::NotGranted { lines, .. }) = world.host.load_sink(spec).await else { panic!("it was loaded") };
    assert_eq!(lines, "grant.sql.main = \"main.db\"");

    let mut sink = world.host.load_sink(old_sink(&world, "call-ungranted")).await.unwrap();
    let answers = told(&mut sink).await;
    assert!(answers[..5].iter().all(|answer| answer.contains("Denied(")), "{answers:#?}");
    assert!(answers[5].contains("a line holds a line feed"), "{answers:#?}");
    assert!(sink.is_warm());

    let cpu = Duration::from_millis(200);
    let mut spec = old_sink(&world, "loop");
    spec.limits.cpu = cpu;
    spec.limits.wall = Duration::from_secs(60);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(fault(sink.write(&beat(1)).await), FaultKind::CpuDeadline(cpu));
    assert!(!sink.is_warm());

    let mut spec = old_sink(&world, "");
    spec.limits.batch_entries = 3;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(sink.write(&beats(1..=9)).await.unwrap().durable, 3);
}

#[tokio::test]
async fn the_answers_of_a_sink_of_0_1_count() {
    let world = World::new();
    let mut sink = world.host.load_sink(old_sink(&world, "acknowledge-less")).await.unwrap();
    assert_eq!(sink.write(&beats(4..=9)).await.unwrap().durable, 8);
    let mut sink = world.host.load_sink(old_sink(&world, "refuse")).await.unwrap();
    let answer = CallError::Plugin { plugin: "old".into(), answer: PluginError::RetryAfter(1500) };
    assert_eq!(sink.write(&beat(1)).await, Err(answer));
    let mut sink = world.host.load_sink(old_sink(&world, "forge-acknowledgement")).await.unwrap();
    assert!(matches!(fault(sink.write(&beat(1)).await), FaultKind::BadAnswer(_)));
}

#[tokio::test]
async fn a_rule_of_0_1_finds_what_holds() {
    let world = World::new();
    let mut spec = PluginSpec::new("old", Kind::Rule, guest("old-rule"));
    spec.grants.state = Some(Arc::new(MemoryState::default()));
    let mut rule = world.host.load_rule(spec).await.unwrap();
    assert_eq!(rule.package_version(), "0.1.0");
    let mut stale = subject("stale", Verdict::Stale);
    stale.silence = Some(181_000);
    stale.progress =
        Some(Progress { fraction: None, done: Some(3), total: None, step: Some("x".into()), checkpoint: None });
    stale.attributes.push(Attribute { key: "phase".into(), value: "running".into() });
    // A judgement of a later version is one that cannot be told.
    let subjects = [subject("alive", Verdict::Alive), stale, subject("odd", Verdict::Other)];
    let told = r#"Subject { name: "stale", kind: SubjectKind::Job, host: "here", policy: "default", verdict: Verdict::Stale, since: 0, reason: "because", last-beat: None, silence: Some(181000), progress: Some(Progress { fraction: None, done: Some(3), total: None, step: Some("x"), checkpoint: None }), progress-changed: None, usage: None, attempt: 1, epoch: 1, errors: 0, attributes: [Attribute { key: "phase", value: "running" }] }"#;
    for call in ["1", "2"] {
        let attribute = |key: &str, value: &str| Attribute { key: key.into(), value: value.into() };
        let finding = Finding {
            key: "stale".into(),
            subject: "stale".into(),
            severity: Severity::Critical,
            summary: told.into(),
            attributes: vec![attribute("now", "77"), attribute("call", call)],
        };
        assert_eq!(rule.evaluate(77, &subjects).await, Ok(vec![finding]));
    }
}

/// A situation in which everything is said.
fn whole() -> Situation {
    let mut asked = situation();
    asked.command.environment = vec![
        EnvironmentVariable { name: "LANG".into(), value: EnvironmentValue::Plain("C".into()) },
        EnvironmentVariable { name: "KEY".into(), value: EnvironmentValue::Withheld },
    ];
    asked.attempts.push(PastAttempt {
        number: 1,
        started: 5,
        ended: Some(6),
        outcome: Some(Outcome::OutOfMemory),
        class: Some("lost".into()),
        progress: None,
        usage: Some(Usage { turns: Some(2), tokens: None, cost_usd: None }),
        notes: vec![Attribute { key: "note".into(), value: "kept".into() }],
        attributes: vec![Attribute { key: "later".into(), value: "too".into() }],
    });
    asked.budget.attributes.push(Attribute { key: "tokens-left".into(), value: "9".into() });
    asked
}

#[tokio::test]
async fn a_strategy_of_0_1_decides_from_the_whole_situation() {
    let world = World::new();
    let here = Path::new("/");
    let mut strategy = world.host.load_strategy(old_strategy("launch")).await.unwrap();
    assert_eq!(strategy.package_version(), "0.1.0");
    let asked = whole();
    let again = Command { arguments: vec!["--again".into()], ..asked.command.clone() };
    assert_eq!(strategy.decide(&asked, here).await, Ok(Decision::Launch(again)));

    let mut strategy = world.host.load_strategy(old_strategy("wait")).await.unwrap();
    let decision = strategy.decide(&asked, here).await.unwrap();
    let Decision::Wait(Pause { length: 1500, why }) = decision else { panic!("{decision:?}") };
    for part in [
        r#"name: "catalogue""#,
        r#"value: EnvironmentValue::Plain("C")"#,
        "value: EnvironmentValue::Withheld",
        r#"outcome: Some(Outcome::OutOfMemory), class: Some("lost")"#,
        r#"usage: Some(Usage { turns: Some(2), tokens: None, cost-usd: None })"#,
        r#"notes: [Attribute { key: "note", value: "kept" }, Attribute { key: "later", value: "too" }]"#,
        r#"attributes: [Attribute { key: "tokens-left", value: "9" }]"#,
    ] {
        assert!(why.contains(part), "{part}\n{why}");
    }
    let mut strategy = world.host.load_strategy(old_strategy("")).await.unwrap();
    assert!(matches!(strategy.decide(&asked, here).await, Ok(Decision::GiveUp(_))));
}

#[tokio::test]
async fn a_strategy_of_0_1_sees_the_directory_of_the_job_and_tells_what_it_observed() {
    let world = World::new();
    let directory = world.path("job");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("state.json"), "state").unwrap();
    std::fs::write(world.path("secret"), "secret").unwrap();
    std::fs::File::create(directory.join("large")).unwrap().set_len(65_537).unwrap();
    let mut strategy = world.host.load_strategy(old_strategy("hold")).await.unwrap();
    let seen = r#"Ok(5) Ok("state") Err(WorkspaceError::Denied("`../secret` leads out of the job's directory")) Err(WorkspaceError::TooLarge)"#;
    assert_eq!(strategy.decide(&situation(), &directory).await, Ok(Decision::Hold(seen.into())));
    let observed = strategy.observe(&output(), &directory).await.unwrap();
    let note = Attribute { key: "told".into(), value: format!(r#"catalogue 1 1 0 ["line"] {seen}"#) };
    let expected = Observation {
        progress: None,
        usage: None,
        notes: vec![note],
        quiet: QuietKind::Human,
        quiet_until: Some(7),
        finished: Some(false),
        attributes: Vec::new(),
    };
    assert_eq!(observed, Some(expected));
}

#[tokio::test]
async fn a_plugin_of_the_newest_version_is_spoken_to_in_it() {
    let world = World::new();
    let script = world.host.load_strategy(PluginSpec::new("script", Kind::Strategy, builtin("script"))).await.unwrap();
    assert_eq!(script.package_version(), latido_plugin_host::PACKAGE_VERSIONS[0]);
}

#[tokio::test]
async fn a_sink_of_0_1_is_no_rule() {
    let world = World::new();
    let mut spec = old_sink(&world, "");
    spec.kind = Kind::Rule;
    let Err(error) = world.host.load_rule(spec).await else { panic!("a sink was loaded as a rule") };
    assert!(matches!(error, LoadError::WrongKind { .. }), "{error}");
}
