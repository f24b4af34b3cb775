//! The agent's database: rubbish, from a newer version, and on a disk without room.

use std::fs;

use super::{BARE, QUICK};
use crate::support::{Agent, Mount, World, wait_until};

#[test]
fn a_rubbish_database_is_set_aside_and_jobs_are_judged_from_their_files() {
    let world = World::new();
    world.detach("a", QUICK, "echo $LATIDO_ATTEMPT >> marks; exec sleep 1000");
    fs::write(world.state().database(), "this is no database, and somebody may want it back").unwrap();
    let agent = Agent::start(&world, BARE);
    assert_eq!(world.status("a").attempt, 1);
    let kept = fs::read_dir(world.state().path()).unwrap().filter_map(Result::ok).any(|entry| {
        entry.path() != world.state().database()
            && fs::read_to_string(entry.path()).is_ok_and(|text| text.starts_with("this is no database"))
    });
    assert!(kept, "the rubbish was deleted");
    assert!(world.events().iter().any(|entry| serde_json::to_string(entry).unwrap().contains("store-set-aside")));
    agent.end();
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_not_touched() {
    let world = World::new();
    Agent::start(&world, BARE).end();
    let newer = rusqlite::Connection::open(world.state().database()).unwrap();
    newer.pragma_update(None, "user_version", 999).unwrap();
    newer.close().unwrap();
    let ran = world.latido(&["agent"]).ends_with(4);
    assert!(ran.stderr.contains("version 999") && ran.stderr.contains("  next:  "), "{ran:?}");
    let version: u32 = rusqlite::Connection::open(world.state().database())
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    assert_eq!(version, 999);
}

/// Field case C234: the disk is full for a while; nothing acknowledged is lost, and work goes on by itself.
#[test]
fn c234_a_full_disk_stops_nothing_for_ever() {
    let outside = World::new();
    let Some(disk) = Mount::small(&outside, "8m") else { return };
    let world = World::with_state(&disk.path().join("state"));
    let agent = Agent::start(&world, BARE);
    world.detach("a", QUICK, "echo $LATIDO_ATTEMPT >> marks; exec sleep 1000");
    wait_until("attempt 1", || world.read("marks") == "1\n");
    let before = world.events().len();
    disk.fill();
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    // The agent still answers while nothing can be written.
    assert!(agent.status().is_some());
    disk.free();
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    assert!(world.events().len() > before, "what was acknowledged is still there");
    agent.end();
}
