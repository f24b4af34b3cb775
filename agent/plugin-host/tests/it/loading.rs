//! What is refused before any of it runs, and how the refusal reads.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use latido_plugin_host::{Host, HostError, HostSettings, Kind, LoadError, PluginSpec};

use crate::support::{World, builtin, guest};

/// Exports with the right names and nothing in them.
const EMPTY_EXPORTS: &str = r#"(instance $nothing)
    (export "latido:plugin/lifecycle@0.2.0" (instance $nothing))
    (export "latido:plugin/sink@0.2.0" (instance $nothing))"#;

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {text})")).unwrap()
}

async fn refusal(world: &World, bytes: Vec<u8>) -> LoadError {
    match world.host.load_sink(PluginSpec::new("odd", Kind::Sink, bytes)).await {
        Ok(_) => panic!("it was loaded"),
        Err(error) => {
            assert!(error.to_string().contains("`odd`"), "{error}");
            error
        }
    }
}

// Field case C260 (zeroclaw-labs/zeroclaw#10505): each is refused with the plugin's name, expected and found; the others
// load.
#[tokio::test]
async fn c260_what_is_no_plugin_is_refused_by_name() {
    let world = World::new();
    let error = refusal(&world, b"#!/bin/sh\n".to_vec()).await;
    assert!(matches!(error, LoadError::NotWasm { found: "a text", .. }), "{error}");
    let error = refusal(&world, Vec::new()).await;
    assert!(matches!(error, LoadError::NotWasm { found: "an empty file", .. }), "{error}");
    let error = refusal(&world, vec![0xff; 100]).await;
    assert!(matches!(error, LoadError::NotWasm { .. }), "{error}");
    let error = refusal(&world, b"\x7fELF\x02\x01\x01".to_vec()).await;
    assert!(error.to_string().contains("compiled code, which is never accepted"), "{error}");
    let error = refusal(&world, wat::parse_str("(module)").unwrap()).await;
    assert!(matches!(error, LoadError::CoreModule { .. }), "{error}");
    assert!(world.host.load_sink(PluginSpec::new("good", Kind::Sink, guest("misbehave"))).await.is_ok());
}

#[tokio::test]
async fn compiled_code_and_what_is_too_large_are_refused_unread() {
    let world = World::new();
    world.host.load_strategy(PluginSpec::new("script", Kind::Strategy, builtin("script"))).await.map(drop).unwrap();
    let error = refusal(&world, std::fs::read(compiled(&world.path("cache"))).unwrap()).await;
    assert!(error.to_string().contains("compiled code, which is never accepted"), "{error}");
    let mut large = builtin("script").to_vec();
    large.resize(latido_plugin_host::COMPONENT_MAX + 1, 0);
    let error = refusal(&world, large).await;
    assert!(matches!(error, LoadError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn c260_a_truncated_component_is_refused_wherever_it_ends() {
    let world = World::new();
    let whole = builtin("jsonl");
    for length in [9, 100, whole.len() / 2, whole.len() - 1] {
        let error = refusal(&world, whole[..length].to_vec()).await;
        assert!(matches!(error, LoadError::Damaged { .. } | LoadError::Compile { .. }), "at {length}: {error}");
    }
}

#[tokio::test]
async fn c260_another_version_of_the_interface_is_named_with_ours() {
    let world = World::new();
    let error = refusal(&world, component(r#"(import "latido:plugin/log@0.3.0" (instance))"#)).await;
    let text = error.to_string();
    assert!(text.contains("`latido:plugin/log@0.3.0`") && text.contains("versions 0.2.0 and 0.1.0 of"), "{text}");
    assert!(matches!(error, LoadError::WrongVersion { .. }));
    let mixed = component(&format!(r#"(import "latido:plugin/log@0.1.0" (instance)) {EMPTY_EXPORTS}"#));
    let error = refusal(&world, mixed).await;
    assert!(matches!(error, LoadError::MixedVersions { .. }), "{error}");
    assert!(error.to_string().contains("`latido:plugin/log@0.1.0` and `latido:plugin/lifecycle@0.2.0`"), "{error}");
}

#[tokio::test]
async fn c260_a_missing_export_is_named_with_what_is_there() {
    let world = World::new();
    let error = refusal(&world, component("")).await;
    assert!(error.to_string().contains("`latido:plugin/lifecycle@0.2.0`; it exports nothing"), "{error}");
    let error = match world.host.load_rule(PluginSpec::new("odd", Kind::Rule, guest("misbehave"))).await {
        Ok(_) => panic!("a sink was loaded as a rule"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("as rule") && error.contains("`latido:plugin/rule@0.2.0`"), "{error}");
    assert!(error.contains("`latido:plugin/sink@0.2.0`"), "{error}");
}

#[tokio::test]
async fn c260_a_foreign_import_is_named_with_what_is_offered() {
    let world = World::new();
    for import in ["acme:disk/raw@1.0.0", "wasi:http/outgoing-handler@0.2.6", "latido:plugin/workspace@0.2.0"] {
        let error = refusal(&world, component(&format!(r#"(import "{import}" (instance)) {EMPTY_EXPORTS}"#))).await;
        let text = error.to_string();
        assert!(matches!(error, LoadError::ForeignImports { .. }), "{text}");
        assert!(text.contains(&format!("`{import}`")) && text.contains("`latido:plugin/sql`"), "{text}");
    }
}

#[tokio::test]
async fn c260_a_component_that_lies_about_its_version_is_refused() {
    let world = World::new();
    let lie = r#"(import "latido:plugin/log@0.2.0" (instance (export "write" (func (param "number" u32)))))"#;
    let error = refusal(&world, component(&format!("{lie} {EMPTY_EXPORTS}"))).await;
    assert!(matches!(error, LoadError::Mismatch { .. }), "{error}");
    let error = refusal(&world, component(EMPTY_EXPORTS)).await;
    assert!(matches!(error, LoadError::Mismatch { .. }), "{error}");
}

#[tokio::test]
async fn what_is_asked_for_and_not_granted_comes_with_the_lines_to_paste() {
    let world = World::new();
    let Err(error) = world.host.load_sink(PluginSpec::new("history", Kind::Sink, guest("probe"))).await else {
        panic!("it was loaded")
    };
    let LoadError::NotGranted { plugin, lines } = error else { panic!("{error}") };
    assert_eq!(plugin, "history");
    assert_eq!(
        lines,
        "grant.sql.main = \"main.db\"\ngrant.files.main = \"main.jsonl\"\ngrant.http.origins = [\"https://example.org\"]\ngrant.state = true"
    );
}

#[tokio::test]
async fn settings_that_the_plugin_refuses_are_told_in_its_words() {
    let world = World::new();
    let mut spec = PluginSpec::new("liveness", Kind::Rule, builtin("liveness"));
    spec.settings = serde_json::json!({ "severity": { "stael": "critical" } });
    let Err(error) = world.host.load_rule(spec).await else { panic!("it was loaded") };
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("unknown condition `stael`") && cause.contains("stale"), "{cause}");
}

/// The only file of a cache.
fn compiled(cache: &Path) -> std::path::PathBuf {
    let mut files: Vec<_> = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[tokio::test]
async fn compiled_code_is_kept_privately_and_used_again() {
    let world = World::new();
    let cache = world.path("cache");
    let load = async |host: &Host| {
        host.load_strategy(PluginSpec::new("script", Kind::Strategy, builtin("script"))).await.map(drop).unwrap();
    };
    load(&world.host).await;
    let first = compiled(&cache);
    let written = std::fs::metadata(&first).unwrap();
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    load(&Host::new(HostSettings { cache: cache.clone(), compiler: None, metered: false }).unwrap()).await;
    assert_eq!(compiled(&cache), first);
    assert_eq!(std::fs::metadata(&first).unwrap().modified().unwrap(), written.modified().unwrap());
}

#[tokio::test]
async fn damaged_compiled_code_is_never_run() {
    let world = World::new();
    let cache = world.path("cache");
    let spec = || PluginSpec::new("script", Kind::Strategy, builtin("script"));
    world.host.load_strategy(spec()).await.map(drop).unwrap();
    let file = compiled(&cache);
    let good = std::fs::read(&file).unwrap();
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 0xff;
    for bytes in [bad, good[..good.len() / 2].to_vec(), Vec::new()] {
        std::fs::write(&file, bytes).unwrap();
        world.host.load_strategy(spec()).await.map(drop).unwrap();
        assert_eq!(std::fs::read(compiled(&cache)).unwrap(), good);
    }
    // Somebody else's file under the right name: others may write to it.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    world.host.load_strategy(spec()).await.map(drop).unwrap();
    assert_eq!(std::fs::metadata(compiled(&cache)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_cache_that_others_can_reach_into_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(
        Host::new(HostSettings { cache: open.clone(), compiler: None, metered: false }),
        Err(HostError::ForeignCache { .. })
    ));
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o700)).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&open, &link).unwrap();
    assert!(matches!(
        Host::new(HostSettings { cache: link, compiler: None, metered: false }),
        Err(HostError::ForeignCache { .. })
    ));
    assert!(Host::new(HostSettings { cache: open, compiler: None, metered: false }).is_ok());
}
