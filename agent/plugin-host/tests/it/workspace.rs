//! `workspace`: what a strategy sees of the directory of the job that it is asked about, and what it does not.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use latido_plugin_host::{Decision, Kind, LoadError, PluginSpec, Strategy, WorkspaceGrant};
use serde_json::{Value, json};

use crate::support::{World, guest, output, situation};

/// The strategy that tries what its settings say, with the grant that it asks for.
fn probing(settings: Value) -> PluginSpec {
    let mut spec = PluginSpec::new("probe", Kind::Strategy, guest("probe-strategy"));
    spec.settings = settings;
    spec.grants.workspace = Some(WorkspaceGrant::default());
    spec
}

async fn decided(strategy: &mut Strategy, directory: &Path) -> Vec<String> {
    let decision = strategy.decide(&situation(), directory).await.unwrap();
    let Decision::Hold(lines) = decision else { panic!("{decision:?}") };
    lines.lines().map(str::to_owned).collect()
}

/// What the strategy was answered at each of its tries.
async fn tried(world: &World, directory: &Path, settings: Value) -> Vec<String> {
    let mut strategy = world.host.load_strategy(probing(settings)).await.unwrap();
    decided(&mut strategy, directory).await
}

/// A job's directory with a file, a directory in it and something beside it.
fn directory(world: &World, name: &str) -> PathBuf {
    let directory = world.path(name);
    fs::create_dir_all(directory.join("deep")).unwrap();
    fs::write(directory.join("state.json"), format!("state of {name}")).unwrap();
    fs::write(directory.join("deep/log"), "lines").unwrap();
    fs::write(world.path("secret"), "secret").unwrap();
    directory
}

#[tokio::test]
async fn what_is_granted_is_seen_read_and_listed() {
    let world = World::new();
    let directory = directory(&world, "job");
    fs::File::options().append(true).open(directory.join("state.json")).unwrap().set_modified(at(7_001)).unwrap();
    let asked = json!({
        "look": ["state.json", "deep", "."],
        "read": [["state.json", 0, 100], ["state.json", 9, 2], ["deep/log", 5, 100], ["deep/../deep/log", 0, 3]],
        "list": [".", "deep"],
    });
    let answers = tried(&world, &directory, asked).await;
    assert_eq!(answers[0], "12 bytes, directory false, since 7001");
    assert!(answers[1].contains("directory true") && answers[2].contains("directory true"), "{answers:?}");
    assert_eq!(answers[3..], [r#""state of job""#, r#""jo""#, r#""""#, r#""lin""#, "2: deep/ state.json", "1: log"]);
}

/// So many milliseconds after the beginning of the calendar.
fn at(ms: u64) -> std::time::SystemTime {
    std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms)
}

#[tokio::test]
async fn what_is_asked_for_and_not_granted_keeps_it_from_loading() {
    let world = World::new();
    let mut spec = probing(json!({}));
    spec.grants.workspace = None;
    let Err(LoadError::NotGranted { lines, .. }) = world.host.load_strategy(spec).await else {
        panic!("it was loaded")
    };
    assert_eq!(lines, "grant.workspace = {}");
}

#[tokio::test]
async fn what_is_granted_and_not_asked_for_is_denied() {
    let world = World::new();
    let directory = directory(&world, "job");
    let mut spec = PluginSpec::new("bad", Kind::Strategy, guest("misbehave-strategy"));
    spec.grants.workspace = Some(WorkspaceGrant::default());
    let mut strategy = world.host.load_strategy(spec).await.unwrap();
    let told = decided(&mut strategy, &directory).await.join("\n");
    assert_eq!(told.matches("Denied(\"`workspace` is not granted\")").count(), 2, "{told}");
}

#[tokio::test]
async fn no_path_leads_out_of_the_directory() {
    let world = World::new();
    let directory = directory(&world, "job");
    symlink("../secret", directory.join("out")).unwrap();
    symlink(world.path("secret"), directory.join("absolute")).unwrap();
    symlink("..", directory.join("above")).unwrap();
    symlink("/proc/self/cwd", directory.join("magic")).unwrap();
    let paths = [
        "../secret",
        "deep/../../secret",
        "..",
        "/etc/passwd",
        "/",
        "out",
        "absolute",
        "above/secret",
        "magic/Cargo.toml",
        directory.to_str().unwrap(),
    ];
    let reads: Vec<Value> = paths.iter().map(|path| json!([path, 0, 100])).collect();
    let answers = tried(&world, &directory, json!({ "look": paths, "read": reads, "list": paths })).await;
    assert_eq!(answers.len(), 3 * paths.len());
    for (answer, path) in answers.iter().zip(paths.iter().cycle()) {
        assert!(answer.contains("leads out of the job's directory"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_link_within_the_directory_is_what_it_leads_to() {
    let world = World::new();
    let directory = directory(&world, "job");
    symlink("../state.json", directory.join("deep/up")).unwrap();
    symlink("deep", directory.join("short")).unwrap();
    symlink("../secret", directory.join("out")).unwrap();
    symlink("turn", directory.join("turn")).unwrap();
    let asked = json!({ "read": [["short/up", 0, 5], ["turn", 0, 5]], "list": [".", "short"] });
    let answers = tried(&world, &directory, asked).await;
    assert_eq!(answers[0], r#""state""#);
    assert!(answers[1].contains("Denied(") && answers[1].contains("too many links"), "{answers:?}");
    // What leads out or nowhere is told of as the link that it is.
    assert_eq!(answers[2..], ["5: deep/ out short/ state.json turn", "2: log up"]);
}

#[tokio::test]
async fn what_is_no_file_is_neither_opened_nor_waited_for() {
    let world = World::new();
    let directory = directory(&world, "job");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, directory.join("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
    let asked =
        json!({ "look": ["fifo"], "read": [["fifo", 0, 1], ["socket", 0, 1], ["deep", 0, 1]], "list": ["fifo"] });
    let answers = tried(&world, &directory, asked).await;
    assert!(answers[0].starts_with("0 bytes, directory false"), "{answers:?}");
    assert!(answers[1..4].iter().all(|answer| answer.contains("is no regular file")), "{answers:?}");
    assert_eq!(answers[4], "WorkspaceError::NotFound");
}

#[tokio::test]
async fn what_is_missing_is_not_found_and_a_bad_name_is_an_answer() {
    let world = World::new();
    let directory = directory(&world, "job");
    let asked = json!({
        "look": ["absent", "", "state.json/x", "deep/absent", "a\0b", "x".repeat(5000)],
        "read": [["absent", 0, 1]],
        "list": ["absent", "state.json"],
    });
    let answers = tried(&world, &directory, asked).await;
    let missing = "WorkspaceError::NotFound";
    assert_eq!(answers[..4], [missing; 4]);
    assert!(answers[4].contains("Failed(") && answers[5].contains("Failed("), "{answers:?}");
    assert_eq!(answers[6..], [missing; 3]);
    let gone = tried(&world, &world.path("gone"), json!({ "look": ["."] })).await;
    assert_eq!(gone, [missing]);
}

#[tokio::test]
async fn more_than_the_granted_size_is_refused_whatever_the_file_has() {
    let world = World::new();
    let directory = directory(&world, "job");
    let large = fs::File::create(directory.join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    let asked = json!({ "look": ["large"], "read": [["large", 0, 65_537], ["large", 1_u64 << 39, 1], ["state.json", 0, u32::MAX]] });
    let answers = tried(&world, &directory, asked.clone()).await;
    assert!(answers[0].starts_with("1099511627776 bytes"), "{answers:?}");
    assert_eq!(answers[1..], ["WorkspaceError::TooLarge", r#""\0""#, "WorkspaceError::TooLarge"]);
    let mut spec = probing(asked);
    spec.grants.workspace = Some(WorkspaceGrant { read_max: 65_537 });
    let mut strategy = world.host.load_strategy(spec).await.unwrap();
    assert_eq!(decided(&mut strategy, &directory).await[1].len(), 65_537 * 2 + 2);
}

#[tokio::test]
async fn a_listing_has_the_first_thousand_names_and_a_name_that_is_no_text_is_there() {
    let world = World::new();
    let directory = directory(&world, "job");
    let many = directory.join("many");
    fs::create_dir(&many).unwrap();
    for number in (0..5000).rev() {
        fs::write(many.join(format!("{number:04}")), "").unwrap();
    }
    fs::write(directory.join(std::ffi::OsStr::from_bytes(b"bad\xff")), "").unwrap();
    let answers = tried(&world, &directory, json!({ "list": ["many", "."], "look": ["bad\u{fffd}"] })).await;
    assert_eq!(answers[0], "WorkspaceError::NotFound");
    let names: Vec<&str> = answers[1].split(' ').collect();
    assert_eq!((names[0], names[1], names[1000], names.len()), ("1000:", "0000", "0999", 1001));
    assert_eq!(answers[2], "4: bad\u{fffd} deep/ many/ state.json");
}

#[tokio::test]
async fn an_instance_that_serves_two_jobs_sees_of_each_its_own() {
    let world = World::new();
    let (first, second) = (directory(&world, "first"), directory(&world, "second"));
    let asked = json!({ "read": [["state.json", 0, 100], ["../first/state.json", 0, 100]] });
    let mut strategy = world.host.load_strategy(probing(asked)).await.unwrap();
    // It was asked what it is, which is about no job.
    assert!(strategy.description().summary.contains("this call is about no job's directory"));
    for _ in 0..2 {
        assert_eq!(decided(&mut strategy, &first).await[0], r#""state of first""#);
        let told = decided(&mut strategy, &second).await;
        assert_eq!(told[0], r#""state of second""#);
        assert!(told[1].contains("leads out"), "{told:?}");
        let seen = strategy.observe(&output(), &first).await.unwrap().unwrap();
        assert_eq!(seen.notes[0].value, r#""state of first""#);
    }
    assert_eq!(strategy.costs().instances, 1);
}
