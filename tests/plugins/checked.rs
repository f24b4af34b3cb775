//! `latido plugin inspect` and `check`.

use serde_json::Value;

use super::{component, write};
use crate::support::World;

#[test]
fn inspect_shows_what_a_component_is() {
    let world = World::new();
    component(&world, "sqlite");
    let ran = world.latido(&["plugin", "inspect", "sqlite.wasm"]).ends_with(0);
    for line in [
        "sqlite 0.1.0, a sink: ",
        "  interface  latido:plugin@0.2.0",
        "  imports    latido:plugin/",
        "  asks for   grant.sql.main = \"main.db\"",
        "  digest     sha256:",
        "  signature  none",
        " bytes  code",
    ] {
        assert!(ran.stdout.contains(line), "{line:?} is not in\n{}", ran.stdout);
    }
    let ran = world.latido(&["plugin", "inspect", "--json", "sqlite.wasm"]).ends_with(0);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["version"], 1);
    assert_eq!(document["kind"], "sink");
    assert_eq!(document["manifest"]["requires"]["sql"][0], "main");
    assert_eq!(document["description"]["name"], "sqlite");
    assert_eq!(document["problems"], serde_json::json!([]));
}

#[test]
fn inspect_says_what_is_wrong_with_what_is_broken() {
    let world = World::new();
    let whole = std::fs::read(component(&world, "jsonl")).unwrap();
    write(&world, "short.wasm", &whole[..whole.len() - 7]);
    let ran = world.latido(&["plugin", "inspect", "short.wasm"]).ends_with(1);
    assert!(ran.stdout.contains("  problem    cannot read it: it is truncated or damaged at byte"), "{}", ran.stdout);
    assert!(ran.stdout.contains("latido:plugin/sink@0.2.0"), "what can be read is shown: {}", ran.stdout);
    write(&world, "text.wasm", "#!/bin/sh\n");
    let ran = world.latido(&["plugin", "inspect", "--json", "text.wasm"]).ends_with(1);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(document["problems"].as_array().unwrap().len(), 1, "{document}");
    let ran = world.latido(&["plugin", "inspect", "nowhere.wasm"]).ends_with(2);
    assert!(ran.stderr.contains("cannot read nowhere.wasm") && ran.stderr.contains("  next:  "), "{}", ran.stderr);
    std::fs::create_dir(world.home().join("folder")).unwrap();
    let ran = world.latido(&["plugin", "inspect", "folder"]).ends_with(2);
    assert!(ran.stderr.contains("plugin.toml"), "{}", ran.stderr);
}

#[test]
fn check_answers_as_the_agent_would_with_the_lines_that_are_missing() {
    let world = World::new();
    component(&world, "sqlite");
    let ran = world.latido(&["plugin", "check", "sqlite.wasm"]).ends_with(0);
    assert!(ran.stdout.contains("it loads as sink `sqlite`, by latido:plugin@0.2.0"), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n    grant.sql.main = \"main.db\"\n"), "{}", ran.stdout);

    let table = "[[sink]]\nname = \"mine\"\nsource = \"elsewhere.wasm\"\n";
    let check = |config: &str| {
        write(&world, "latido.toml", config);
        world.latido(&["plugin", "check", "sqlite.wasm", "--config", "latido.toml", "--name", "mine"])
    };
    let ran = check(table).ends_with(1);
    assert!(ran.stdout.contains("it asks for more than is granted"), "{}", ran.stdout);
    let granted = format!("{table}grant.sql.main = \"mine.db\"\n");
    let ran = check(&granted).ends_with(0);
    assert!(!ran.stdout.contains("grant."), "{}", ran.stdout);
    assert!(!world.state().path().join("mine.db").exists(), "a check made the plugin's database");
    let ran = check(&format!("{granted}settings.tabel = 1\n")).ends_with(1);
    assert!(ran.stdout.contains("its settings are wrong") && ran.stdout.contains("tabel"), "{}", ran.stdout);
    let rule = granted.replace("[[sink]]", "[[rule]]");
    let ran = check(&rule).ends_with(1);
    assert!(ran.stdout.contains("cannot load plugin `mine` as rule"), "{}", ran.stdout);

    let words = ["plugin", "check", "sqlite.wasm", "--config", "latido.toml", "--name", "mien"];
    let ran = world.latido(&words).ends_with(2);
    assert!(ran.stderr.contains("`mine`, "), "{}", ran.stderr);
}

/// What the linker stumbled over first is nothing that an author can mend.
#[test]
fn a_component_of_other_interfaces_is_told_which_differ() {
    let world = World::new();
    let whole = std::fs::read(component(&world, "guests/old-sink")).unwrap();
    // Another version in every name, and the interfaces of the one before behind them.
    let lie: Vec<u8> = String::from_utf8_lossy(&whole).contains("0.1.0").then(|| replaced(&whole)).unwrap();
    write(&world, "lie.wasm", lie);
    let ran = world.latido(&["plugin", "check", "lie.wasm"]).ends_with(1);
    assert!(ran.stdout.contains("its interfaces are not those of `latido:plugin@0.2.0`: `"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("linker") && !ran.stdout.contains("instance export"), "{}", ran.stdout);
}

fn replaced(bytes: &[u8]) -> Vec<u8> {
    let (old, new) = (b"@0.1.0", b"@0.2.0");
    let mut bytes = bytes.to_vec();
    while let Some(place) = bytes.windows(old.len()).position(|window| window == old) {
        bytes[place..place + new.len()].copy_from_slice(new);
    }
    bytes
}
