//! What the database of a sink takes on the disk.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use latido_plugin_host::{Entries, Field, PluginSpec};
use rusqlite::Connection;
use serde_json::json;

use crate::builtin::{dated, sqlite};
use crate::killed::command;
use crate::support::{World, write};

const BATCH: u64 = 1_000;

/// Reads a database through a map of its file, in one transaction that lasts until a line comes.
const READER: &str = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute('pragma mmap_size = 1073741824')
database.execute('begin')
look = lambda: print(database.execute('select count(*), total(length(attributes)) from entries').fetchone()[0], flush=True)
look()
sys.stdin.readline()
look()
";

fn size(world: &World, name: &str) -> u64 {
    std::fs::metadata(world.path(name)).map_or(0, |found| found.len())
}

fn count(world: &World) -> u64 {
    let database = Connection::open(world.path("history.db")).unwrap();
    let count: i64 = database.query_row("SELECT count(*) FROM entries", [], |row| row.get(0)).unwrap();
    count.cast_unsigned()
}

fn batch(first: u64) -> Entries {
    dated("a", (first..first + BATCH).map(|number| (number, number)))
}

/// A program beside the agent; it ends with the test.
struct Reader(Child);

impl Reader {
    fn start(world: &World) -> Self {
        let mut python = command("python3");
        python.arg("-c").arg(READER).arg(world.path("history.db"));
        Self(python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    fn sees(&mut self) -> u64 {
        let mut line = String::new();
        // One byte at a time is buffered: what follows is read from the same pipe.
        BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _collected = self.0.wait();
    }
}

/// Field case C227 (louislam/uptime-kuma#4041): what retention removes comes back to the disk.
#[tokio::test]
async fn c227_the_file_shrinks_with_what_it_holds() {
    let world = World::new();
    let mut sink = world.host.load_sink(sqlite(&world)).await.unwrap();
    for number in 0..100 {
        write(&mut sink, &batch(number * BATCH + 1)).await.unwrap();
    }
    drop(sink);
    let full = size(&world, "history.db");
    let spec = PluginSpec { settings: json!({ "entries_max": BATCH }), ..sqlite(&world) };
    let mut sink = world.host.load_sink(spec).await.unwrap();
    for number in 100..220 {
        write(&mut sink, &batch(number * BATCH + 1)).await.unwrap();
    }
    drop(sink);
    assert!(count(&world) <= 2 * BATCH, "{}", count(&world));
    let bound = full / 5;
    assert!(size(&world, "history.db") < bound, "{} of {full} bytes", size(&world, "history.db"));
}

/// Field case C224 (DeusData/codebase-memory-mcp PR #1137): a reader that stays keeps the log from being emptied.
#[tokio::test]
async fn c224_a_reader_that_stays_makes_no_log_without_end_and_is_not_harmed() {
    const BOUND: u64 = 80 << 20;
    let world = World::new();
    // The log lies beside the file that the granted name leads to.
    std::fs::create_dir(world.path("data")).unwrap();
    std::os::unix::fs::symlink("data/history.db", world.path("history.db")).unwrap();
    let mut sink = world.host.load_sink(sqlite(&world)).await.unwrap();
    write(&mut sink, &batch(1)).await.unwrap();
    let mut reader = Reader::start(&world);
    assert_eq!(reader.sees(), BATCH);
    let wide = |first: u64| {
        let mut entries = Entries::new("a");
        for number in first..first + BATCH {
            entries.add(number, number, "agent").text(Field::What, &"x".repeat(1_500));
        }
        entries
    };
    let mut written = BATCH;
    let refused = loop {
        match write(&mut sink, &wide(written + 1)).await {
            Ok(_) => written += BATCH,
            Err(error) => break error.to_string(),
        }
        assert!(size(&world, "data/history.db-wal") < BOUND, "{written} entries");
    };
    assert!(refused.contains("history.db-wal") && refused.contains("end its transaction"), "{refused}");
    assert!(written > 10 * BATCH, "{written}");
    writeln!(reader.0.stdin.as_mut().unwrap()).unwrap();
    assert_eq!(reader.sees(), BATCH, "it sees what it saw");
    assert!(reader.0.wait().unwrap().success());
    write(&mut sink, &wide(written + 1)).await.unwrap();
    assert_eq!(count(&world), written + BATCH);
    assert!(size(&world, "data/history.db-wal") < BOUND / 4, "{}", size(&world, "data/history.db-wal"));
}
