//! Sinks: nothing lost, nothing twice, over deaths of the agent at any moment.

use std::collections::BTreeSet;
use std::path::Path;

use latido_protocol::journal::Body;

use super::QUICK;
use crate::support::{Agent, World, wait_until};

/// The default sinks and nothing else is asked for: `history` is SQLite, `entries` is JSONL.
const DEFAULT: &str = "";

fn rows(database: &Path) -> Vec<(String, i64)> {
    let history = rusqlite::Connection::open(database).unwrap();
    let mut statement = history.prepare("select agent, sequence from entries order by agent, sequence").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn both_sinks_have_every_entry_once_although_the_agent_is_killed_again_and_again() {
    let world = World::new();
    for round in 1..=6 {
        let agent = Agent::start(&world, DEFAULT);
        let name = format!("a{round}");
        world.detach(&name, QUICK, "exec sleep 1000");
        world.kill(world.start(&name, 1).process.unwrap().pid, "KILL");
        wait_until("attempt 2", || world.attempts(&name) == [1, 2]);
        // Killed while sinks are being fed, a little later each time.
        if round % 2 == 0 {
            wait_until("a row", || world.state().path().join("history.db").exists());
        }
        agent.kill();
    }
    let agent = Agent::start(&world, DEFAULT);
    let mut end = 0;
    wait_until("both sinks at the end", || {
        let Some(status) = agent.status() else { return false };
        let cursors: Vec<_> = status.plugins.iter().filter(|p| p.kind == "sink").map(|p| p.cursor).collect();
        end = status.sequence;
        cursors.len() == 2 && cursors.iter().all(|cursor| *cursor == Some(end))
    });
    // More may be written while it is looked at: what is compared is everything up to here.
    let upto = |sequences: Vec<u64>| sequences.into_iter().filter(|sequence| *sequence <= end).collect::<Vec<_>>();
    let all: Vec<u64> = (1..=end).collect();
    assert_eq!(upto(world.events().iter().map(|entry| entry.sequence).collect()), all, "the journal");
    agent.end();
    let stored = rows(&world.state().path().join("history.db"));
    assert_eq!(upto(stored.into_iter().map(|(_, sequence)| u64::try_from(sequence).unwrap()).collect()), all, "SQLite");
    let lines = world.jsonl("entries.jsonl");
    // At least once: a line may have come again after a kill.
    let lines: BTreeSet<u64> = lines.iter().map(|line| line["sequence"].as_u64().unwrap()).collect();
    assert_eq!(upto(lines.into_iter().collect()), all, "JSONL");
}

#[test]
fn what_a_sink_that_is_too_far_behind_loses_is_counted_journalled_and_alerted() {
    let world = World::new();
    // A disk that is full for ever takes nothing.
    let config = "rule = []\n[agent.journal]\nentries_max = 5\n\
                  [[sink]]\nname = \"full\"\nsource = \"builtin:jsonl\"\ngrant.files.main = \"/dev/full\"\n\
                  [[sink]]\nname = \"entries\"\nsource = \"builtin:jsonl\"\ngrant.files.main = \"entries.jsonl\"\n";
    let agent = Agent::start(&world, config);
    for job in ["a", "b", "c"] {
        world.detach(job, &[], "true");
        world.end(job, 1);
    }
    let delivered = |agent: &Agent<'_>| {
        let status = agent.status()?;
        let cursor = status.plugins.iter().find(|plugin| plugin.name == "entries")?.cursor?;
        (cursor == status.sequence && status.sequence > 9).then_some(cursor)
    };
    wait_until("the other sink's delivery", || delivered(&agent).is_some());
    agent.end();
    let all = world.events().len();

    // The journal is trimmed at each start, and then now and then.
    let agent = Agent::start(&world, config);
    let lost = |agent: &Agent<'_>| {
        let status = agent.status()?;
        status.plugins.iter().find(|plugin| plugin.name == "full").map(|plugin| plugin.lost)
    };
    wait_until("the count of what is lost", || lost(&agent).is_some_and(|lost| lost > 0));
    let alerts = || world.latido(&["alerts"]).stdout;
    wait_until("the alert", || alerts().contains("sink full was too far behind and lost"));
    wait_until("the alert about the sink itself", || alerts().contains("plugin full is faulty"));
    let told = world.latido(&["plugin", "list"]).stdout;
    assert!(told.contains("entries are lost: it was too far behind"), "{told}");
    let journalled = |entry: &latido_protocol::journal::Entry| matches!(&entry.body, Body::Agent { what, detail } if what == "sink-loss" && detail.contains("sink full"));
    wait_until("the entry in the journal", || world.events().iter().any(journalled));
    assert!(world.events().iter().all(|entry| entry.sequence > 1), "{all} entries were there, at most 5 are kept");
    wait_until("the other sink has it too", || {
        world.jsonl("entries.jsonl").iter().any(|line| line["what"] == "sink-loss")
    });
    let lines: BTreeSet<u64> =
        world.jsonl("entries.jsonl").iter().map(|line| line["sequence"].as_u64().unwrap()).collect();
    assert_eq!(lines.first(), Some(&1), "what the other sink got before it was trimmed stays");
    assert_eq!(u64::try_from(lines.len()).unwrap(), *lines.last().unwrap(), "the other sink lost nothing");
}
