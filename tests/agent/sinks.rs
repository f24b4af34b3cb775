//! Sinks: nothing lost, nothing twice, over deaths of the agent at any moment.

use std::collections::BTreeSet;
use std::path::Path;

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
