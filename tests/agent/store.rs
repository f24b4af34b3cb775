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

/// Holds the database's write lock, as a backup that hangs does.
fn locked(world: &World) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(world.state().database()).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    connection.execute_batch("begin immediate").unwrap();
    connection
}

fn register(world: &World, worker: &str) -> String {
    let words = ["worker", "register", worker, "--interval", "500ms", "--ttl", "2s"];
    world.latido(&words).ends_with(0).stdout.trim().to_owned()
}

// kubernetes/kubernetes#44887
#[test]
fn c058_while_the_store_blocks_no_second_holder_gets_a_claim_and_no_asker_waits_for_longer_than_it_said() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    let epoch = register(&world, "a");
    register(&world, "b");
    let beat = || world.latido(&["beat", "a", "--epoch", &epoch, "--answer"]);
    assert_eq!(beat().ends_with(0).stdout, "go-on\n");
    let claim = |worker: &str| world.latido(&["claim", "shop", "--event", "push", "--worker", worker]);
    let held = claim("a").ends_with(0).stdout;
    let lock = locked(&world);
    let refused = claim("b");
    assert_ne!(refused.code, Some(0), "{refused:?}");
    for _ in 0..3 {
        let answer = beat();
        assert!(matches!(answer.code, Some(0 | 3)), "go on, or nobody could say: {answer:?}");
    }
    lock.execute_batch("rollback").unwrap();
    wait_until("its answer", || beat().code == Some(0));
    assert_eq!(claim("a").ends_with(0).stdout, held, "the silence of the store took the claim from nobody");
    claim("b").ends_with(1);
    agent.end();
}

// rails/solid_queue; louislam/uptime-kuma#3130
#[test]
fn c061_c222_while_nothing_can_be_written_nothing_is_started_and_it_goes_on_by_itself() {
    let world = World::new();
    let agent = Agent::start(&world, "sink = []\n[alerts]\ngroup_for = \"300ms\"\nresolve_after = \"0s\"\n");
    world.detach("a", QUICK, "echo $LATIDO_ATTEMPT >> marks; exec sleep 1000");
    wait_until("attempt 1", || world.read("marks") == "1\n");
    let lock = locked(&world);
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    world.end("a", 1);
    wait_until("the alert in the log", || agent.said().contains("agent/store-away/agent"));
    assert_eq!(world.read("marks"), "1\n", "nothing is launched of which no record can be made");
    lock.execute_batch("rollback").unwrap();
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    wait_until("the end of the alert", || world.latido(&["alerts", "list"]).code == Some(0));
    agent.end();
}

/// While nothing can be written nobody is ended, and what happened meanwhile is recorded and acted on afterwards.
#[test]
fn no_verdict_is_lost_or_false_while_the_store_takes_nothing() {
    let outside = World::new();
    let Some(disk) = Mount::small(&outside, "8m") else { return };
    let world = World::with_state(&disk.path().join("state"));
    let agent = Agent::start(&world, BARE);
    let told = |words: &str| world.events().iter().any(|entry| serde_json::to_string(entry).unwrap().contains(words));
    world.detach("clock", &[], "while :; do echo x >> ticks; sleep 0.2; done");
    let lease = ["--ttl", "3s", "--interval", "1s", "--resume-on", "lost,stale", "--backoff", "0s..0s"];
    world.detach("well", &lease, "while :; do latido beat; sleep 0.3; done");
    let silent = "echo $LATIDO_ATTEMPT >> marks; while [ ! -e quiet ] || [ $LATIDO_ATTEMPT != 1 ]; do latido beat; sleep 0.3; done; exec sleep 1000";
    world.detach("silent", &lease, silent);
    world.detach("killed", QUICK, "exec sleep 1000");
    wait_until("beats", || ["well", "silent"].iter().all(|job| world.status(job).last_beat.is_some()));
    disk.fill();
    fs::write(world.home().join("quiet"), "").unwrap();
    world.kill(world.start("killed", 1).process.unwrap().pid, "KILL");
    let ticks = || world.read("ticks").lines().count();
    let begun = ticks();
    wait_until("twice the ttl", || ticks() >= begun + 30);
    assert_eq!(world.read("marks"), "1\n", "nobody is ended for silence meanwhile");
    assert!(agent.status().is_some(), "it answers");
    disk.free();
    wait_until("the silent one is resumed", || world.read("marks") == "1\n2\n");
    wait_until("the killed one is resumed", || world.attempts("killed") == [1, 2]);
    assert!(told("the store does not take what is recorded"), "it said so of itself");
    assert!(world.verdicts("silent").contains(&"stale".to_owned()), "the verdict was not lost");
    assert!(!world.verdicts("well").contains(&"stale".to_owned()), "nor was one false");
    assert_eq!(world.attempts("well"), [1]);
    assert_eq!(world.count("attempt-ended", "killed"), 1);
    agent.end();
}
