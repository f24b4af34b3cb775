//! The figures for Prometheus: what the status says, in the form that collectors take.

use std::collections::BTreeMap;

use crate::support::{Agent, World, wait_until};

/// The values of an OpenMetrics text by name and labels; fails where a line is none.
fn figures(text: &str) -> BTreeMap<String, f64> {
    let lines: Vec<&str> = text.lines().collect();
    let (last, lines) = lines.split_last().unwrap();
    assert_eq!(*last, "# EOF");
    let mut figures = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(figures.insert(name.to_owned(), value.parse().unwrap()).is_none(), "{name} is there twice");
    }
    figures
}

#[test]
fn the_figures_say_what_the_status_says() {
    let world = World::new();
    let config = "rule = []\n\
                  [[sink]]\nname = \"entries\"\nsource = \"builtin:jsonl\"\ngrant.files.main = \"entries.jsonl\"\n\
                  [[sink]]\nname = \"full\"\nsource = \"builtin:jsonl\"\ngrant.files.main = \"/dev/full\"\n";
    world.detach("lives", &[], "exec sleep 1000");
    world.detach("ended", &[], "true");
    world.end("ended", 1);
    let without = figures(&world.latido(&["metrics"]).ends_with(0).stdout);
    assert_eq!(without["latido_agent_up"], 0.0);
    assert_eq!(without[r#"latido_subjects{kind="job",verdict="ended"}"#], 1.0);

    let agent = Agent::start(&world, config);
    let read = || figures(&world.latido(&["metrics"]).ends_with(0).stdout);
    wait_until("a delivery", || read().get(r#"latido_sink_queue{plugin="entries",kind="sink"}"#) == Some(&0.0));
    let told = read();
    let status = agent.status().unwrap();
    assert_eq!(told["latido_agent_up"], 1.0);
    assert_eq!(told["latido_agent_started_seconds"], status.started_at.as_millis() as f64 / 1e3);
    assert_eq!(told[r#"latido_subjects{kind="job",verdict="alive"}"#], 1.0);
    assert_eq!(told[r#"latido_subject_attempt{subject="lives",kind="job"}"#], 1.0);
    assert!(told["latido_journal_entries_total"] >= 2.0, "{told:?}");
    assert_eq!(told[r#"latido_plugin_state{plugin="entries",kind="sink",state="active"}"#], 1.0);
    assert!(told[r#"latido_plugin_calls_total{plugin="entries",kind="sink"}"#] >= 1.0, "{told:?}");
    assert!(told[r#"latido_plugin_memory_bytes{plugin="entries",kind="sink"}"#] > 0.0, "{told:?}");
    assert!(told[r#"latido_sink_queue{plugin="full",kind="sink"}"#] > 0.0, "it takes nothing: {told:?}");
    assert_eq!(told[r#"latido_sink_lost_total{plugin="full",kind="sink"}"#], 0.0);
}
