//! What a call into the sandbox costs, a batch of entries, their lines in a file, a load from the cache, and an instance.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;
use latido_plugin_host::{Entries, Field, Host, HostSettings, Kind, PluginSpec, Sink};
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::place::{Place, monotonic, pss_kib};
use crate::table::{Series, Table};

/// Rounds of a series, and calls in each where one is too short for a clock.
const ROUNDS: usize = 100;
const CALLS: u32 = 1_000;

/// Entries in a batch: what the agent's default config allows at most.
const BATCH: u64 = 1_000;

/// Instances that are there at once where their memory is measured.
const INSTANCES: usize = 50;

struct Ground<'a> {
    place: &'a Place,
    runtime: Runtime,
}

impl Ground<'_> {
    fn host(&self) -> anyhow::Result<Host> {
        Ok(Host::new(HostSettings { cache: self.place.path("compiled"), compiler: None, metered: false })?)
    }

    fn load(&self, host: &Host, component: &str) -> anyhow::Result<Sink> {
        Ok(self.runtime.block_on(host.load_sink(self.spec(component)?))?)
    }

    /// A sink; the guest `misbehave`, which is told nothing, takes every batch and does nothing with it.
    fn spec(&self, component: &str) -> anyhow::Result<PluginSpec> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/components").join(component);
        let mut spec = PluginSpec::new("measured", Kind::Sink, std::fs::read(path)?);
        spec.limits.cpu = Duration::from_secs(60);
        match component {
            "jsonl.wasm" => drop(spec.grants.files.insert("main".to_owned(), self.lines().into())),
            _ => spec.settings = serde_json::json!({ "where": "never", "what": "" }),
        }
        Ok(spec)
    }

    fn lines(&self) -> PathBuf {
        self.place.path("lines.jsonl")
    }
}

const TAKES_ALL: &str = "guests/misbehave.wasm";

/// Measures all of them.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ground = Ground { place, runtime };
    warm_call(&ground, table)?;
    batch(&ground, table)?;
    lines(&ground, table)?;
    load(&ground, table)?;
    memory(&ground, table)
}

fn micros(span: Duration, count: u32) -> f64 {
    span.as_secs_f64() * 1e6 / f64::from(count)
}

fn warm_call(ground: &Ground<'_>, table: &mut Table) -> anyhow::Result<()> {
    let host = ground.host()?;
    let mut sink = ground.load(&host, TAKES_ALL)?;
    let mut values = Vec::new();
    for _ in 0..ROUNDS {
        let begun = monotonic();
        ground.runtime.block_on(async {
            for _ in 0..CALLS {
                sink.flush().await?;
            }
            anyhow::Ok(())
        })?;
        values.push(micros(monotonic().saturating_sub(begun), CALLS));
    }
    let call = Series::new("an empty warm call", "µs", values);
    table.figure(&call, &[], "≤ 0.8 µs", call.median() <= 0.8);
    Ok(())
}

/// A change of verdict, as `latido events --json` shows it.
#[derive(Serialize)]
struct Line {
    agent: &'static str,
    sequence: u64,
    at: u64,
    kind: &'static str,
    subject: String,
    attempt: u32,
    epoch: u64,
    previous: &'static str,
    current: &'static str,
    reason: String,
}

fn changes(first: u64) -> Vec<Line> {
    let line = |sequence| Line {
        agent: "0f4c1f6e7d3a4b58",
        sequence,
        at: 1_700_000_000_000 + sequence,
        kind: "transition",
        subject: format!("catalogue-{:03}", sequence * 37 % 100),
        attempt: 3,
        epoch: sequence,
        previous: "late",
        current: "alive",
        reason: format!("beat {sequence} came after a silence of 31 s"),
    };
    (first..first + BATCH).map(line).collect()
}

fn entries(changes: &[Line]) -> Entries {
    let mut entries = Entries::new("0f4c1f6e7d3a4b58");
    for change in changes {
        let mut says = entries.add(change.sequence, change.at, change.kind);
        says.text(Field::Subject, &change.subject).whole(Field::Attempt, change.attempt.into());
        says.whole(Field::Epoch, change.epoch).text(Field::Previous, change.previous);
        says.text(Field::Current, change.current).text(Field::Reason, &change.reason);
    }
    entries
}

/// Beside it the least that a host does which passes JSON: it writes the entries and reads them again.
fn batch(ground: &Ground<'_>, table: &mut Table) -> anyhow::Result<()> {
    let host = ground.host()?;
    let mut sink = ground.load(&host, TAKES_ALL)?;
    let (mut ours, mut json) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        let changes = changes(round * BATCH + 1);
        let entries = entries(&changes);
        let begun = monotonic();
        let acknowledged = ground.runtime.block_on(sink.write(&entries))?;
        ours.push(micros(monotonic().saturating_sub(begun), 1));
        ensure!(acknowledged.durable == (round + 1) * BATCH, "the sink did not take the batch");
        let begun = monotonic();
        let text = serde_json::to_vec(&changes)?;
        let read: Vec<serde_json::Value> = serde_json::from_slice(&text)?;
        json.push(micros(monotonic().saturating_sub(begun), 1));
        ensure!(read.len() as u64 == BATCH, "{} entries", read.len());
    }
    let ours = Series::new("a batch of 1,000 entries to a Rust guest", "µs", ours);
    let json = Series::new("the same to JSON and back", "µs", json);
    table.figure(&ours, &[&json], "≤ 60 µs", ours.median() <= 60.0);
    table.beside(&[&json]);
    Ok(())
}

/// Both wait for the disk after each batch.
fn lines(ground: &Ground<'_>, table: &mut Table) -> anyhow::Result<()> {
    let host = ground.host()?;
    let mut sink = ground.load(&host, "jsonl.wasm")?;
    let mut file = BufWriter::new(File::create(ground.place.path("direct.jsonl"))?);
    let (mut ours, mut direct) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS as u64 {
        let changes = changes(round * BATCH + 1);
        let entries = entries(&changes);
        let begun = monotonic();
        ground.runtime.block_on(sink.write(&entries))?;
        ours.push(micros(monotonic().saturating_sub(begun), 1));
        let begun = monotonic();
        for change in &changes {
            serde_json::to_writer(&mut file, change)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        file.get_ref().sync_data()?;
        direct.push(micros(monotonic().saturating_sub(begun), 1));
    }
    let written = std::fs::read_to_string(ground.lines())?.lines().count();
    ensure!(written == ROUNDS * changes(1).len(), "{written} lines");
    let ours = Series::new("a batch of 1,000 by the sink jsonl", "µs", ours);
    let direct = Series::new("serde_json and BufWriter", "µs", direct);
    let rate = direct.median() / ours.median();
    table.figure(&ours, &[&direct], &format!("≥ 50 % of its rate; {:.0} %", rate * 100.0), rate >= 0.5);
    table.beside(&[&direct]);
    Ok(())
}

fn load(ground: &Ground<'_>, table: &mut Table) -> anyhow::Result<()> {
    let rust = loads(ground, || ground.spec(TAKES_ALL))?;
    let rust = Series::new("a load of a Rust component from the cache", "ms", rust);
    table.figure(&rust, &[], "≤ 1 ms", rust.median() <= 1.0);
    let Some(component) = python(ground.place)? else { return Ok(()) };
    let python = loads(ground, || {
        let mut spec = PluginSpec::new("measured", Kind::Sink, component.clone());
        spec.limits.cpu = Duration::from_secs(60);
        spec.grants.files.insert("main".to_owned(), ground.place.path("python.csv").into());
        Ok(spec)
    })?;
    let python = Series::new("a load of a Python component from the cache", "ms", python);
    table.figure(&python, &[], "≤ 20 ms", python.median() <= 20.0);
    Ok(())
}

/// Milliseconds of loads, each by a host of its own, as an agent that starts. The first one compiles, and is not counted.
fn loads(ground: &Ground<'_>, spec: impl Fn() -> anyhow::Result<PluginSpec>) -> anyhow::Result<Vec<f64>> {
    drop(ground.runtime.block_on(ground.host()?.load_sink(spec()?))?);
    let mut values = Vec::new();
    for _ in 0..ROUNDS / 5 {
        let (host, spec) = (ground.host()?, spec()?);
        let begun = monotonic();
        let sink = ground.runtime.block_on(host.load_sink(spec))?;
        values.push(monotonic().saturating_sub(begun).as_secs_f64() * 1e3);
        drop(sink);
    }
    Ok(values)
}

/// The example of a sink in Python, where its tool has been installed, as `cargo xtask test` does it.
fn python(place: &Place) -> anyhow::Result<Option<Vec<u8>>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tool = root.join("target/tools/python/bin/componentize-py");
    if !tool.is_file() {
        return Ok(None);
    }
    let project = place.path("csv-python");
    let copied = place.command("cp").arg("-r").arg(root.join("examples/plugins/csv-python")).arg(&project).status()?;
    ensure!(copied.success(), "the example cannot be copied");
    let mut build = place.latido(&["plugin", "build"]);
    let built = build.arg(&project).env("LATIDO_COMPONENTIZE_PY", tool).status()?;
    ensure!(built.success(), "`latido plugin build` ended with {built}");
    Ok(Some(std::fs::read(project.join("build/csv-python.wasm"))?))
}

fn memory(ground: &Ground<'_>, table: &mut Table) -> anyhow::Result<()> {
    let host = ground.host()?;
    let first = ground.load(&host, TAKES_ALL)?;
    let before = pss_kib(std::process::id())?;
    let sinks: Vec<Sink> = (0..INSTANCES).map(|_| ground.load(&host, TAKES_ALL)).collect::<anyhow::Result<_>>()?;
    let each = (pss_kib(std::process::id())? - before) / sinks.len() as f64;
    drop((first, sinks));
    let memory = Series::new("an instance of a Rust component", "KiB", vec![each]);
    table.figure(&memory, &[], "≤ 256 KiB", memory.median() <= 256.0);
    Ok(())
}
