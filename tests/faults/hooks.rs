//! The command after an ending, whoever records that ending and whoever is about meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use latido_protocol::disk;
use latido_protocol::files::OnEndRecord;

use crate::agent::BARE;
use crate::support::{Agent, World, wait_until};

/// A program that notes each ending it is run for, and then goes on with this script.
fn hook(world: &World, script: &str) -> String {
    let path = world.home().join("hook");
    let home = world.home().display();
    let note = "echo \"$LATIDO_ATTEMPT $LATIDO_OUTCOME $LATIDO_CLASS\"";
    fs::write(&path, format!("#!/bin/sh\n{note} >> {home}/endings\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn record(world: &World, number: u32) -> Option<OnEndRecord> {
    disk::read(&world.attempt("a", number).on_end()).unwrap()
}

#[test]
fn a_command_after_an_ending_is_no_orphan_while_its_supervisor_lives() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let hook = hook(&world, &format!("while [ ! -e {}/go ]; do sleep 0.02; done", world.home().display()));
    let options = ["--on-end", &hook, "--resume-on", "failed", "--backoff", "0s..0s", "--max-attempts", "2"];
    world.detach("a", &options, "exit 3");
    wait_until("the command", || world.read("endings").contains("1 exited failed"));
    let orphans = world.latido(&["orphans", "--kill"]);
    assert!(orphans.stdout.is_empty() && orphans.code == Some(0), "{orphans:?}");
    let resumed = world.latido(&["resume", "a"]);
    assert!(matches!(resumed.code, Some(0 | 4)), "{resumed:?}");
    assert_eq!(world.attempts("a"), [1], "nothing begins beside it");
    fs::write(world.home().join("go"), "").unwrap();
    wait_until("the second attempt's ending", || world.read("endings").contains("2 exited failed"));
    wait_until("its record", || record(&world, 1).is_some_and(|record| record.ended_at.is_some()));
    assert_eq!(record(&world, 1).unwrap().code, Some(0), "{:?}", record(&world, 1));
    agent.end();
}

#[test]
fn a_failed_launch_is_an_ending_too_and_its_command_runs_once() {
    let world = World::new();
    let hook = hook(&world, "exit 7");
    let ran = world.latido(&["run", "--detach", "--name", "a", "--on-end", &hook, "--", "/nowhere/at-all"]);
    assert_ne!(ran.code, Some(0));
    assert_eq!(world.read("endings"), "1 launch-failed failed\n");
    assert_eq!(record(&world, 1).unwrap().code, Some(7));
    let agent = Agent::start(&world, BARE);
    world.latido(&["status"]);
    agent.end();
    assert_eq!(world.read("endings").lines().count(), 1);
}

#[test]
fn an_ending_that_no_supervisor_recorded_has_its_command_run_once_by_whoever_records_it() {
    for with_agent in [true, false] {
        let world = World::new();
        let hook = hook(&world, "exit 0");
        let options = ["--on-end", &hook, "--backoff", "0s..0s", "--max-attempts", "2"];
        world.detach("a", &options, "exec sleep 1000");
        let agent = with_agent.then(|| Agent::start(&world, BARE));
        let start = world.start("a", 1);
        for process in [start.supervisor, start.process] {
            world.kill(process.unwrap().pid, "KILL");
        }
        if agent.is_none() {
            wait_until("the death", || world.latido(&["resume", "a"]).code == Some(0));
        }
        wait_until("the next attempt", || world.attempts("a") == [1, 2] && world.start("a", 2).process.is_some());
        assert_eq!(world.read("endings"), "1 lost lost\n");
        assert_eq!(record(&world, 1).unwrap().code, Some(0));
        world.latido(&["stop", "a", "--force"]);
        wait_until("the second ending", || world.read("endings").lines().count() == 2);
        drop(agent);
        assert_eq!(world.read("endings").lines().filter(|line| line.starts_with("1 ")).count(), 1);
    }
}
