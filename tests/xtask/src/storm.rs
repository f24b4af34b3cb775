//! `cargo xtask storm`: the storm of kills, longer and harder than the tests run it.

use std::path::Path;

use anyhow::{Context, Result};

use crate::shell::{command, run};
use crate::test::{build_tests, is_of_root};

/// The test whose long form this is.
const STORM: &str = "faults::storm::a_storm_of_kills_doubles_nothing_loses_nothing_and_leaves_nothing_behind";

/// How hard it blows.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How many processes are killed
    #[arg(long, default_value_t = 2_000)]
    kills: u64,
    /// How many jobs there are
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
    /// What decides who is killed when; another one each time if not given
    #[arg(long)]
    seed: Option<u64>,
}

/// Builds the tests as `cargo xtask test` does, and runs the storm.
///
/// # Errors
///
/// Fails where something was doubled, lost or left behind; the seed has been printed.
pub(crate) fn blow(root: &Path, options: &Options) -> Result<()> {
    let binaries = build_tests(root)?;
    let system = binaries.iter().find(|binary| is_of_root(binary, root, "it"));
    let system = system.context("cargo built no test `it` of the root")?;
    let mut storm = command(&system.executable, root);
    storm.args(["--exact", STORM, "--nocapture"]).env("CARGO_MANIFEST_DIR", root);
    storm.env("LATIDO_STORM_KILLS", options.kills.to_string()).env("LATIDO_STORM_JOBS", options.jobs.to_string());
    if let Some(seed) = options.seed {
        storm.env("LATIDO_STORM_SEED", seed.to_string());
    }
    run(&mut storm)
}
