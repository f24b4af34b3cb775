//! `cargo xtask`: everything around the build. It starts programs and reads what they left; it decides nothing for latido.

mod clock;
mod demo;
mod fuzz;
mod guests;
mod lint;
mod mutants;
mod purity;
mod say;
mod shell;
mod simulate;
mod stages;
mod storm;
mod test;
mod tools;
mod wit_check;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Everything around the build of latido")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Get what WebAssembly needs and build the built-in plugins and the tests' guests
    Guests,
    /// Check form, lints, documents and licences, with warnings as errors
    Lint,
    /// Set everything up and run every test
    Test,
    /// Kill a real job at every level, and show and check that it goes on where it was
    Demo(demo::Options),
    /// What CI runs: lint, then test
    Ci,
    /// Check that the policy imports nothing, also not by accident
    Purity,
    /// Compare wit/ with the last release of the package, and say compatible or breaking and where
    WitCheck,
    /// Run the simulation with more seeds, or tell the story of one
    Simulate(simulate::Options),
    /// Try the policy's tests on mutants of the policy (needs cargo-mutants)
    Mutants(mutants::Options),
    /// Kill agents, supervisors and jobs at random, many times, and look for doubles and losses
    Storm(storm::Options),
    /// Mutate files and messages for longer than the tests do, and see that every parser holds what it promises
    Fuzz(fuzz::Options),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    let root = root()?;
    match &cli.command {
        Command::Guests => guests::build(&root),
        Command::Lint => lint::all(&root),
        Command::Test => test::all(&root),
        Command::Demo(options) => demo::run_fresh(&root, options),
        Command::Ci => lint::all(&root).and_then(|()| test::all(&root)),
        Command::Purity => purity::check(&root),
        Command::WitCheck => wit_check::check(&root),
        Command::Simulate(options) => simulate::seeds(&root, options),
        Command::Mutants(options) => mutants::policy(&root, options),
        Command::Storm(options) => storm::blow(&root, options),
        Command::Fuzz(options) => fuzz::targets(&root, options),
    }
}

/// The repository: two folders above this package, which cargo names.
fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&package).ancestors().nth(2).context("xtask lies two folders below the repository's root")?;
    Ok(root.to_owned())
}

/// The folder that cargo builds programs into: that of xtask itself.
pub(crate) fn programs() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find the path of xtask")?;
    Ok(own.parent().context("a program without a folder")?.to_owned())
}

#[expect(clippy::print_stderr, reason = "the one place where an error is printed, its causes joined")]
fn complain(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  cause: {cause}");
    }
}
