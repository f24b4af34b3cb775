//! Whoever watches is watched: an agent that died, stands still or lost its records says so, or is missed.

use std::fs;

use latido_protocol::alerts::AlertsDocument;

use super::BARE;
use crate::support::{Agent, World, wait_until};

/// No sinks, and nobody waits longer than a test has to.
const PROMPT: &str = "sink = []\n[alerts]\ngroup_for = \"300ms\"\nresolve_after = \"0s\"\n";

// nj4x/skills-dev#49
#[test]
fn c119_an_agent_that_was_killed_or_stopped_is_missed_by_status() {
    let world = World::new();
    let agent = Agent::start(&world, BARE);
    world.detach("a", &[], "exec sleep 1000");
    world.latido(&["status"]).ends_with(0);
    agent.signal("STOP");
    let stopped = world.latido(&["status"]).ends_with(3);
    assert!(stopped.stderr.contains("it last looked around at 2"), "{stopped:?}");
    assert!(stopped.stdout.contains("alive"), "the files are shown all the same: {stopped:?}");
    agent.signal("CONT");
    wait_until("its answer", || world.latido(&["status"]).code == Some(0));
    agent.kill();
    let dead = world.latido(&["status"]).ends_with(3);
    assert!(dead.stderr.contains("did not end by order") && dead.stderr.contains("next:"), "{dead:?}");
}

// neomjs/neo#17646 (comment)
#[test]
fn c123_an_agent_that_is_off_dead_or_cannot_be_seen_are_three_answers() {
    let world = World::new();
    world.detach("a", &[], "exec sleep 1000");
    let off = world.latido(&["status", "--json"]).ends_with(0);
    assert!(off.stdout.contains("\"agent\": null") && off.stderr.is_empty(), "{off:?}");
    let agent = Agent::start(&world, BARE);
    agent.end();
    world.latido(&["status"]).ends_with(0);
    Agent::start(&world, BARE).kill();
    let dead = world.latido(&["status", "--json"]).ends_with(3);
    assert!(dead.stdout.contains("\"agent\": null"), "{dead:?}");
    let folder = world.home().join("file");
    fs::write(&folder, "").unwrap();
    let unseen = World::with_state(&folder);
    unseen.latido(&["status"]).ends_with(125);
}

// k0rdent/kof#959
#[test]
fn c122_a_database_that_is_removed_under_the_agent_is_told_of_although_no_sink_works() {
    let world = World::new();
    let agent = Agent::start(&world, PROMPT);
    fs::remove_file(world.state().database()).unwrap();
    let listed = || -> Vec<String> {
        let document: AlertsDocument =
            serde_json::from_str(&world.latido(&["alerts", "list", "--json"]).stdout).unwrap();
        document.alerts.into_iter().map(|alert| alert.fingerprint).collect()
    };
    wait_until("the alert", || listed() == ["agent/store-gone/latido.db"]);
    wait_until("its telling", || world.latido(&["alerts", "list"]).code == Some(1));
    wait_until("the log's line", || agent.said().contains("was removed or replaced"));
    world.latido(&["alerts", "test"]).ends_with(0);
    agent.end();
    let _agent = Agent::start(&world, PROMPT);
    wait_until("its end", || listed().is_empty());
}
