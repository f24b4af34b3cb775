//! What goes wrong at capability calls loses nothing of a sink that is made well, and is told of one that is not.

use latido_plugin_kit::{ChaosPlan, Mishap, Round, chaos};
use serde_json::json;

use crate::support::{Ground, component};

fn rounds(ground: &Ground, name: &str, plan: &ChaosPlan) -> Vec<Round> {
    chaos(&ground.workshop, &component(name), plan).unwrap()
}

#[test]
fn every_built_in_plugin_loses_nothing_whatever_goes_wrong() {
    let ground = Ground::new();
    for (name, settings) in [
        ("sqlite", json!({ "entries_max": 1000 })),
        ("jsonl", json!({})),
        ("webhook", json!({ "url": "https://example.org/" })),
        ("threshold", json!({ "bounds": [{ "fact": "errors", "above": 10 }] })),
        ("anomaly", json!({})),
    ] {
        let plan = ChaosPlan { settings: Some(settings), seed: 3, ..ChaosPlan::default() };
        let rounds = rounds(&ground, name, &plan);
        assert!(rounds.len() >= 20, "{name}: {} rounds", rounds.len());
        for round in &rounds {
            assert!(round.recovers, "{name}: {round:?}");
            assert!(name != "sqlite" || round.twice.is_empty(), "exactly once in effect: {round:?}");
        }
    }
}

#[test]
fn what_was_carried_out_and_not_heard_of_comes_again() {
    let ground = Ground::new();
    let plan = ChaosPlan { what: vec![Mishap::TrapAfter], at: vec![2], ..ChaosPlan::default() };
    let rounds = rounds(&ground, "jsonl", &plan);
    assert_eq!(rounds.len(), 1);
    assert_eq!(rounds[0].twice, (11..=20).collect::<Vec<u64>>());
    let settings = Some(json!({ "url": "https://example.org/" }));
    let plan = ChaosPlan { settings, ..plan };
    let sent = self::rounds(&ground, "webhook", &plan);
    assert!(sent[0].recovers && !sent[0].twice.is_empty(), "{sent:?}");
    assert!(rounds[0].recovers && rounds[0].failures[0].contains("it trapped: as chaos has it"), "{rounds:?}");
}

#[test]
fn what_a_forgetful_sink_acknowledged_is_told_as_lost() {
    let ground = Ground::new();
    let plan = ChaosPlan { what: vec![Mishap::Full], at: vec![1], ..ChaosPlan::default() };
    let lost = rounds(&ground, "guests/forgetful", &plan);
    assert_eq!(lost[0].lost, (1..=10).collect::<Vec<u64>>());
    assert!(!lost[0].recovers);
    let early = Some(json!({ "how": "early" }));
    let plan = ChaosPlan { what: vec![Mishap::Trap], at: vec![1], settings: early, ..ChaosPlan::default() };
    let lost = rounds(&ground, "guests/forgetful", &plan);
    assert_eq!(lost[0].lost, (1..=10).collect::<Vec<u64>>(), "what it kept in memory was acknowledged");
}

#[test]
fn a_seed_names_its_rounds() {
    let ground = Ground::new();
    let plan = |seed| ChaosPlan { at: vec![1], rounds: Some(5), seed, ..ChaosPlan::default() };
    let mishaps = |seed| {
        let rounds = rounds(&ground, "jsonl", &plan(seed));
        rounds.iter().map(|round| format!("{:?}", round.mishaps)).collect::<Vec<_>>()
    };
    assert_eq!(mishaps(1), mishaps(1));
    assert_ne!(mishaps(1), mishaps(2));
}

#[test]
fn a_plugin_that_fails_by_itself_is_not_let_go_wrong_any_further() {
    let ground = Ground::new();
    let settings = Some(json!({ "where": "write", "what": "trap" }));
    let plan = ChaosPlan { settings, ..ChaosPlan::default() };
    let error = chaos(&ground.workshop, &component("guests/misbehave"), &plan).unwrap_err().to_string();
    assert!(error.contains("it fails although nothing goes wrong") && error.contains("as the settings ask"), "{error}");
}
