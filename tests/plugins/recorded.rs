//! `latido plugin record` and `replay`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::{component, write};
use crate::support::{Agent, World, wait_until};

/// Long enough for a rule that is asked about everything when it is loaded, and for what a test does meanwhile.
const FOR: &str = "3s";

fn is_active(agent: &Agent<'_>, name: &str) -> bool {
    let plugins = agent.status().map(|status| status.plugins).unwrap_or_default();
    plugins.iter().any(|plugin| plugin.name == name && plugin.state == "active")
}

#[test]
fn a_rule_of_a_running_agent_becomes_a_case_that_replays_and_another_component_differs() {
    let world = World::new();
    let agent = Agent::start(&world, "sink = []\nstrategy = []\n");
    wait_until("it works", || is_active(&agent, "liveness"));
    world.detach("night", &[], "exec sleep 1000");
    let ran = world.latido(&["plugin", "record", "liveness", "--for", FOR, "-o", "field.toml"]).ends_with(0);
    assert!(ran.stdout.starts_with("field.toml: ") && ran.stdout.contains("answers in field.golden.json"), "{ran:?}");
    let case = fs::read_to_string(world.home().join("field.toml")).unwrap();
    assert!(case.starts_with("# recorded by `latido plugin record` of liveness rule\n"), "{case}");
    assert!(case.contains("name = \"night\""), "{case}");
    let mode = fs::metadata(world.home().join("field.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    wait_until("it works on", || is_active(&agent, "liveness"));
    agent.end();

    let ran = world.latido(&["plugin", "replay", "field.toml"]).ends_with(0);
    assert!(ran.stdout.contains("`liveness` answers") && ran.stdout.contains("as it was recorded"), "{ran:?}");
    let golden = fs::read_to_string(world.home().join("field.golden.json")).unwrap();
    write(&world, "field.golden.json", golden.replacen("\"logs\": []", "\"logs\": [\"else\"]", 1));
    let ran = world.latido(&["plugin", "replay", "field.toml", "--json"]).ends_with(1);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(document["differences"][0].as_str().unwrap().contains("else"), "{document}");
    component(&world, "threshold");
    world.latido(&["plugin", "replay", "field.toml", "--plugin", "threshold.wasm"]).ends_with(1);
    let sqlite = component(&world, "sqlite");
    let ran = world.latido(&["plugin", "replay", "field.toml", "--plugin", sqlite.to_str().unwrap()]).ends_with(2);
    assert!(ran.stderr.contains("a sink has no") || ran.stderr.contains("a rule has"), "{}", ran.stderr);
}

/// A sink's database is another one when it is replayed: what it was answered comes from the record.
#[test]
fn a_sink_is_answered_as_it_was_answered_and_its_secrets_are_left_out() {
    let world = World::new();
    let agent = Agent::start(
        &world,
        "rule = []\nstrategy = []\n[[sink]]\nname = \"history\"\nsource = \"builtin:sqlite\"\ngrant.sql.main = \"history.db\"\n",
    );
    wait_until("it works", || is_active(&agent, "history"));
    let recording = world.spawn(&["plugin", "record", "history", "--for", FOR, "-o", "sink.toml"]);
    world.detach("night", &[], "echo API_TOKEN=hidden-word; exec sleep 1000");
    world.finish(recording).ends_with(0);
    agent.end();
    let golden = fs::read_to_string(world.home().join("sink.golden.json")).unwrap();
    assert!(golden.contains("\"sql."), "{golden}");
    let case = fs::read_to_string(world.home().join("sink.toml")).unwrap();
    assert!(!case.contains("hidden-word") && !golden.contains("hidden-word"), "{case}\n{golden}");
    write(
        &world,
        "latido.toml",
        "rule = []\nstrategy = []\n[[sink]]\nname = \"history\"\nsource = \"builtin:sqlite\"\ngrant.sql.main = \"history.db\"\n",
    );
    world.latido(&["plugin", "replay", "sink.toml", "--config", "latido.toml"]).ends_with(0);
}

#[test]
fn what_cannot_be_recorded_is_refused_in_words() {
    let world = World::new();
    let ran = world.latido(&["plugin", "record", "liveness", "-o", "field.toml"]).ends_with(3);
    assert!(ran.stderr.contains("start the agent"), "{}", ran.stderr);
    let agent = Agent::start(&world, "");
    let ran = world.latido(&["plugin", "record", "lifeness", "-o", "field.toml"]).ends_with(4);
    assert!(ran.stderr.contains("there is no such plugin; there are entries, history, liveness"), "{}", ran.stderr);
    for length in ["0s", "11m"] {
        let ran = world.latido(&["plugin", "record", "liveness", "--for", length, "-o", "field.toml"]).ends_with(4);
        assert!(ran.stderr.contains("at most 600s"), "{}", ran.stderr);
    }
    let ran = world.latido(&["plugin", "record", "liveness", "-o", "field.json"]).ends_with(2);
    assert!(ran.stderr.contains("ends in .toml"), "{}", ran.stderr);
    let ran = world.latido(&["plugin", "record", "script", "--for", "1s", "-o", "field.toml"]).ends_with(1);
    assert!(ran.stderr.contains("it was not called within 1s"), "{}", ran.stderr);
    agent.end();
    write(&world, "field.toml", "[[call]]\nevaluate = { subjects = [] }\n");
    let ran = world.latido(&["plugin", "replay", "field.toml"]).ends_with(2);
    assert!(ran.stderr.contains("name a component with --plugin"), "{}", ran.stderr);
    component(&world, "liveness");
    let ran = world.latido(&["plugin", "replay", "field.toml", "--plugin", "liveness.wasm"]).ends_with(2);
    assert!(ran.stderr.contains("field.golden.json"), "{}", ran.stderr);
}
