//! The SQLite sink through the sandbox, against the same rows inserted by rusqlite without it.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use latido_plugin_host::{Entries, Field, Host, HostSettings, Kind, PluginSpec, Sink};
use rusqlite::{Connection, params};

use crate::place::{Place, monotonic, own_cpu};
use crate::table::{Series, Table};

const BATCHES: usize = 100;

/// Entries in a batch: what the agent's default config allows at most.
const BATCH: u64 = 1000;

/// The agent's default limit of one call on the CPU.
const CPU: Duration = Duration::from_secs(2);

const TARGET_RATIO: f64 = 0.7;

const MICROS_PER_BATCH: f64 = 1e6 / 1000.0;

const INSERT: &str = "INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, subject, attempt, epoch, \
    previous_verdict, verdict, reason) VALUES (?, ?, ?, 'transition', ?, ?, ?, ?, ?, ?)";

/// What each batch took, by the wall and by the CPUs.
#[derive(Default)]
struct Costs {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Costs {
    fn add(&mut self, wall: Duration, cpu: Duration) {
        self.wall.push(wall.as_secs_f64() * MICROS_PER_BATCH);
        self.cpu.push(cpu.as_secs_f64() * MICROS_PER_BATCH);
    }

    fn series(&self, name: &str) -> (Series, Series) {
        let of = |what: &str, values: &[f64]| Series::new(format!("{name}, {what} a row"), "µs", values.to_vec());
        (of("wall", &self.wall), of("CPU", &self.cpu))
    }
}

/// Measures both in turn, batch by batch, with the same schema and the same durability.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let component = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("target/components/sqlite.wasm"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let through = place.path("through.db");
    let host = Host::new(HostSettings { cache: place.path("compiled"), compiler: None, metered: false })?;
    let mut spec = PluginSpec::new("history", Kind::Sink, component);
    spec.limits.cpu = CPU;
    spec.grants.sql.insert("main".to_owned(), through.clone().into());
    let mut sink = runtime.block_on(host.load_sink(spec))?;
    let mut plain = same_schema(&through, &place.path("plain.db"))?;

    let (mut sandboxed, mut direct) = (Costs::default(), Costs::default());
    for number in 0..BATCHES as u64 {
        let batch: Vec<Change> = (0..BATCH).map(|index| change(number * BATCH + index + 1)).collect();
        let entries = entries(&batch);
        let (wall, cpu) = (monotonic(), own_cpu());
        let acknowledged = runtime.block_on(written(&mut sink, &entries))?;
        sandboxed.add(monotonic().saturating_sub(wall), own_cpu().saturating_sub(cpu));
        ensure!(Some(acknowledged) == batch.last().map(|change| change.sequence), "the sink did not take the batch");
        let (wall, cpu) = (monotonic(), own_cpu());
        insert(&mut plain, &batch)?;
        direct.add(monotonic().saturating_sub(wall), own_cpu().saturating_sub(cpu));
    }
    ensure!(rows(&through)? == rows(&place.path("plain.db"))?, "the two databases differ in their rows");

    let (wall, cpu) = sandboxed.series("6 the SQLite sink in the sandbox");
    let (plain_wall, plain_cpu) = direct.series("rusqlite, same schema");
    for (ours, theirs) in [(&cpu, &plain_cpu), (&wall, &plain_wall)] {
        let rate = theirs.median() / ours.median();
        let target = format!("≥ 70 % of rusqlite's rows/s; {:.0} %", rate * 100.0);
        table.figure(ours, &[theirs], &target, rate >= TARGET_RATIO);
    }
    table.beside(&[&plain_cpu, &plain_wall]);
    imported(place, &wall, table)
}

/// The same rows by the shell of SQLite, which puts all of them in at once and waits for the disk once.
fn imported(place: &Place, ours: &Series, table: &mut Table) -> anyhow::Result<()> {
    const ROUNDS: usize = 5;

    let text = place.path("entries.csv");
    let mut csv = BufWriter::new(File::create(&text)?);
    for number in 1..=BATCHES as u64 * BATCH {
        let Change { sequence, at_ms, subject, reason } = change(number);
        writeln!(csv, "{JOURNAL},{sequence},{at_ms},transition,{subject},3,{sequence},late,alive,{reason}")?;
    }
    csv.flush()?;
    let mut values = Vec::new();
    for round in 0..ROUNDS {
        let database = place.path(&format!("imported-{round}.db"));
        // A table of all columns takes rows of all; those that the text has come in by a view of them.
        same_schema(&place.path("through.db"), &database)?.execute_batch(
            "CREATE VIEW given AS SELECT agent, sequence, at_ms, kind, subject, attempt, epoch, previous_verdict, verdict, reason \
             FROM entries; \
             CREATE TRIGGER put INSTEAD OF INSERT ON given BEGIN INSERT OR IGNORE INTO entries (agent, sequence, at_ms, kind, \
             subject, attempt, epoch, previous_verdict, verdict, reason) VALUES (new.agent, new.sequence, new.at_ms, new.kind, \
             new.subject, new.attempt, new.epoch, new.previous_verdict, new.verdict, new.reason); END",
        )?;
        let mut shell = place.command("sqlite3");
        shell.arg(&database).arg(format!(".import --csv {} given", text.display()));
        let begun = monotonic();
        match shell.status() {
            Ok(status) => ensure!(status.success(), "sqlite3 ended with {status}"),
            Err(_none) => return Ok(()), // a peer that is not installed
        }
        let all = monotonic().saturating_sub(begun).as_secs_f64() * 1e6;
        values.push(all / (BATCHES as f64 * BATCH as f64));
        ensure!(rows(&database)? == rows(&place.path("through.db"))?, "sqlite3 did not take every row");
    }
    let theirs = Series::new("`sqlite3 .import`, wall a row", "µs", values);
    let rate = theirs.median() / ours.median();
    table.figure(ours, &[&theirs], &format!("≥ `.import`; {:.0} %", rate * 100.0), rate >= 1.0);
    table.beside(&[&theirs]);
    Ok(())
}

async fn written(sink: &mut Sink, entries: &Entries) -> anyhow::Result<u64> {
    Ok(sink.write(entries).await?.durable)
}

/// A database with the schema of another one, opened with the settings that the host gives a granted database.
fn same_schema(from: &Path, to: &Path) -> anyhow::Result<Connection> {
    let connection = Connection::open(to)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY")?;
    let source = Connection::open(from)?;
    let mut statements = source.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    let texts: Result<Vec<String>, _> = statements.query_map([], |row| row.get(0))?.collect();
    for text in texts? {
        connection.execute_batch(&text)?;
    }
    Ok(connection)
}

/// The id of the journal.
const JOURNAL: &str = "0f4c1f6e7d3a4b58";

/// A change of verdict.
struct Change {
    sequence: u64,
    at_ms: u64,
    subject: String,
    reason: String,
}

/// Changes are spread over a hundred subjects.
fn change(sequence: u64) -> Change {
    Change {
        sequence,
        at_ms: 1_700_000_000_000 + sequence,
        subject: format!("catalogue-{:03}", sequence * 37 % 100),
        reason: format!("beat {sequence} came after a silence of 31 s"),
    }
}

fn entries(batch: &[Change]) -> Entries {
    let mut entries = Entries::new(JOURNAL);
    for change in batch {
        let mut says = entries.add(change.sequence, change.at_ms, "transition");
        says.text(Field::Subject, &change.subject).whole(Field::Attempt, 3).whole(Field::Epoch, change.sequence);
        says.text(Field::Previous, "late").text(Field::Current, "alive").text(Field::Reason, &change.reason);
    }
    entries
}

fn insert(connection: &mut Connection, batch: &[Change]) -> anyhow::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(INSERT)?;
        for Change { sequence, at_ms, subject, reason } in batch {
            let (sequence, at) = (sequence.cast_signed(), at_ms.cast_signed());
            statement.execute(params![JOURNAL, sequence, at, subject, 3, sequence, "late", "alive", reason])?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn rows(database: &Path) -> anyhow::Result<i64> {
    let connection = Connection::open(database)?;
    Ok(connection.query_row(
        "SELECT count(*) FROM entries WHERE verdict = 'alive' AND reason LIKE 'beat %'",
        [],
        |row| row.get(0),
    )?)
}
