//! `latido plugin install`, and what the config demands of a plugin.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use latido_protocol::status::PluginStatus;

use super::{component, write};
use crate::support::{Agent, World, wait_until};

fn installed(world: &World, name: &str) -> PathBuf {
    world.state().installed_plugins().join(format!("{name}.wasm"))
}

fn compiled(world: &World) -> usize {
    fs::read_dir(world.state().plugins().join("compiled")).map_or(0, Iterator::count)
}

fn plugin(agent: &Agent<'_>, name: &str) -> PluginStatus {
    let plugins = agent.status().map(|status| status.plugins).unwrap_or_default();
    plugins.into_iter().find(|plugin| plugin.name == name).unwrap_or_default()
}

/// The sink `jsonl` with a section that nobody reads: another component for each number.
fn variant(world: &World, number: u8) -> PathBuf {
    let path = component(world, "jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([0, 3, 1, b'n', number]);
    write(world, &format!("variant-{number}.wasm"), bytes)
}

/// The config of a sink by what `install` printed, and with nothing else.
fn config(lines: &str) -> String {
    format!("rule = []\nstrategy = []\n{lines}")
}

#[test]
fn what_was_installed_loads_by_the_lines_that_were_printed_and_is_compiled_already() {
    let world = World::new();
    component(&world, "jsonl");
    let ran = world.latido(&["plugin", "install", "jsonl.wasm", "--name", "lines"]).ends_with(0);
    assert!(
        ran.stdout.starts_with("[[sink]]\nname = \"lines\"\nsource = \"installed:lines\"\ndigest = \"sha256:"),
        "{ran:?}"
    );
    assert!(ran.stdout.ends_with("grant.files.main = \"main.jsonl\"\n"), "{ran:?}");
    let file = installed(&world, "lines");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read(&file).unwrap(), fs::read(world.home().join("jsonl.wasm")).unwrap());
    let before = compiled(&world);
    assert_eq!(before, 1);
    let agent = Agent::start(&world, &config(&ran.stdout));
    wait_until("it works", || plugin(&agent, "lines").state == "active");
    assert_eq!(compiled(&world), before, "it was compiled again");
    agent.end();
}

#[test]
fn a_pinned_plugin_is_replaced_by_no_other() {
    let world = World::new();
    let first = variant(&world, 1);
    let ran = world.latido(&["plugin", "install", first.to_str().unwrap(), "--name", "lines"]).ends_with(0);
    let agent = Agent::start(&world, &config(&ran.stdout));
    wait_until("it works", || plugin(&agent, "lines").state == "active");
    let other = variant(&world, 2);
    world.latido(&["plugin", "install", other.to_str().unwrap(), "--name", "lines"]).ends_with(0);
    wait_until("its refusal", || plugin(&agent, "lines").reload_refused.is_some());
    let status = plugin(&agent, "lines");
    let why = status.reload_refused.unwrap();
    assert!(why.contains("its digest is sha256:") && why.contains("the one that was loaded before goes on"), "{why}");
    assert_eq!(status.state, "active");
    let ran = world.latido(&["plugin", "reload", "lines"]).ends_with(4);
    assert!(ran.stderr.contains("pinned is sha256:"), "{}", ran.stderr);
    world.latido(&["plugin", "install", first.to_str().unwrap(), "--name", "lines"]).ends_with(0);
    wait_until("its load", || plugin(&agent, "lines").reload_refused.is_none());
    agent.end();
}

#[test]
fn a_plugin_of_another_key_is_refused_at_the_start_and_while_the_agent_runs() {
    let world = World::new();
    let name = |path: &PathBuf| path.to_str().unwrap().to_owned();
    for (number, key) in [(1, "mine"), (2, "other")] {
        let (from, to) = (name(&variant(&world, number)), format!("{key}.wasm"));
        world.latido(&["plugin", "pack", &from, "--new-key", key, "-o", &to]).ends_with(0);
    }
    let table = "[[sink]]\nname = \"lines\"\nsource = \"installed:lines\"\nkey = \"mine.pub\"\ngrant.files.main = \"x.jsonl\"\n";
    world.latido(&["plugin", "install", "other.wasm", "--name", "lines"]).ends_with(0);
    let agent = Agent::start(&world, &config(table));
    wait_until("its refusal", || plugin(&agent, "lines").state == "refused");
    let why = plugin(&agent, "lines").detail.unwrap();
    assert!(why.contains("its signature is by MCow") && why.contains("demanded is one by MCow"), "{why}");
    world.latido(&["plugin", "install", "mine.wasm", "--name", "lines"]).ends_with(0);
    wait_until("it works", || plugin(&agent, "lines").state == "active");
    let unsigned = name(&variant(&world, 3));
    world.latido(&["plugin", "install", &unsigned, "--name", "lines"]).ends_with(0);
    wait_until("its refusal", || plugin(&agent, "lines").reload_refused.is_some());
    let why = plugin(&agent, "lines").reload_refused.unwrap();
    assert!(why.contains("it has no signature, and one by MCow"), "{why}");
    assert_eq!(plugin(&agent, "lines").state, "active");
    agent.end();
}

#[test]
fn names_with_path_parts_and_what_an_agent_would_not_load_are_not_installed() {
    let world = World::new();
    let whole = fs::read(component(&world, "jsonl")).unwrap();
    for odd in ["../up", "/etc/x", "a/b", ".hidden", "A", "", "x.wasm"] {
        let ran = world.latido(&["plugin", "install", "jsonl.wasm", "--name", odd]).ends_with(2);
        assert!(ran.stderr.contains("a name begins with a letter a-z"), "{odd}: {}", ran.stderr);
    }
    write(&world, "short.wasm", &whole[..whole.len() - 3]);
    write(&world, "text.wasm", "no component");
    for file in ["short.wasm", "text.wasm"] {
        world.latido(&["plugin", "install", file, "--name", "odd"]).ends_with(4);
    }
    world.latido(&["plugin", "pack", "jsonl.wasm", "--new-key", "key", "-o", "pack.wasm"]).ends_with(0);
    let mut touched = fs::read(world.home().join("pack.wasm")).unwrap();
    let middle = touched.len() / 2;
    touched[middle] ^= 1;
    write(&world, "touched.wasm", touched);
    let ran = world.latido(&["plugin", "install", "touched.wasm", "--name", "odd"]).ends_with(4);
    assert!(ran.stderr.contains("changed after it was signed"), "{}", ran.stderr);
    let ran = world.latido(&["plugin", "install", "jsonl.wasm", "--key", "key.pub"]).ends_with(4);
    assert!(ran.stderr.contains("it has no signature"), "{}", ran.stderr);
    let installed = fs::read_dir(world.state().installed_plugins()).map_or(0, Iterator::count);
    assert_eq!(installed, 0);

    fs::create_dir_all(world.state().installed_plugins()).unwrap();
    fs::set_permissions(world.state().installed_plugins(), fs::Permissions::from_mode(0o777)).unwrap();
    let ran = world.latido(&["plugin", "install", "pack.wasm"]).ends_with(125);
    assert!(ran.stderr.contains("others may write into it"), "{}", ran.stderr);
}

#[test]
fn the_config_says_what_is_wrong_with_what_it_demands() {
    let world = World::new();
    let checked = |table: &str| {
        write(&world, "latido.toml", format!("[[sink]]\nname = \"a\"\n{table}"));
        let ran = world.latido(&["config", "check", "latido.toml"]).ends_with(2);
        assert!(ran.stderr.contains("latido.toml:3:") || ran.stderr.contains("latido.toml:4:"), "{}", ran.stderr);
        ran.stderr
    };
    let told = checked("source = \"installed:../up\"\n");
    assert!(told.contains("\"../up\": a name begins with a letter"), "{told}");
    let told = checked("source = \"installed:a\"\ndigest = \"sha256:12\"\n");
    assert!(told.contains("is no digest; write `sha256:` and 64"), "{told}");
    let told = checked("source = \"builtin:jsonl\"\nkey = \"mine.pub\"\n");
    assert!(told.contains("a built-in plugin is part of this program"), "{told}");
    let told = checked("source = \"installed:a\"\nkey = \"MCowBQYDK2VwAyEAx\"\n");
    assert!(told.contains("is no public key of Ed25519"), "{told}");
}
