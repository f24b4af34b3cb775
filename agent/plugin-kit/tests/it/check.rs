//! Whether a plugin would be loaded.

use latido_plugin_host::{Kind, PluginSpec};
use latido_plugin_kit::{Checked, check};
use serde_json::json;

use crate::world::{World, builtin, guest};

async fn checked(world: &World, spec: PluginSpec) -> Checked {
    check(&world.host, spec).await.unwrap()
}

#[tokio::test]
async fn what_is_not_granted_comes_as_lines_and_all_else_is_looked_at_too() {
    let world = World::new();
    let seen = checked(&world, PluginSpec::new("history", Kind::Sink, builtin("sqlite"))).await;
    assert_eq!(seen.missing, ["grant.sql.main = \"main.db\""]);
    assert_eq!((seen.problem, seen.interface), (None, Some("0.2.0")));
    let mut spec = PluginSpec::new("history", Kind::Sink, builtin("sqlite"));
    spec.settings = json!({ "tabel": "x" });
    let seen = checked(&world, spec).await;
    assert_eq!(seen.missing.len(), 1);
    assert!(seen.problem.is_some_and(|problem| problem.contains("settings are wrong")));
}

#[tokio::test]
async fn a_check_leaves_nothing_where_the_plugin_was_granted_something() {
    let world = World::new();
    let mut spec = PluginSpec::new("history", Kind::Sink, builtin("sqlite"));
    spec.grants.sql.insert("main".to_owned(), world.path("history.db").into());
    let seen = checked(&world, spec).await;
    assert_eq!((seen.missing.len(), seen.problem), (0, None));
    assert!(!world.path("history.db").exists());
}

#[tokio::test]
async fn a_plugin_of_another_kind_and_one_that_fails_at_its_start_would_not_be_loaded() {
    let world = World::new();
    let seen = checked(&world, PluginSpec::new("odd", Kind::Rule, builtin("jsonl"))).await;
    assert!(seen.problem.is_some_and(|problem| problem.contains("as rule")));
    for what in ["trap", "loop"] {
        let mut spec = PluginSpec::new("bad", Kind::Sink, guest("misbehave"));
        spec.settings = json!({ "where": "configure", "what": what });
        let seen = checked(&world, spec).await;
        assert!(seen.problem.as_ref().is_some_and(|problem| problem.contains("`configure`")), "{what}: {seen:?}");
    }
}
