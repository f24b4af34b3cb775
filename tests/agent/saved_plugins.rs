//! A plugin's component that is saved while the agent runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use latido_protocol::status::PluginStatus;

use super::QUICK;
use super::saved::{as_kubernetes, as_vim, in_halves, noted, rename_over, wait_until};
use crate::support::{Agent, World};

/// The sink `jsonl`, other bytes for each number: a section that nobody reads follows it.
fn component(number: u8) -> Vec<u8> {
    let mut bytes = fs::read(format!("{}/target/components/jsonl.wasm", env!("CARGO_MANIFEST_DIR"))).unwrap();
    bytes.extend([0, 3, 1, b'n', number]);
    bytes
}

fn config(component: &Path) -> String {
    let grant = "grant.files.main = \"lines.jsonl\"";
    format!("rule = []\n[[sink]]\nname = \"lines\"\nsource = \"{}\"\n{grant}\n", component.display())
}

fn lines(agent: &Agent<'_>) -> PluginStatus {
    agent
        .status()
        .and_then(|status| status.plugins.into_iter().find(|plugin| plugin.name == "lines"))
        .unwrap_or_default()
}

fn is_loaded_again(world: &World, count: usize) {
    wait_until(&format!("load {count}"), || noted(world, "plugin-reloaded") == count);
}

/// An agent whose sink is loaded from a file of the test's own.
fn start(world: &World) -> (Agent<'_>, PathBuf) {
    let file = world.home().join("lines.wasm");
    fs::write(&file, component(0)).unwrap();
    let agent = Agent::start(world, &config(&file));
    wait_until("it works", || lines(&agent).state == "active");
    (agent, file)
}

#[test]
fn a_saved_component_is_loaded_again_however_it_was_saved() {
    let world = World::new();
    let (agent, file) = start(&world);
    world.detach("a", QUICK, "exec sleep 1000");
    in_halves(&file, &component(1));
    wait_until("a load", || noted(&world, "plugin-reloaded") >= 1 && lines(&agent).reload_refused.is_none());
    let loads = noted(&world, "plugin-reloaded");
    rename_over(&file, component(2));
    is_loaded_again(&world, loads + 1);
    as_vim(&file, component(3));
    is_loaded_again(&world, loads + 2);
    fs::remove_file(&file).unwrap();
    wait_until("its word", || agent.said().contains("its file is gone; what was loaded goes on"));
    assert_eq!(lines(&agent).state, "active");
    fs::write(&file, component(4)).unwrap();
    is_loaded_again(&world, loads + 3);
    assert_eq!((lines(&agent).state.as_str(), world.attempts("a")), ("active", vec![1]));
    agent.end();
}

#[test]
fn a_component_in_a_volume_is_loaded_again_when_the_volume_is_swapped() {
    let world = World::new();
    let volume = world.home().join("volume");
    as_kubernetes(&volume, 1, "lines.wasm", component(1));
    symlink("..data/lines.wasm", volume.join("lines.wasm")).unwrap();
    let agent = Agent::start(&world, &config(&volume.join("lines.wasm")));
    wait_until("it works", || lines(&agent).state == "active");
    for number in 2..=3 {
        as_kubernetes(&volume, number.into(), "lines.wasm", component(number));
        is_loaded_again(&world, usize::from(number) - 1);
    }
    agent.end();
}

/// Field case C263 (kitakkun/JetWhale PR #175): a plugin that was put back had no instance until a restart.
#[test]
fn c263_a_component_that_comes_late_is_loaded_when_it_comes() {
    let world = World::new();
    let file = world.home().join("later/lines.wasm");
    let agent = Agent::start(&world, &config(&file));
    wait_until("its word", || lines(&agent).state == "refused");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, component(1)).unwrap();
    is_loaded_again(&world, 1);
    assert_eq!(lines(&agent).state, "active");
    agent.end();
}

#[test]
fn a_broken_component_is_refused_once_and_the_old_one_goes_on() {
    let world = World::new();
    let (agent, file) = start(&world);
    rename_over(&file, "no component");
    wait_until("its refusal", || lines(&agent).reload_refused.is_some());
    let listed = world.latido(&["plugin", "list"]).ends_with(0);
    assert!(listed.stdout.contains("found a text") && listed.stdout.contains("goes on"), "{listed:?}");
    assert_eq!(noted(&world, "plugin-reload-refused"), 1);
    world.detach("a", QUICK, "exec sleep 1000");
    let delivered = || world.jsonl("lines.jsonl").iter().any(|line| line["subject"] == "a");
    wait_until("the old one still stores entries", delivered);
    rename_over(&file, component(1));
    is_loaded_again(&world, 1);
    assert_eq!((lines(&agent).state.as_str(), lines(&agent).reload_refused), ("active", None));
    agent.end();
}

#[test]
fn a_save_of_the_same_bytes_does_nothing() {
    let world = World::new();
    let (agent, file) = start(&world);
    rename_over(&file, component(0));
    as_vim(&file, component(0));
    // What follows is seen after it, by the same look or a later one.
    rename_over(&world.home().join("latido.toml"), format!("{}[check.c]\nevery = \"1h\"\n", config(&file)));
    wait_until("the config", || world.latido(&["status", "c"]).code != Some(2));
    assert_eq!(noted(&world, "plugin-reloaded"), 0);
    agent.end();
}

#[test]
fn a_storm_of_saved_components_settles_with_the_last() {
    let world = World::new();
    let (agent, file) = start(&world);
    for number in 0..1000 {
        rename_over(&file, format!("no component {number}"));
    }
    rename_over(&file, component(1));
    wait_until("the last", || noted(&world, "plugin-reloaded") == 1);
    assert_eq!((lines(&agent).state.as_str(), lines(&agent).reload_refused), ("active", None));
    assert!(noted(&world, "plugin-reload-refused") < 10);
    agent.end();
}
