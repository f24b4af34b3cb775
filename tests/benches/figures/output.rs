//! How fast a job's output goes through its supervisor into its log.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::ensure;

use crate::place::{Place, monotonic};
use crate::table::{Series, Table};

const ROUNDS: usize = 7;

/// What a job writes in a round, and how much of it lies in the file that it copies.
const BYTES: u64 = 1 << 30;
const FILE_BYTES: u64 = 64 << 20;

/// What the supervisor has to keep of a copy without it.
const PART: f64 = 0.8;

/// Measures it beside a copy into a file and one through a pipe into a file, all of which keep as much as a log does.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let source = place.path("source");
    write_source(&source)?;
    let copies = BYTES / FILE_BYTES;
    let source = source.display();
    let cat = format!("i=0; while [ $i -lt {copies} ]; do cat {source}; i=$((i+1)); done");
    let plain = format!("i=0; while [ $i -lt {copies} ]; do cat {source} >out; i=$((i+1)); done");
    let piped = format!("i=0; while [ $i -lt {copies} ]; do cat {source} | cat >out; i=$((i+1)); done");
    let (mut ours, mut plains, mut pipes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let name = format!("output{round}");
        let none = format!("{name}-none");
        let launch = whole(place, &none, "true")?;
        ours.push(rate(whole(place, &name, &cat)?.saturating_sub(launch)));
        plains.push(rate(timed(place.command("sh").args(["-c", &plain]))?));
        pipes.push(rate(timed(place.command("sh").args(["-c", &piped]))?));
        for done in [&name, &none] {
            place.latido(&["remove", done]).status()?;
        }
    }
    let ours = Series::new("a job's output through the supervisor into its log", "GB/s", ours);
    let plain = Series::new("`cat >file`", "GB/s", plains);
    let piped = Series::new("`cat | cat >file`", "GB/s", pipes);
    let met = ours.median() >= 1.0 || ours.median() >= PART * plain.median();
    table.figure(&ours, &[&plain, &piped], "≥ 1 GB/s, or 80 % of `cat >file`", met);
    table.beside(&[&plain, &piped]);
    Ok(())
}

/// Lines such as programs write.
fn write_source(path: &Path) -> anyhow::Result<()> {
    let line = "2026-01-02T03:04:05Z INFO file 000123 of 000900 is recorded, and nothing else is worth a word\n";
    let mut file = File::create(path)?;
    let block = line.repeat(10_000);
    let mut written = 0;
    while written < FILE_BYTES {
        file.write_all(block.as_bytes())?;
        written += block.len() as u64;
    }
    file.set_len(FILE_BYTES)?;
    ensure!(fs::metadata(path)?.len() == FILE_BYTES, "the source is not whole");
    Ok(())
}

/// From the launch of a job that nobody reads along to its end.
fn whole(place: &Place, name: &str, script: &str) -> anyhow::Result<Duration> {
    let launch = timed(&mut place.latido(&["run", "--detach", "--name", name, "--", "sh", "-c", script]))?;
    Ok(launch + timed(&mut place.latido(&["wait", name]))?)
}

fn timed(command: &mut std::process::Command) -> anyhow::Result<Duration> {
    let from = monotonic();
    let status = command.stdout(Stdio::null()).status()?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(monotonic().saturating_sub(from))
}

fn rate(span: Duration) -> f64 {
    BYTES as f64 / 1e9 / span.as_secs_f64()
}
