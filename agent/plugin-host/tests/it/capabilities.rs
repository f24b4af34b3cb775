//! What plugins reach: what was granted, and nothing else; a refusal is an answer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use latido_plugin_host::{Durability, FaultKind, FileGrant, Kind, MemoryState, PluginSpec, SqlGrant};
use serde_json::{Value, json};

use crate::support::{World, beat, guest, misbehaving, situation, told};

/// The plugin that tries what its settings say, with everything granted that it asks for.
fn probe(world: &World, settings: Value) -> PluginSpec {
    let mut spec = PluginSpec::new("probe", Kind::Sink, guest("probe"));
    spec.settings = settings;
    spec.grants.sql.insert("main".into(), world.path("main.db").into());
    spec.grants.files.insert("main".into(), world.path("main.txt").into());
    spec.grants.http = Some(latido_plugin_host::HttpGrant::to([]));
    spec.grants.state = Some(Arc::new(MemoryState::default()));
    spec
}

async fn tried(world: &World, settings: Value) -> Vec<String> {
    let mut sink = world.host.load_sink(probe(world, settings)).await.unwrap();
    told(&mut sink).await
}

#[tokio::test]
async fn what_is_imported_and_not_asked_for_answers_denied() {
    let world = World::new();
    let mut spec = misbehaving("write", "call-ungranted");
    spec.grants.sql.insert("main".into(), world.path("main.db").into());
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let answers = told(&mut sink).await;
    assert_eq!(answers.len(), 6);
    assert!(answers.iter().all(|answer| answer.contains("Denied(")), "{answers:#?}");
    assert!(sink.is_warm());
    assert!(!world.path("main.db").exists());
}

#[tokio::test]
async fn a_strategy_without_grants_sees_no_file() {
    let world = World::new();
    let spec = PluginSpec::new("bad", Kind::Strategy, guest("misbehave-strategy"));
    let mut strategy = world.host.load_strategy(spec).await.unwrap();
    let decision = strategy.decide(&situation(), Path::new("/etc")).await.unwrap();
    let latido_plugin_host::Decision::Hold(answers) = decision else { panic!("{decision:?}") };
    assert_eq!(answers.matches("Denied(").count(), 3, "{answers}");
}

#[tokio::test]
async fn another_name_than_the_granted_one_is_denied() {
    let world = World::new();
    let answers =
        tried(&world, json!({ "database": "other", "query": ["SELECT 1"], "file": "other", "append": ["x"] })).await;
    assert_eq!(answers.len(), 2);
    assert!(answers[0].contains("Denied(\"the database `other` is not granted\")"), "{answers:?}");
    assert!(answers[1].contains("Denied(\"the file `other` is not granted\")"), "{answers:?}");
}

#[tokio::test]
async fn a_path_in_place_of_a_name_is_no_file_that_was_granted() {
    let world = World::new();
    for name in ["../main", "/etc/passwd", "main/../main", "main\0", "./main", ""] {
        let answers =
            tried(&world, json!({ "file": name, "append": ["x\n"], "database": name, "query": ["SELECT 1"] })).await;
        assert!(answers.iter().all(|answer| answer.contains("Denied(")) && answers.len() == 2, "{name}: {answers:?}");
    }
    assert!(!world.path("main.txt").exists() && !world.path("main.db").exists());
}

#[tokio::test]
async fn sql_stays_inside_its_file() {
    let world = World::new();
    let outside = world.path("outside.db");
    let other = outside.display();
    let executed = [
        "CREATE TABLE t (x)".to_owned(),
        "INSERT INTO t VALUES (1)".to_owned(),
        format!("ATTACH '{other}' AS o"),
        format!("VACUUM INTO '{other}'"),
        "VACUUM".to_owned(),
        "PRAGMA writable_schema = 1".to_owned(),
        "PRAGMA journal_mode = DELETE".to_owned(),
        "PRAGMA temp_store_directory = '/tmp'".to_owned(),
        "PRAGMA max_page_count = 4294967294".to_owned(),
        "BEGIN".to_owned(),
        "COMMIT".to_owned(),
        "SAVEPOINT s".to_owned(),
        "DETACH main".to_owned(),
        "SELECT load_extension('x')".to_owned(),
        "CREATE VIRTUAL TABLE v USING fts5(x)".to_owned(),
        "CREATE TEMP TABLE hidden (x)".to_owned(),
        "ANALYZE".to_owned(),
        "UPDATE sqlite_schema SET sql = 'rubbish'".to_owned(),
    ];
    let queried = [
        "SELECT load_extension('/lib/x.so')".to_owned(),
        "SELECT readfile('/etc/passwd')".to_owned(),
        "SELECT writefile('/tmp/x', 'y')".to_owned(),
        "SELECT edit('x')".to_owned(),
        "SELECT fts3_tokenizer('simple')".to_owned(),
        "PRAGMA user_version = 7".to_owned(),
        "PRAGMA database_list".to_owned(),
        format!("VACUUM INTO '{other}'"),
        format!("ATTACH '{other}' AS o"),
        "INSERT INTO t VALUES (2)".to_owned(),
        "SELECT x FROM t".to_owned(),
    ];
    let answers = tried(&world, json!({ "execute": executed, "query": queried })).await;
    let (executed_answers, queried_answers) = answers.split_at(executed.len());
    assert!(executed_answers[0].starts_with("Ok(") && executed_answers[1] == "Ok(1)", "{answers:#?}");
    for (statement, answer) in executed.iter().zip(executed_answers).skip(2) {
        // SQLite itself refuses these two kinds, before the authorizer is asked.
        let by_sqlite = statement.contains("sqlite_schema") || statement.starts_with("VACUUM");
        let refused = answer.contains("Denied(") || (by_sqlite && answer.contains("Failed("));
        assert!(refused, "{statement}: {answer}");
    }
    for (statement, answer) in queried.iter().zip(queried_answers) {
        match statement.as_str() {
            "SELECT x FROM t" => assert_eq!(answer, "Ok([[Value::Integer(1)]])"),
            unknown if unknown.contains("file(") || unknown.contains("edit(") || unknown.contains("load_extension") => {
                assert!(answer.starts_with("Err("), "{statement}: {answer}");
            }
            _ => assert!(answer.contains("Denied("), "{statement}: {answer}"),
        }
    }
    assert!(!outside.exists());
}

#[tokio::test]
async fn one_failing_row_rolls_the_whole_batch_back() {
    let world = World::new();
    let answers = tried(
        &world,
        json!({ "execute": [
            "CREATE TABLE t (x INTEGER PRIMARY KEY) STRICT",
            "INSERT INTO t SELECT 1 UNION ALL SELECT 1",
        ], "query": ["SELECT count(*) FROM t"] }),
    )
    .await;
    assert!(answers[1].contains("Failed("), "{answers:?}");
    assert_eq!(answers[2], "Ok([[Value::Integer(0)]])");
}

/// A statement that never ends by itself.
const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

#[tokio::test]
async fn a_statement_that_never_ends_is_ended_with_its_call() {
    let world = World::new();
    let mut spec = probe(&world, json!({ "query": [ENDLESS] }));
    spec.limits.wall = Duration::from_millis(500);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    // The second call waits for the first one's statement to be interrupted; it would time out in `flush` otherwise.
    for _ in 0..2 {
        assert_eq!(
            crate::support::fault(sink.write(&beat(1)).await),
            FaultKind::WallDeadline(Duration::from_millis(500))
        );
    }
    sink.flush().await.unwrap();
}

#[tokio::test]
async fn a_result_has_an_end() {
    let world = World::new();
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) SELECT i FROM n";
    let answers = tried(&world, json!({ "query": [many] })).await;
    assert!(answers[0].contains("the result exceeds"), "{answers:?}");
}

#[tokio::test]
async fn a_full_database_answers_full_and_works_on() {
    let world = World::new();
    let mut spec = probe(
        &world,
        json!({ "execute": ["CREATE TABLE IF NOT EXISTS t (x)",
            "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT i FROM n",
            "INSERT INTO t VALUES (1)"] }),
    );
    spec.limits.sql_pages = 20;
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let answers = told(&mut sink).await;
    assert_eq!((answers[1].as_str(), answers[2].as_str()), ("Err(SqlError::Full)", "Ok(1)"));
}

#[tokio::test]
async fn text_that_is_not_utf8_is_an_answer_and_no_panic() {
    let world = World::new();
    rusqlite::Connection::open(world.path("main.db"))
        .unwrap()
        .execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
        .unwrap();
    let answers = tried(&world, json!({ "query": ["SELECT x FROM t"] })).await;
    assert!(answers[0].contains("not UTF-8"), "{answers:?}");
}

#[tokio::test]
async fn a_database_held_by_another_process_is_busy() {
    let world = World::new();
    let other = rusqlite::Connection::open(world.path("main.db")).unwrap();
    other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
    let answers = tried(&world, json!({ "execute": ["INSERT INTO t VALUES (1)"] })).await;
    assert_eq!(answers, ["Err(SqlError::Busy)"]);
}

#[tokio::test]
async fn lines_are_appended_whole_and_a_torn_one_is_set_aside() {
    let world = World::new();
    std::fs::write(world.path("main.txt"), "first\ntor").unwrap();
    assert_eq!(tried(&world, json!({ "append": ["second\n", "third\n"] })).await, ["Ok(())"]);
    assert_eq!(text(&world.path("main.txt")), "first\nsecond\nthird\n");
    assert_eq!(text(&world.path("main.txt.torn")), "tor\n");
    let answers = tried(&world, json!({ "append": ["a\nb"] })).await;
    assert!(answers[0].contains("line feed"), "{answers:?}");
    assert_eq!(text(&world.path("main.txt")), "first\nsecond\nthird\n");
}

#[tokio::test]
async fn a_file_that_is_rotated_away_is_opened_again() {
    let world = World::new();
    let mut sink = world.host.load_sink(probe(&world, json!({ "append": ["line\n"] }))).await.unwrap();
    told(&mut sink).await;
    std::fs::rename(world.path("main.txt"), world.path("old.txt")).unwrap();
    told(&mut sink).await;
    assert_eq!((text(&world.path("old.txt")), text(&world.path("main.txt"))), ("line\n".into(), "line\n".into()));
}

#[tokio::test]
async fn a_full_disk_is_told_as_full() {
    let world = World::new();
    let mut spec = probe(&world, json!({ "append": ["line\n"] }));
    spec.grants.files.insert("main".into(), FileGrant { path: "/dev/full".into(), durability: Durability::Process });
    let mut sink = world.host.load_sink(spec).await.unwrap();
    assert_eq!(told(&mut sink).await, ["Err(FileError::Full)"]);
}

#[tokio::test]
async fn a_database_in_a_folder_that_is_not_there_is_told_by_path() {
    let world = World::new();
    let mut spec = probe(&world, json!({ "query": ["SELECT 1"] }));
    let grant = SqlGrant { path: world.path("nowhere/main.db"), durability: Durability::Disk };
    spec.grants.sql.insert("main".into(), grant);
    let mut sink = world.host.load_sink(spec).await.unwrap();
    let answers = told(&mut sink).await;
    assert!(answers[0].contains("nowhere/main.db"), "{answers:?}");
}

#[tokio::test]
async fn state_is_kept_in_bounds() {
    let world = World::new();
    let answers = tried(
        &world,
        json!({ "state": [["a", "1"], ["a", null], ["k".repeat(300), "x"], ["big", "x".repeat(300 << 10)]] }),
    )
    .await;
    assert_eq!(answers[..4], ["Ok(())", "Ok(Some([49]))", "Ok(())", "Ok(None)"]);
    assert_eq!((answers[4].as_str(), answers[6].as_str()), ("Err(StateError::Full)", "Err(StateError::Full)"));
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_guest_has_a_test() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = [here.join("tests/it"), here.join("../plugin-kit/tests/it")];
    let files = tests.iter().flat_map(|tests| std::fs::read_dir(tests).unwrap()).map(|entry| entry.unwrap().path());
    let sources: String = files.filter(|path| path.is_file()).map(|path| text(&path)).collect();
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests");
    let mut seen = 0;
    for entry in std::fs::read_dir(guests).unwrap() {
        let folder = entry.unwrap().path();
        if folder.join("Cargo.toml").is_file() {
            let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
            let ways = [format!("guest(\"{name}\")"), format!("\"guests/{name}\"")];
            assert!(ways.iter().any(|way| sources.contains(way)), "tests/guests/{name} has no test");
            seen += 1;
        }
    }
    assert!(seen >= 5);
}
