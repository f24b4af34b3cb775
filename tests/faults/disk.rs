//! Disks that are full, read-only or gone.

use std::fs;
use std::path::Path;

use latido_protocol::Class;
use latido_protocol::status::Verdict;

use crate::support::{Mount, World, wait_until};

/// Field case C235 (anomalyco/opencode#7607), of the state directory: nothing begins on a full disk, and no file of 0
/// bytes is left; with room again it works.
#[test]
fn c235_on_a_full_disk_nothing_begins_and_nothing_is_torn() {
    let outside = World::new();
    let Some(mount) = Mount::small(&outside, "4m") else { return };
    let world = World::with_state(&mount.path().join("state"));
    world.detach("before", &[], "exit 0");
    world.end("before", 1);
    mount.fill();
    let ran = world.latido(&["run", "--detach", "--name", "x", "--", "sh", "-c", "echo $$ >> runs"]).ends_with(125);
    assert!(ran.stderr.contains("No space left") && ran.stderr.contains("next:"), "{ran:?}");
    assert!(!world.state().job(&"x".parse().unwrap()).path().exists());
    let ran = world.latido(&["resume", "before"]).ends_with(125);
    assert!(ran.stderr.contains("No space left"), "{ran:?}");
    assert_eq!(world.attempts("before"), [1]);
    world.latido(&["status"]).ends_with(0);
    for entry in walkdir::WalkDir::new(world.state().path()) {
        let entry = entry.unwrap();
        let is_record = entry.path().extension().is_some_and(|extension| extension == "json");
        assert!(!is_record || entry.metadata().unwrap().len() > 0, "{} is empty", entry.path().display());
    }
    mount.free();
    world.detach("x", &[], "exit 0");
    world.end("x", 1);
    world.latido(&["resume", "before"]).ends_with(0);
    assert_eq!(world.read("runs"), "");
}

/// The job goes on while the disk is full, and its ending is recorded once there is room.
#[test]
fn an_ending_on_a_full_disk_is_recorded_when_there_is_room() {
    let outside = World::new();
    let Some(mount) = Mount::small(&outside, "4m") else { return };
    let world = World::with_state(&mount.path().join("state"));
    let home = world.home().display().to_string();
    world.detach(
        "a",
        &[],
        &format!("while ! test -e {home}/go; do sleep 0.05; done; echo out; touch {home}/over; exit 3"),
    );
    mount.fill();
    fs::write(world.home().join("go"), "").unwrap();
    wait_until("the job's end", || world.home().join("over").exists());
    mount.free();
    let end = world.end("a", 1);
    assert_eq!((end.outcome.class, end.outcome.code), (Class::Failed, Some(3)));
    wait_until("the ledger", || world.latido(&["ledger"]).stdout.lines().count() == 2);
}

/// Nothing can be recorded, and what fills the disk may be the job itself.
#[test]
fn a_stop_ends_its_job_although_the_disk_is_full() {
    let outside = World::new();
    let Some(mount) = Mount::small(&outside, "4m") else { return };
    let world = World::with_state(&mount.path().join("state"));
    world.detach("a", &[], "exec sleep 1000");
    let pid = world.start("a", 1).process.unwrap().pid;
    mount.fill();
    let ran = world.latido(&["stop", "a"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("  next:  "), "that it ended is not recorded yet: {ran:?}");
    wait_until("the job's end", || !Path::new(&format!("/proc/{pid}")).exists());
    mount.free();
    let end = world.end("a", 1);
    assert_eq!(end.outcome.class, Class::Stopped, "so that nobody resumes it");
}

#[test]
fn a_read_only_state_directory_is_read_and_refused() {
    let outside = World::new();
    let Some(mount) = Mount::small(&outside, "4m") else { return };
    let world = World::with_state(&mount.path().join("state"));
    world.detach("a", &[], "exit 3");
    world.end("a", 1);
    wait_until("the supervisor's end", || !world.state().job(&"a".parse().unwrap()).busy().exists());
    mount.remount(&outside, "ro");
    for words in
        [&["run", "--detach", "--name", "x", "--", "true"][..], &["resume", "a"], &["stop", "a"], &["remove", "a"]]
    {
        let ran = world.latido(words).ends_with(125);
        assert!(ran.stderr.contains("Read-only file system") && ran.stderr.contains("next:"), "{words:?}: {ran:?}");
    }
    assert_eq!(world.status("a").verdict, Verdict::Ended);
    world.latido(&["logs", "a"]).ends_with(0);
    mount.remount(&outside, "rw");
}

#[test]
fn a_state_directory_that_is_a_file_is_named() {
    let world = World::new();
    fs::write(world.state().path(), "").unwrap();
    let ran = world.latido(&["run", "--detach", "--", "true"]).ends_with(125);
    assert!(ran.stderr.contains(world.state().path().to_str().unwrap()), "{ran:?}");
    let ran = world.latido(&["status"]).ends_with(125);
    assert!(ran.stderr.contains(world.state().path().to_str().unwrap()), "{ran:?}");
}
