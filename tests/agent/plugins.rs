//! Plugins that break: the agent lives, jobs are judged, and somebody is told.

use std::fs;

use latido_protocol::status::Phase;

use super::QUICK;
use crate::support::{Agent, World, wait_until};

/// Where `cargo xtask guests` puts the guests that misbehave.
pub(super) fn guest(name: &str) -> String {
    let path = format!("{}/target/components/guests/{name}.wasm", env!("CARGO_MANIFEST_DIR"));
    assert!(fs::metadata(&path).is_ok(), "{path} has not been built; run `cargo xtask guests`");
    path
}

#[test]
fn liveness_finds_a_stale_job_and_the_alert_ends_with_it() {
    let world = World::new();
    let _agent = Agent::start(&world, "sink = []\nalerts = { resolve_after = \"0s\" }\n");
    world.detach("a", &["--ttl", "1s", "--interval", "300ms"], "latido beat; exec sleep 1000");
    let alerts = || -> Vec<String> {
        let of = |entry: &latido_protocol::journal::Entry| serde_json::to_value(entry).unwrap();
        let alerts = world.events().iter().map(of).filter(|entry| entry["type"] == "alert").collect::<Vec<_>>();
        alerts
            .iter()
            .map(|alert| format!("{} {}", alert["rule"].as_str().unwrap(), alert["state"].as_str().unwrap()))
            .collect()
    };
    wait_until("the alert", || alerts() == ["liveness firing"]);
    world.latido(&["stop", "a"]).ends_with(0);
    wait_until("its end", || alerts() == ["liveness firing", "liveness resolved"]);
}

#[test]
fn a_sink_that_traps_holds_up_nobody_and_is_told_of() {
    let world = World::new();
    let config = format!(
        "rule = []\n[[sink]]\nname = \"bad\"\nsource = \"{}\"\nsettings = {{ where = \"write\", what = \"trap\" }}\n",
        guest("misbehave")
    );
    let agent = Agent::start(&world, &config);
    world.detach("a", QUICK, "echo $LATIDO_ATTEMPT >> marks; exec sleep 1000");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("attempt 2", || world.read("marks") == "1\n2\n");
    wait_until("the fault", || {
        agent.status().unwrap().plugins.iter().any(|plugin| plugin.name == "bad" && plugin.faults > 0)
    });
    wait_until("the alert", || {
        world.events().iter().any(|entry| entry.body.kind() == "alert" && entry.body.subject() == Some("bad"))
    });
    agent.end();
}

#[test]
fn a_strategy_that_cannot_be_loaded_holds_its_jobs() {
    let world = World::new();
    let rubbish = world.home().join("rubbish.wasm");
    fs::write(&rubbish, "no component").unwrap();
    let config = format!("sink = []\nrule = []\n[[strategy]]\nname = \"script\"\nsource = \"{}\"\n", rubbish.display());
    let agent = Agent::start(&world, &config);
    world.detach("a", QUICK, "exec sleep 1000");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("held", || world.status("a").phase == Phase::Held);
    assert_eq!(world.attempts("a"), [1]);
    let why = world.latido(&["why", "a"]);
    assert!(why.stdout.contains("latido resume a"), "{why:?}");
    agent.end();
}
