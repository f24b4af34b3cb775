//! `cargo xtask mutants`: the policy with one small fault after another, each of which its tests have to catch.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::say;
use crate::shell::{cargo, show, succeeds};

/// Of a hundred mutants so many are caught at least.
const CAUGHT_PERCENT: usize = 95;

/// The mutants that may survive, each with its reason.
const ACCEPTED: &str = "agent/policy/tests/mutants.txt";

/// Between a mutant and its reason.
const BECAUSE: &str = " | ";

/// Which mutants.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Judge the results of the last run, and run nothing
    #[arg(long)]
    last: bool,
}

/// What a run left: a line for each mutant, `file:line:column: what in which function`.
#[derive(Debug, Default)]
struct Results {
    caught: usize,
    missed: Vec<String>,
}

/// Runs cargo-mutants on the policy and judges what survived.
///
/// # Errors
///
/// Where too few are caught, where one survives without a reason, and where a reason is given for one that is caught.
pub(crate) fn policy(root: &Path, options: &Options) -> Result<()> {
    let output = root.join("target/mutants");
    if !options.last {
        ensure!(
            succeeds(&mut cargo(root, &["mutants", "--version"])),
            "cargo-mutants is not installed: the policy's tests were NOT tried (`cargo install cargo-mutants --locked`)"
        );
        let mut mutants =
            cargo(root, &["mutants", "--package", "latido-policy", "--profile", "mutants", "--no-shuffle"]);
        mutants.arg("--output").arg(&output);
        let status = mutants.status().with_context(|| format!("cannot start `{}`", show(&mutants)))?;
        // 2 and 3: some survived, or had to be ended; both are judged here.
        ensure!(matches!(status.code(), Some(0 | 2 | 3)), "`{}` failed: {status}", show(&mutants));
    }
    let accepted = std::fs::read_to_string(root.join(ACCEPTED)).with_context(|| format!("cannot read {ACCEPTED}"))?;
    let results = read(&output.join("mutants.out"))?;
    say::line(judge(&results, &accepted)?);
    Ok(())
}

fn read(folder: &Path) -> Result<Results> {
    let lines = |name: &str| -> Result<Vec<String>> {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    // A mutant that runs for ever is seen by whoever waits for it.
    Ok(Results { caught: lines("caught.txt")?.len() + lines("timeout.txt")?.len(), missed: lines("missed.txt")? })
}

/// Answers the figure in words.
fn judge(results: &Results, accepted: &str) -> Result<String> {
    let accepted: BTreeSet<&str> = accepted
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once(BECAUSE).map(|(mutant, _)| mutant).with_context(|| format!("no reason: {line}")))
        .collect::<Result<_>>()?;
    let missed: BTreeSet<String> = results.missed.iter().map(|line| without_place(line)).collect();
    let total = results.caught + results.missed.len();
    let percent = results.caught * 100 / total.max(1);
    let unknown: Vec<&String> = missed.iter().filter(|mutant| !accepted.contains(mutant.as_str())).collect();
    if let Some(first) = unknown.first() {
        bail!("{} mutants survive without a reason in {ACCEPTED}, the first: {first}", unknown.len());
    }
    if let Some(caught) = accepted.iter().find(|mutant| !missed.contains(**mutant)) {
        bail!("{ACCEPTED} has a reason for a mutant that is caught, or is no more: {caught}");
    }
    ensure!(percent >= CAUGHT_PERCENT, "{percent} of a hundred mutants are caught; {CAUGHT_PERCENT} have to be");
    Ok(format!("{} of {total} mutants are caught, {percent} of a hundred", results.caught))
}

/// A mutant without line and column, which change with everything above it.
fn without_place(line: &str) -> String {
    let mut parts = line.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(what)) => format!("{file}:{what}"),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(caught: usize, missed: &[&str]) -> Results {
        Results { caught, missed: missed.iter().map(|line| (*line).to_owned()).collect() }
    }

    #[test]
    fn a_survivor_has_a_reason_and_a_reason_has_a_survivor() {
        let accepted = "# those that survive\nsrc/a.rs: replace > with >= in f | equal: both end at once\n";
        let survivor = "src/a.rs:10:4: replace > with >= in f";
        assert_eq!(
            judge(&results(99, &[survivor]), accepted).unwrap(),
            "99 of 100 mutants are caught, 99 of a hundred"
        );
        let unknown = judge(&results(99, &[survivor, "src/a.rs:11:4: replace f with ()"]), accepted).unwrap_err();
        assert!(unknown.to_string().ends_with("the first: src/a.rs: replace f with ()"), "{unknown}");
        assert!(judge(&results(99, &[]), accepted).unwrap_err().to_string().contains("is caught, or is no more"));
        assert!(judge(&results(9, &[survivor]), accepted).unwrap_err().to_string().contains("95 have to be"));
        assert!(judge(&results(9, &[]), "src/a.rs: without a reason\n").is_err());
    }
}
