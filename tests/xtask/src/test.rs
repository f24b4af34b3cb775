//! `cargo xtask test`: all set-up, then every test. The last line printed is the test runner's own summary.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, run, show};
use crate::stages::{Stages, minutes};
use crate::{demo, guests, purity, say};

/// Runs every stage; the first one that fails ends the rest. Budgets are for a fresh machine with two cores, and with
/// those of the lints they add up to the 45 minutes that CI has.
///
/// # Errors
///
/// Names the stage that failed.
pub(crate) fn all(root: &Path) -> Result<()> {
    let mut stages = Stages::default();
    stages.run("guests", minutes(3), || guests::build(root))?;
    stages.run("build", minutes(8), || build(root))?;
    stages.run("purity of the policy", minutes(1), || purity::check(root))?;
    stages.run("shape of the code (tidy)", minutes(1), || run(&mut tests(root, &["--test", "tidy"])))?;
    stages.run("packages", minutes(7), || {
        run(&mut tests(root, &["--exclude", "latido"]))?;
        run(&mut cargo(root, &["test", "--locked", "--package", "latido", "--lib", "--bins"]))
    })?;
    stages.run("doc tests of the agent", minutes(1), || {
        run(&mut cargo(root, &["test", "--locked", "--package", "latido", "--doc"]))
    })?;
    stages.run("demo", minutes(2), || demo::run(&demo::Options::default()))?;
    let mut summary = Vec::new();
    let last = stages.run("the whole system", minutes(8), || {
        let mut command = cargo(root, &["test", "--locked", "--package", "latido", "--test", "it"]);
        command.stdout(Stdio::piped());
        let mut runner = command.spawn().with_context(|| format!("cannot start `{}`", show(&command)))?;
        let output = runner.stdout.take().context("the runner has no output")?;
        summary = hold_back_summary(BufReader::new(output), say::line)?;
        let status = runner.wait().context("cannot wait for the runner")?;
        if !status.success() {
            bail!("`{}` failed: {status}", show(&command));
        }
        Ok(())
    });
    say::line(format_args!("\n{}", stages.table()));
    for line in summary {
        say::line(line);
    }
    last
}

/// Builds every program that a test or the demo starts.
pub(crate) fn build(root: &Path) -> Result<()> {
    run(&mut cargo(root, &["build", "--locked", "--workspace", "--bins"]))
}

fn tests(root: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = cargo(root, &["test", "--locked", "--workspace"]);
    command.args(arguments);
    command
}

/// Passes lines on as they come and keeps back the last `test result: …` line, so that it can be printed last.
fn hold_back_summary(output: impl BufRead, mut pass_on: impl FnMut(String)) -> Result<Vec<String>> {
    let mut held: Vec<String> = Vec::new();
    for line in output.lines() {
        let line = line.context("cannot read what the test runner prints")?;
        if line.starts_with("test result:") {
            held.drain(..).for_each(&mut pass_on);
            held.push(line);
        } else if !line.is_empty() {
            held.drain(..).for_each(&mut pass_on);
            pass_on(line);
        }
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(output: &str) -> (Vec<String>, Vec<String>) {
        let mut passed = Vec::new();
        let held = hold_back_summary(output.as_bytes(), |line| passed.push(line)).unwrap();
        (passed, held)
    }

    #[test]
    fn the_runners_summary_is_kept_for_the_end() {
        let (passed, held) = held("\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed\n\n");
        assert_eq!(passed, ["running 1 test", "test a ... ok"]);
        assert_eq!(held, ["test result: ok. 1 passed; 0 failed"]);
    }

    #[test]
    fn nothing_is_lost_when_more_follows_a_summary() {
        let (passed, held) = held("test result: ok. 1 passed\nrunning 2 tests\ntest result: FAILED. 1 passed\n");
        assert_eq!(passed, ["test result: ok. 1 passed", "running 2 tests"]);
        assert_eq!(held, ["test result: FAILED. 1 passed"]);
    }
}
