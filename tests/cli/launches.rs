//! Commands that cannot be started: said plainly, tried once, and nothing is left behind but the record.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use latido_protocol::OutcomeKind;

use crate::support::World;

/// Field case C182 (petruisfan/node-supervisor#104): not in PATH; the PATH is named, and nothing is tried again.
#[test]
fn c182_a_program_that_is_not_there_is_tried_once() {
    let world = World::new();
    let words = ["run", "--max-attempts", "3", "--backoff", "0s..1s", "--name", "a", "--", "no-such-binary", "x"];
    let ran = world.latido(&words).ends_with(125);
    assert!(ran.stderr.contains("no-such-binary") && ran.stderr.contains("/usr/bin"), "{ran:?}");
    assert!(ran.stderr.contains("cause:") && ran.stderr.contains("next:"), "{ran:?}");
    assert_eq!(world.attempts("a"), [1]);
    assert_eq!(world.end("a", 1).outcome.kind, OutcomeKind::LaunchFailed);
    world.latido(&["run", "--detach", "--name", "b", "--", "no-such-binary"]).ends_with(125);
}

/// Field case C185 (Supervisor/supervisor#1321): five ways not to be executable, five messages.
#[test]
fn c185_each_way_not_to_start_has_its_own_message() {
    let world = World::new();
    let write = |name: &str, bytes: &[u8], mode: u32| {
        let path = world.home().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("interpreter", b"#!/no/such/interpreter\n", 0o755);
    write("mode", b"#!/bin/sh\n", 0o644);
    write("crlf", b"#!/bin/sh\r\necho hi\r\n", 0o755);
    write("machine", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xf3\0\x01\0\0\0", 0o755);
    write("empty", b"", 0o755);
    let names = ["interpreter", "mode", "crlf", "machine", "empty"];
    let causes: Vec<String> = names
        .iter()
        .map(|name| {
            let program = format!("./{name}");
            let ran = world.latido(&["run", "--name", name, "--", &program]).ends_with(125);
            let cause = ran.stderr.lines().find(|line| line.contains("cause:")).unwrap_or_default();
            assert!(cause.contains(name), "{ran:?}");
            cause.replace(name, "")
        })
        .collect();
    for (index, cause) in causes.iter().enumerate() {
        assert!(!causes[..index].contains(cause), "{causes:#?}");
    }
    assert!(causes[0].contains("/no/such/"), "{causes:#?}");
}

/// Field case C188 (bobmatnyc/trusty-tools#5661): the working directory is gone; no other is taken in its place.
#[test]
fn c188_a_working_directory_that_is_gone_refuses_the_launch() {
    let world = World::new();
    let folder = world.home().join("work");
    fs::create_dir(&folder).unwrap();
    world.detach("a", &["--cwd", folder.to_str().unwrap()], "pwd >> ../ran; touch here");
    world.end("a", 1);
    fs::remove_dir_all(&folder).unwrap();
    let ran = world.latido(&["resume", "a"]).ends_with(4);
    assert!(ran.stderr.contains(folder.to_str().unwrap()), "{ran:?}");
    assert_eq!(world.read("ran").lines().count(), 1);
    assert_eq!(world.attempts("a"), [1], "no attempt is spent on it");
    let ran = world.latido(&["run", "--cwd", "work", "--", "true"]).ends_with(2);
    assert!(ran.stderr.contains("work"), "{ran:?}");
}

#[test]
fn a_name_in_use_is_refused_and_freed_by_remove() {
    let world = World::new();
    world.detach("a", &[], "sleep 100");
    let before = fs::read(world.state().job(&"a".parse().unwrap()).job()).unwrap();
    let ran = world.latido(&["run", "--detach", "--name", "a", "--", "true"]).ends_with(4);
    assert!(ran.stderr.contains("latido remove a") && ran.stderr.contains("attempt 1"), "{ran:?}");
    assert_eq!(fs::read(world.state().job(&"a".parse().unwrap()).job()).unwrap(), before);
    world.latido(&["remove", "a"]).ends_with(4);
    world.latido(&["stop", "a"]).ends_with(0);
    world.latido(&["remove", "a"]).ends_with(0);
    world.detach("a", &[], "exit 0");
    // An epoch is never given twice under one name.
    assert_eq!((world.end("a", 1).attempt, world.end("a", 1).epoch), (1, 2));
}

#[test]
fn wrong_use_ends_with_2_and_says_what_was_meant() {
    let world = World::new();
    for words in [
        &["run", "--nmae", "a", "--", "true"][..],
        &["run", "--policy", "defualt", "--", "true"],
        &["run", "--name", "../x", "--", "true"],
        &["run", "--ttl", "30", "--", "true"],
        &["run", "--max-attempts", "0", "--", "true"],
        &["status", "nobody"],
        &["stop", "nobody"],
        &["resume", "nobody"],
        &["pause", "nobody"],
        &["unpause", "nobody"],
        &["remove", "nobody"],
        &["logs", "nobody"],
        &["wait", "nobody"],
        &["why", "nobody"],
        &["beat", "nobody"],
        &["beat"],
        &["fence"],
    ] {
        let ran = world.latido(words).ends_with(2);
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{words:?}: {ran:?}");
    }
    assert!(!world.state().jobs().join("..").join("x").exists());
    world.detach("catalogue", &[], "exit 0");
    let ran = world.latido(&["status", "catalog"]).ends_with(2);
    assert!(ran.stderr.contains("`catalogue`"), "{ran:?}");
}

#[test]
fn without_its_supervisor_nothing_is_made() {
    let world = World::new();
    let ran = world
        .latido_command(&["run", "--detach", "--name", "a", "--", "true"])
        .env("LATIDO_SUPERVISOR", "/no/such/supervisor")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("/no/such/supervisor"));
    assert!(!world.state().job(&"a".parse().unwrap()).path().exists());
}

/// A supervisor that dies before it can say a word leaves an attempt with an ending, and the next launch is free.
#[test]
fn a_supervisor_that_fails_leaves_an_ending_and_a_free_job() {
    let world = World::new();
    let ran = world
        .latido_command(&["run", "--detach", "--name", "a", "--", "true"])
        .env("LATIDO_SUPERVISOR", "/bin/false")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(125), "{ran:?}");
    assert_eq!(world.end("a", 1).outcome.kind, OutcomeKind::LaunchFailed);
    world.latido(&["resume", "a"]).ends_with(0);
    assert_eq!(world.end("a", 2).epoch, 2);
}
