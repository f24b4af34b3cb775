//! `cargo xtask fuzz`: the parsers of files and messages, tried for longer than the tests do it.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::say;
use crate::shell::{cargo, run};

/// The folder of each target holds its corpus: this is the list of targets.
const CORPUS: &str = "tests/fuzz/corpus";

/// The packages whose tests `fuzz_…` the targets are.
const PACKAGES: [&str; 3] = ["latido-protocol", "latido-process", "latido-supervisor"];

/// The engine's own target, for its tests.
const OWN: &str = "own";

/// How long, and what.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How long in all, shared by the targets
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// One target alone, by the name of its folder in tests/fuzz/corpus
    #[arg(long)]
    target: Option<String>,
    /// What inputs are made from; another one each time if not given
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the targets one after another.
///
/// # Errors
///
/// Fails at the first finding; its smallest input has been printed, with the seed and the file that it was saved as.
pub(crate) fn targets(root: &Path, options: &Options) -> Result<()> {
    let known = known(root)?;
    let chosen: Vec<&String> = match &options.target {
        Some(name) if !known.contains(name) => bail!("no target {name}; there are {}", known.join(", ")),
        Some(name) => known.iter().filter(|known| *known == name).collect(),
        None => known.iter().collect(),
    };
    let seed = options.seed.unwrap_or_else(any_seed);
    let seconds = (options.minutes * 60 / chosen.len() as u64).max(1);
    say::line(format_args!("seed {seed}, {seconds} s for each of {} targets", chosen.len()));
    for target in chosen {
        let mut fuzz = cargo(root, &["test", "--quiet", "--locked"]);
        fuzz.args(PACKAGES.iter().flat_map(|package| ["--package", *package])).args(["--lib", "--bins", "--tests"]);
        fuzz.arg(test_of(target)).args(["--", "--nocapture"]);
        fuzz.env("LATIDO_FUZZ_SECONDS", seconds.to_string()).env("LATIDO_FUZZ_SEED", seed.to_string());
        run(&mut fuzz)?;
    }
    Ok(())
}

fn known(root: &Path) -> Result<Vec<String>> {
    let folder = root.join(CORPUS);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != OWN);
    names.sort();
    Ok(names)
}

/// Another one each time: the standard library seeds its maps so.
fn any_seed() -> u64 {
    RandomState::new().hash_one(()) % 1_000_000
}

/// The test that a target is.
fn test_of(target: &str) -> String {
    format!("fuzz_{}", target.replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_corpus_has_its_test_and_every_test_its_corpus() {
        let root = crate::root().unwrap();
        let places =
            ["agent/protocol/tests/fuzz.rs", "agent/process/src/fuzz.rs", "agent/supervisor/src/control/fuzz.rs"];
        let texts = places.map(|place| std::fs::read_to_string(root.join(place)).unwrap()).concat();
        let mut tests: Vec<&str> = texts.lines().filter_map(|line| line.trim().strip_prefix("fn fuzz_")).collect();
        tests.sort_unstable();
        let known: Vec<String> = known(&root).unwrap().iter().map(|target| test_of(target) + "() {").collect();
        assert_eq!(tests.iter().map(|test| format!("fuzz_{test}")).collect::<Vec<_>>(), known);
    }
}
