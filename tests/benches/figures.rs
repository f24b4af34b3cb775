//! The figures that latido is held to, each measured beside a floor or a peer in the same run.
//!
//! `cargo bench --bench figures` runs all of them on the programs beside each other in the target folder;
//! `-- --bin-dir DIR` takes the programs from elsewhere, `-- --only NAME` measures a part (`launch`, `detect`, `resume`,
//! `output`, `idle`, `start`, `sink`, `plugin`). The table goes to stdout as Markdown. Absolute times move with the machine's neighbours: compare
//! ratios, and look at the load beside each figure. Peers (runit, s6) are measured where they are installed.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use latido::jobs::clock::Deadline;

#[path = "figures/detect.rs"]
mod detect;
#[path = "figures/idle.rs"]
mod idle;
#[path = "figures/launch.rs"]
mod launch;
#[path = "figures/output.rs"]
mod output;
#[path = "figures/peer.rs"]
mod peer;
#[path = "figures/place.rs"]
mod place;
#[path = "figures/plugin.rs"]
mod plugin;
#[path = "figures/resume.rs"]
mod resume;
#[path = "figures/sink.rs"]
mod sink;
#[path = "figures/start.rs"]
mod start;
#[path = "figures/table.rs"]
mod table;

use place::Place;
use table::Table;

/// Measures one figure of the table.
type Figure = fn(&Place, &mut Table) -> anyhow::Result<()>;

/// The figures by name, in the order in which they are measured.
const FIGURES: [(&str, Figure); 8] = [
    ("launch", launch::measure),
    ("detect", detect::measure),
    ("resume", resume::measure),
    ("output", output::measure),
    ("idle", idle::measure),
    ("start", start::measure),
    ("sink", sink::measure),
    ("plugin", plugin::measure),
];

fn main() -> anyhow::Result<()> {
    let born = place::monotonic();
    let mut words = std::env::args_os().skip(1);
    let first = words.next().unwrap_or_default();
    match first.to_str() {
        Some("--mark") => mark(born.as_nanos(), Path::new(&words.next().context("give a file to mark")?)),
        Some("--floor") => start::floor(Path::new(&words.next().context("give a folder")?)),
        _ => measure(std::env::args().skip(1)),
    }
}

/// Plays the job: writes when it ran first, and stays.
fn mark(nanos: u128, file: &Path) -> anyhow::Result<()> {
    let line = format!("{nanos} {}\n", std::process::id());
    File::options().create(true).append(true).open(file)?.write_all(line.as_bytes())?;
    loop {
        Deadline::NEVER.rest(std::time::Duration::from_secs(3600));
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark's table is its output")]
fn measure(mut words: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut programs = PathBuf::from(env!("CARGO_BIN_EXE_latido")).parent().context("find the programs")?.to_owned();
    let mut only = None;
    let mut is_asked = false;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--bench" => is_asked = true,
            "--bin-dir" => programs = std::path::absolute(words.next().context("give a folder after --bin-dir")?)?,
            "--only" => only = Some(words.next().context("give a figure after --only")?),
            other => anyhow::bail!("cannot understand `{other}`"),
        }
    }
    if !is_asked {
        println!("nothing is measured; run `cargo bench --bench figures`");
        return Ok(());
    }
    let mut table = Table::default();
    for (name, figure) in FIGURES {
        if only.as_ref().is_none_or(|wanted| wanted == name) {
            let place = Place::new(&programs)?;
            figure(&place, &mut table).with_context(|| format!("measure {name}"))?;
        }
    }
    println!("{}", table.text());
    Ok(())
}
