//! Plugins that break: the agent lives, jobs are judged, and somebody is told.

use std::fs;

use latido_protocol::status::{Phase, PluginStatus};

use super::QUICK;
use crate::support::{Agent, World, wait_until};

/// Where `cargo xtask guests` puts the guests that misbehave.
pub(super) fn guest(name: &str) -> String {
    let path = format!("{}/target/components/guests/{name}.wasm", env!("CARGO_MANIFEST_DIR"));
    assert!(fs::metadata(&path).is_ok(), "{path} has not been built; run `cargo xtask guests`");
    path
}

fn is_active(plugin: &PluginStatus) -> bool {
    plugin.name == "liveness" && plugin.state == "active"
}

#[test]
fn liveness_finds_a_stale_job_and_the_alert_ends_with_it() {
    let world = World::new();
    let agent = Agent::start(&world, "sink = []\nalerts = { resolve_after = \"0s\" }\n");
    // Until it is loaded the agent itself tells of the least.
    wait_until("the rule", || agent.status().is_some_and(|agent| agent.plugins.iter().any(is_active)));
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

#[test]
fn a_strategy_sees_the_directory_of_the_job_that_it_is_asked_about() {
    let world = World::new();
    let config = format!(
        "sink = []\nrule = []\n[[strategy]]\nname = \"script\"\nsource = \"{}\"\ngrant.workspace = {{}}\n\
         settings = {{ read = [[\"marks\", 0, 100]] }}\n",
        guest("probe-strategy")
    );
    let agent = Agent::start(&world, &config);
    world.detach("a", QUICK, "echo half > marks; exec sleep 1000");
    wait_until("the marks", || world.read("marks") == "half\n");
    world.kill(world.start("a", 1).process.unwrap().pid, "KILL");
    wait_until("held", || world.status("a").phase == Phase::Held);
    let why = world.latido(&["why", "a"]);
    assert!(why.stdout.contains(r#"strategy script: "half"#), "{why:?}");
    agent.end();
}

/// A sink that traps at every entry, from a file of the test's own.
fn trapping(world: &World) -> (std::path::PathBuf, String) {
    let file = world.home().join("plugin.wasm");
    fs::copy(guest("misbehave"), &file).unwrap();
    let settings = "settings = { where = \"write\", what = \"trap\" }";
    let config = format!("rule = []\n[[sink]]\nname = \"bad\"\nsource = \"{}\"\n{settings}\n", file.display());
    (file, config)
}

#[test]
fn plugin_list_tells_state_faults_queue_and_cost() {
    let world = World::new();
    let (_, config) = trapping(&world);
    let agent = Agent::start(&world, &config);
    let listed = || -> serde_json::Value {
        let ran = world.latido(&["plugin", "list", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        document["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "bad").cloned().unwrap()
    };
    wait_until("faults", || listed()["faults_by_kind"]["trap"].as_u64().is_some_and(|count| count >= 2));
    let bad = listed();
    assert_ne!(bad["state"], "active");
    assert!(bad["queue"].as_u64().unwrap() > 0, "{bad}");
    assert!(bad["instances"].as_u64().unwrap() > 1 && bad["calls"].as_u64().unwrap() >= 2, "{bad}");
    let ran = world.latido(&["plugin", "list"]).ends_with(1);
    assert!(
        ran.stdout.contains("NAME") && ran.stdout.contains("trap ") && ran.stdout.contains("as the settings ask"),
        "{ran:?}"
    );
    agent.end();
    world.latido(&["plugin", "list"]).ends_with(3);
}

#[test]
fn a_plugin_of_the_version_before_works_and_the_list_shows_the_version_of_each() {
    let world = World::new();
    let config = format!(
        "rule = []\n[[sink]]\nname = \"old\"\nsource = \"{}\"\ngrant.sql.main = \"old.db\"\ngrant.files.main = \"old.txt\"\n",
        guest("old-sink")
    );
    let agent = Agent::start(&world, &config);
    world.detach("a", QUICK, "exec sleep 1000");
    wait_until("an entry", || {
        let kept = fs::read_to_string(world.state().path().join("old.txt")).unwrap_or_default();
        kept.lines().count() > 1
    });
    let versions = || -> Vec<(String, String)> {
        let ran = world.latido(&["plugin", "list", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let text = |plugin: &serde_json::Value, key: &str| plugin[key].as_str().unwrap().to_owned();
        let plugins = document["plugins"].as_array().unwrap().iter();
        plugins.map(|plugin| (text(plugin, "name"), text(plugin, "interface"))).collect()
    };
    let expected = [("old", "0.1.0"), ("script", "0.2.0")].map(|(name, version)| (name.to_owned(), version.to_owned()));
    wait_until("both versions", || versions() == expected);
    let table = world.latido(&["plugin", "list"]).ends_with(0).stdout;
    assert!(table.contains("INTERFACE") && table.contains("0.1.0"), "{table}");
    agent.end();
}

/// Field case C262 (anomalyco/opencode#35963): reload tore down what worked before it knew that the new one was valid.
#[test]
fn c262_a_reload_that_fails_leaves_the_old_one_and_one_that_works_begins_anew() {
    let world = World::new();
    let (file, _) = trapping(&world);
    fs::copy(format!("{}/target/components/jsonl.wasm", env!("CARGO_MANIFEST_DIR")), &file).unwrap();
    let config = format!(
        "rule = []\n[[sink]]\nname = \"lines\"\nsource = \"{}\"\ngrant.files.main = \"lines.jsonl\"\n",
        file.display()
    );
    let agent = Agent::start(&world, &config);
    let state = || agent.status().unwrap().plugins.iter().find(|plugin| plugin.name == "lines").unwrap().state.clone();
    wait_until("it works", || state() == "active");
    fs::write(&file, "no component").unwrap();
    let refused = world.latido(&["plugin", "reload", "lines"]).ends_with(4);
    assert!(refused.stderr.contains("found a text") && refused.stderr.contains("goes on"), "{refused:?}");
    world.detach("a", QUICK, "exec sleep 1000");
    let delivered = || {
        let started = |line: &serde_json::Value| line["type"] == "attempt-started" && line["subject"] == "a";
        world.jsonl("lines.jsonl").iter().any(started)
    };
    wait_until("the old one still stores entries", delivered);
    fs::copy(format!("{}/target/components/jsonl.wasm", env!("CARGO_MANIFEST_DIR")), &file).unwrap();
    world.latido(&["plugin", "reload", "lines"]).ends_with(0);
    assert_eq!(state(), "active");
    let unknown = world.latido(&["plugin", "reload", "nobody"]).ends_with(4);
    assert!(unknown.stderr.contains("there are lines"), "{unknown:?}");
    agent.end();
}

#[test]
fn a_quarantined_sink_begins_anew_by_a_reload() {
    let world = World::new();
    let (_, config) = trapping(&world);
    // Wrong settings stop the delivery until somebody acts.
    let agent = Agent::start(&world, &config.replace("\"trap\"", "\"refuse-settings\""));
    let plugin = || agent.status().unwrap().plugins.into_iter().find(|plugin| plugin.name == "bad").unwrap();
    wait_until("quarantined", || plugin().state == "quarantined");
    assert!(plugin().detail.unwrap().contains("`latido plugin reload bad` begins anew"));
    let calls = plugin().calls;
    world.latido(&["plugin", "reload", "bad"]).ends_with(0);
    // It is called again, with what it has not taken, and refuses it again.
    wait_until("quarantined again", || plugin().state == "quarantined" && plugin().calls >= 2);
    assert!(calls >= 2 && plugin().queue.unwrap() > 0);
    agent.end();
}
