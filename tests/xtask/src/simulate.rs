//! `cargo xtask simulate`: more seeds than the tests run, or the story of one.

use std::path::Path;

use anyhow::Result;

use crate::shell::{cargo, run};

/// Which seeds.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// How many seeds
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Tell the story of this one alone; of one that fails the shortest that can be found
    #[arg(long)]
    seed: Option<u64>,
}

/// Builds the simulation, alone and optimised, and runs it.
///
/// # Errors
///
/// Fails where a seed fails, whose story has been printed.
pub(crate) fn seeds(root: &Path, options: &Options) -> Result<()> {
    let mut simulation =
        cargo(root, &["run", "--quiet", "--locked", "--release", "--package", "latido-simulation", "--"]);
    match options.seed {
        Some(seed) => simulation.args(["--seed", &seed.to_string()]),
        None => simulation.args(["--from", &options.from.to_string(), "--seeds", &options.seeds.to_string()]),
    };
    run(&mut simulation)
}
