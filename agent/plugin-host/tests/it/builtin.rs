//! The built-in plugins do what their READMEs say.

use std::path::Path;

use latido_plugin_host::{
    Attribute, Budget, Command, Decision, Entries, EnvironmentValue, EnvironmentVariable, Field, Kind, Outcome,
    PastAttempt, PluginError, PluginSpec, Severity, Situation, Subject, Verdict,
};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{World, about_attempt, add_beat, add_transition, at, beats, builtin, none, subject, write};

/// One entry of each kind.
fn one_of_each() -> Entries {
    let mut entries = none();
    add_beat(&mut entries, 1);
    add_transition(&mut entries, 2);
    about_attempt(&mut entries.add(3, at(3), "attempt-started")).text(Field::Reason, "resumed");
    let mut ended = entries.add(4, at(4), "attempt-ended");
    about_attempt(&mut ended).text(Field::OutcomeKind, "signaled").whole(Field::OutcomeSignal, 9);
    ended.text(Field::OutcomeClass, "lost").text(Field::OutcomeDetail, "SIGKILL from outside");
    ended.whole(Field::Started, 1_699_999_999_000).whole(Field::UsageTurns, 3).real(Field::UsageCost, 0.25);
    let mut alert = entries.add(5, at(5), "alert");
    alert.text(Field::Rule, "liveness").text(Field::Fingerprint, "f").text(Field::Subject, "catalogue");
    alert.text(Field::Severity, "warning").text(Field::State, "firing").text(Field::Summary, "catalogue is \"stale\"");
    alert.whole(Field::Started, 1_699_999_999_000).text(Field::Telling, "began").text(Field::Reason, "two\nlines");
    let mut expired = entries.add(6, at(6), "lease-expired");
    about_attempt(&mut expired).text(Field::PreviousHolder, "w").whole(Field::Silence, 181_500);
    expired.whole(Field::Pickups, 1);
    entries.add(7, at(7), "agent").text(Field::What, "started").text(Field::Detail, "version 1");
    entries
}

pub(crate) fn sqlite(world: &World) -> PluginSpec {
    let mut spec = PluginSpec::new("history", Kind::Sink, builtin("sqlite"));
    spec.grants.sql.insert("main".into(), world.path("history.db").into());
    spec
}

#[tokio::test]
async fn sqlite_stores_each_entry_once_however_often_it_comes() {
    let world = World::new();
    let mut sink = world.host.load_sink(sqlite(&world)).await.unwrap();
    assert_eq!(sink.description().name, "sqlite");
    let entries = one_of_each();
    for _ in 0..3 {
        assert_eq!(write(&mut sink, &entries).await, Ok(7));
    }
    let mut again = world.host.load_sink(sqlite(&world)).await.unwrap();
    assert_eq!(write(&mut again, &entries).await, Ok(7));
    assert_eq!(write(&mut again, &none()).await, Ok(0));

    let database = Connection::open(world.path("history.db")).unwrap();
    let kinds: Vec<String> = database
        .prepare("SELECT kind FROM entries ORDER BY sequence")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(kinds, ["beat", "transition", "attempt-started", "attempt-ended", "alert", "lease-expired", "agent"]);
    let told: (String, i64, String, i64, f64) = database
        .query_row("SELECT outcome, outcome_code, class, started_ms, cost_usd FROM attempts", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .unwrap();
    assert_eq!(told, ("signaled".into(), 9, "lost".into(), 1_699_999_999_000, 0.25));
    let told: (String, String, String, i64) = database
        .query_row("SELECT previous_verdict, verdict, reason, attempt FROM transitions", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(told, ("alive".into(), "stale".into(), "silent for 181 s".into(), 2));
    let told: (String, String, String) = database
        .query_row("SELECT severity, summary, attributes FROM alerts", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    let attributes = r#"{"reason":"two\nlines","telling":"began"}"#;
    assert_eq!(told, ("warning".into(), "catalogue is \"stale\"".into(), attributes.into()));
    let told: (f64, i64, String, i64) = database
        .query_row("SELECT fraction, done, step, beat FROM beats", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!(told, (0.5, 1, "hashing".into(), 1));
}

/// Entries with these numbers and times, of one journal.
pub(crate) fn dated(journal: &str, entries: impl Iterator<Item = (u64, u64)>) -> Entries {
    let mut dated = Entries::new(journal);
    for (sequence, at) in entries {
        dated.add(sequence, at, "agent").text(Field::What, "started");
    }
    dated
}

#[tokio::test]
async fn sqlite_keeps_what_its_settings_say_and_nothing_beyond() {
    const DAY: u64 = 86_400_000;
    let left = |world: &World| -> Vec<(String, i64)> {
        let database = Connection::open(world.path("history.db")).unwrap();
        let mut rows = database.prepare("SELECT agent, sequence FROM entries ORDER BY agent, sequence").unwrap();
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    };
    let numbers = |journal: &str, numbers: std::ops::RangeInclusive<i64>| -> Vec<(String, i64)> {
        numbers.map(|number| (journal.to_owned(), number)).collect()
    };
    for (settings, kept_of_old, kept) in [
        (json!({}), 1..=3, 1..=20),
        (json!({ "keep_days": 5 }), 3..=3, 15..=20),
        (json!({ "entries_max": 2 }), 2..=3, 19..=20),
        (json!({ "keep_days": 5, "entries_max": 100 }), 3..=3, 15..=20),
    ] {
        let world = World::new();
        let spec = PluginSpec { settings: settings.clone(), ..sqlite(&world) };
        let mut sink = world.host.load_sink(spec).await.unwrap();
        // Another journal in the same file: the agent's before its state directory was made anew.
        write(&mut sink, &dated("a", [(1, DAY), (2, 2 * DAY), (3, 16 * DAY)].into_iter())).await.unwrap();
        let entries = dated("b", (1..=20).map(|day| (day, day * DAY)));
        write(&mut sink, &entries).await.unwrap();
        // What has come is seen to go with the next batch, which may bring nothing that is new.
        write(&mut sink, &entries).await.unwrap();
        assert_eq!(left(&world), [numbers("a", kept_of_old), numbers("b", kept)].concat(), "{settings}");
    }
}

#[tokio::test]
async fn sqlite_shrinks_what_is_too_large_step_by_step() {
    let world = World::new();
    let mut sink = world.host.load_sink(sqlite(&world)).await.unwrap();
    for first in (0..6_000).step_by(1_000) {
        write(&mut sink, &dated("a", (first + 1..=first + 1_000).map(|number| (number, number)))).await.unwrap();
    }
    let spec = PluginSpec { settings: json!({ "entries_max": 10 }), ..sqlite(&world) };
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let count = |world: &World| -> i64 {
        let database = Connection::open(world.path("history.db")).unwrap();
        database.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap()
    };
    let mut counts = Vec::new();
    for number in 6_001..=6_004 {
        write(&mut sink, &dated("a", [(number, number)].into_iter())).await.unwrap();
        counts.push(count(&world));
    }
    assert_eq!(counts, [4_001, 2_002, 11, 11]);
}

/// What is written into a file that is gone reaches nobody, although SQLite says that it is there.
#[tokio::test]
async fn sqlite_goes_on_in_a_new_file_where_its_own_was_moved_or_removed() {
    let world = World::new();
    let spec = PluginSpec { settings: json!({ "entries_max": 100 }), ..sqlite(&world) };
    let mut sink = world.host.load_sink(spec).await.unwrap();
    for number in 1..=4 {
        if number > 1 {
            // The instance that made the old file ready ends with this call; the next one finds the new file and makes it ready.
            let told = write(&mut sink, &beats(number..=number)).await.unwrap_err();
            assert!(
                matches!(told.answer(), Some(PluginError::Retry(why)) if why.contains("moved away or removed")),
                "{told}"
            );
        }
        assert_eq!(write(&mut sink, &beats(number..=number)).await, Ok(number));
        let database = Connection::open(world.path("history.db")).unwrap();
        let stored: u64 =
            database.query_row("SELECT max(sequence) FROM entries", [], |row| row.get::<_, u32>(0)).unwrap().into();
        drop(database);
        assert_eq!(stored, number);
        if number % 2 == 0 {
            std::fs::remove_file(world.path("history.db")).unwrap();
        } else {
            std::fs::rename(world.path("history.db"), world.path("history.db.1")).unwrap();
        }
    }
    std::fs::create_dir(world.path("history.db")).unwrap();
    assert!(write(&mut sink, &beats(5..=5)).await.is_err());
}

#[tokio::test]
async fn sqlite_refuses_settings_with_a_mistake() {
    let world = World::new();
    for (settings, part) in [
        (json!({ "keep_days": 0 }), "`keep_days` is 0"),
        (json!({ "entries_max": "all" }), "`entries_max` is \"all\""),
        (json!({ "keep": 1 }), "unknown setting `keep`; known: keep_days, entries_max"),
    ] {
        let spec = PluginSpec { settings: settings.clone(), ..sqlite(&world) };
        let error = world.host.load_sink(spec).await.map(drop).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains(part), "{settings}: {cause}");
    }
}

#[tokio::test]
async fn sqlite_leaves_a_newer_database_alone() {
    let world = World::new();
    Connection::open(world.path("history.db")).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let error = match world.host.load_sink(sqlite(&world)).await {
        Ok(_) => panic!("it was loaded"),
        Err(error) => std::error::Error::source(&error).unwrap().to_string(),
    };
    assert!(error.contains("schema version 99") && error.contains("up to 1"), "{error}");
}

#[tokio::test]
async fn sqlite_says_to_come_again_when_the_disk_is_full() {
    let world = World::new();
    let mut spec = sqlite(&world);
    spec.limits.sql_pages = 16;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let error = sink.write(&beats(1..=1000)).await.unwrap_err();
    assert_eq!(error.answer(), Some(&PluginError::RetryAfter(10_000)));
    let count: i64 = Connection::open(world.path("history.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM entries", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 0);
}

#[tokio::test]
async fn jsonl_writes_a_line_an_entry_in_the_shape_of_events() {
    let world = World::new();
    let mut spec = PluginSpec::new("lines", Kind::Sink, builtin("jsonl"));
    spec.grants.files.insert("main".into(), world.path("history.jsonl").into());
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(write(&mut sink, &one_of_each()).await, Ok(7));
    let text = std::fs::read_to_string(world.path("history.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 7);
    assert_eq!(
        lines[1],
        json!({
            "sequence": 2, "agent": "agent-1", "at": "2023-11-14T22:13:20.002Z", "type": "transition",
            "subject": "catalogue", "kind": "job", "attempt": 2, "epoch": 7, "previous": "alive", "current": "stale",
            "reason": "silent for 181 s",
        })
    );
    assert_eq!(
        lines[3]["outcome"],
        json!({ "kind": "signaled", "signal": 9, "class": "lost", "detail": "SIGKILL from outside" })
    );
    assert_eq!(lines[0]["progress"], json!({ "fraction": 0.5, "done": 1, "total": 1000, "step": "hashing" }));
    assert_eq!((&lines[4]["started"], &lines[4]["reason"]), (&json!("2023-11-14T22:13:19.000Z"), &json!("two\nlines")));
    assert_eq!(lines[5]["silence_s"], json!(181.5));
    assert_eq!((&lines[6]["type"], &lines[6]["what"]), (&json!("agent"), &json!("started")));
}

#[tokio::test]
async fn liveness_finds_what_needs_somebody() {
    let world = World::new();
    let mut rule = world.host.load_rule(PluginSpec::new("liveness", Kind::Rule, builtin("liveness"))).await.unwrap();
    let phase = |name: &str, verdict, phase: &str| Subject {
        attributes: vec![Attribute { key: "phase".into(), value: phase.into() }],
        ..subject(name, verdict)
    };
    let subjects = [
        subject("a", Verdict::Waiting),
        subject("b", Verdict::Missing),
        subject("c", Verdict::Alive),
        subject("d", Verdict::Late),
        subject("e", Verdict::Stale),
        subject("f", Verdict::Hung),
        subject("g", Verdict::Failing),
        subject("h", Verdict::Orphaned),
        subject("i", Verdict::Dead),
        subject("j", Verdict::Unknown),
        subject("k", Verdict::Ended),
        phase("l", Verdict::Ended, "stuck"),
        phase("m", Verdict::Unknown, "held"),
        phase("n", Verdict::Stale, "paused"),
        phase("o", Verdict::Stale, "running"),
    ];
    let findings = rule.evaluate(1_700_000_000_000, &subjects).await.unwrap();
    let found: Vec<(&str, &str, Severity)> =
        findings.iter().map(|finding| (&*finding.subject, &*finding.key, finding.severity)).collect();
    assert_eq!(
        found,
        [
            ("b", "missing", Severity::Warning),
            ("e", "stale", Severity::Warning),
            ("f", "hung", Severity::Warning),
            ("g", "failing", Severity::Warning),
            ("h", "orphaned", Severity::Warning),
            ("i", "dead", Severity::Warning),
            ("j", "unknown", Severity::Warning),
            ("l", "stuck", Severity::Critical),
            ("m", "held", Severity::Critical),
            ("o", "stale", Severity::Warning),
        ]
    );
    assert_eq!(findings[1].summary, "e is stale: because");
}

/// Each cause is a finding of its own, beside what the verdict says.
#[tokio::test]
async fn liveness_finds_what_failed_who_waits_for_a_person_and_errors_that_grow() {
    let world = World::new();
    let mut spec = PluginSpec::new("liveness", Kind::Rule, builtin("liveness"));
    spec.settings = json!({ "errors_min": 3, "errors_for_s": 60 });
    let mut rule = world.host.load_rule(spec).await.unwrap();
    let with = |name: &str, verdict, errors, says: &[(&str, &str)]| Subject {
        errors,
        attributes: says.iter().map(|(key, value)| Attribute { key: (*key).into(), value: (*value).into() }).collect(),
        ..subject(name, verdict)
    };
    let mut found = async |now, subjects: &[Subject]| -> Vec<String> {
        let findings = rule.evaluate(now, subjects).await.unwrap();
        findings.iter().map(|finding| format!("{} {}", finding.subject, finding.key)).collect()
    };
    let subjects = [
        with("a", Verdict::Ended, 0, &[("phase", "ended"), ("class", "failed")]),
        with("b", Verdict::Ended, 0, &[("phase", "ended"), ("class", "lost")]),
        with("c", Verdict::Ended, 0, &[("phase", "ended"), ("class", "completed")]),
        with("d", Verdict::Ended, 0, &[("phase", "ended"), ("class", "stopped")]),
        with("e", Verdict::Ended, 0, &[("phase", "backing-off"), ("class", "failed")]),
        with("f", Verdict::Stale, 4, &[("phase", "running"), ("state", "needs-person")]),
        with("g", Verdict::Alive, 2, &[("phase", "running"), ("state", "indexing")]),
    ];
    assert_eq!(found(0, &subjects).await, ["a failed", "b failed", "f stale", "f needs-person", "f errors"]);
    let grown = [with("g", Verdict::Alive, 3, &[]), with("f", Verdict::Alive, 4, &[])];
    assert_eq!(found(30_000, &grown).await, ["g errors", "f errors"]);
    found(60_000, &grown).await;
    assert_eq!(found(61_000, &grown).await, [""; 0], "what does not grow any further is over");
}

#[tokio::test]
async fn liveness_takes_severities_from_its_settings() {
    let world = World::new();
    let mut spec = PluginSpec::new("liveness", Kind::Rule, builtin("liveness"));
    spec.settings = json!({ "severity": { "stale": "critical", "dead": "off", "late": "info" } });
    let mut rule = world.host.load_rule(spec).await.unwrap();
    let subjects = [subject("a", Verdict::Stale), subject("b", Verdict::Dead), subject("c", Verdict::Late)];
    let findings = rule.evaluate(0, &subjects).await.unwrap();
    let found: Vec<(&str, Severity)> = findings.iter().map(|finding| (&*finding.subject, finding.severity)).collect();
    assert_eq!(found, [("a", Severity::Critical), ("c", Severity::Info)]);
}

fn situation(outcome: Option<Outcome>) -> Situation {
    Situation {
        now: 1_700_000_000_000,
        subject: subject("catalogue", Verdict::Dead),
        command: Command {
            program: "catalogue".into(),
            arguments: vec!["/usr/share".into(), "ü".into()],
            directory: Some("/tmp".into()),
            environment: vec![EnvironmentVariable { name: "TOKEN".into(), value: EnvironmentValue::Withheld }],
        },
        attempts: vec![PastAttempt {
            number: 1,
            started: 0,
            ended: Some(1),
            outcome,
            class: None,
            progress: None,
            usage: None,
            notes: Vec::new(),
            attributes: Vec::new(),
        }],
        budget: Budget {
            attempts_left: Some(4),
            turns_left: None,
            cost_left_usd: None,
            time_left: None,
            attributes: Vec::new(),
        },
        attributes: Vec::new(),
    }
}

#[tokio::test]
async fn script_starts_the_same_command_again_unless_that_cannot_help() {
    let world = World::new();
    let mut strategy =
        world.host.load_strategy(PluginSpec::new("script", Kind::Strategy, builtin("script"))).await.unwrap();
    for outcome in [
        None,
        Some(Outcome::Signaled(9)),
        Some(Outcome::Exited(1)),
        // Asked after a good end where the policy says that the job is to run on, and nowhere else.
        Some(Outcome::Exited(0)),
        Some(Outcome::Lost("reboot".into())),
        Some(Outcome::OutOfMemory),
        Some(Outcome::LaunchFailed("no space left on device".into())),
    ] {
        let asked = situation(outcome);
        assert_eq!(strategy.decide(&asked, Path::new("/")).await, Ok(Decision::Launch(asked.command)));
    }
    let asked = situation(Some(Outcome::LaunchFailed("catalogue: not found".into())));
    let decision = strategy.decide(&asked, Path::new("/")).await.unwrap();
    assert!(matches!(&decision, Decision::Hold(why) if why.contains("catalogue: not found")), "{decision:?}");
    let decision =
        strategy.decide(&situation(Some(Outcome::Stopped("latido stop".into()))), Path::new("/")).await.unwrap();
    assert!(matches!(decision, Decision::Hold(_)), "{decision:?}");
    let mut endless = situation(Some(Outcome::LaunchFailed("catalogue: not found".into())));
    endless.budget.attempts_left = None;
    assert_eq!(strategy.decide(&endless, Path::new("/")).await, Ok(Decision::Launch(endless.command)));
}
