//! `cargo xtask test`: all set-up, then every test. The last line printed is the test runner's own summary.
//!
//! Cargo is asked once, for the whole workspace, and what it built is then run from here. Another selection of packages
//! is another selection of their dependencies' features, and would build the WebAssembly engine a second time.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::shell::{cargo, command, run, show};
use crate::stages::{Stages, minutes};
use crate::{demo, guests, purity, say, tools};

/// A test binary that cargo built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    /// The package's folder, in which the binary is run.
    folder: PathBuf,
    /// The target's name.
    target: String,
    pub(crate) executable: PathBuf,
}

/// Runs every stage; the first one that fails ends the rest. Budgets are for a fresh machine with two cores, and with
/// those of the lints they add up to the 45 minutes that CI has.
///
/// # Errors
///
/// Names the stage that failed.
pub(crate) fn all(root: &Path) -> Result<()> {
    let mut stages = Stages::default();
    let mut binaries = Vec::new();
    stages.run("guests", minutes(2), || guests::build(root))?;
    stages.run("tools of plugin authors", minutes(2), || tools::install(root))?;
    stages.run("build", minutes(12), || {
        binaries = build_tests(root)?;
        Ok(())
    })?;
    let system = binaries.iter().find(|binary| is_of_root(binary, root, "it"));
    let system = system.context("cargo built no test `it` of the root")?;
    let tidy = binaries.iter().find(|binary| is_of_root(binary, root, "tidy"));
    let tidy = tidy.context("cargo built no test `tidy`")?;
    stages.run("purity of the policy", minutes(1), || purity::check(root))?;
    stages.run("shape of the code", minutes(1), || run_tests(root, tidy))?;
    let is_simulation = |binary: &Binary| binary.folder.ends_with("tests/simulation");
    stages.run("simulation", minutes(1), || {
        binaries.iter().filter(|binary| is_simulation(binary)).try_for_each(|binary| run_tests(root, binary))
    })?;
    stages.run("packages", minutes(8), || {
        let others = binaries.iter().filter(|binary| *binary != system && *binary != tidy && !is_simulation(binary));
        others.clone().try_for_each(|binary| run_tests(root, binary))
    })?;
    stages.run("examples in the documents", minutes(1), || {
        run(&mut cargo(root, &["test", "--locked", "--workspace", "--doc"]))
    })?;
    stages.run("demo", minutes(2), || demo::run(&demo::Options::default()))?;
    let mut summary = Vec::new();
    let last = stages.run("the whole system", minutes(7), || {
        summary = run_and_hold_back(&system.executable, &system.folder)?;
        Ok(())
    });
    say::line(format_args!("\n{}", stages.table()));
    for line in summary {
        say::line(line);
    }
    last
}

/// Builds every program that a test or the demo starts. One test is asked for beside them, so that the features of
/// dependencies are those of [`all`].
///
/// # Errors
///
/// Fails where cargo does.
pub(crate) fn build_programs(root: &Path) -> Result<()> {
    run(&mut cargo(root, &["build", "--locked", "--workspace", "--bins", "--test", "tidy"]))
}

/// True for the root package's test of this name.
pub(crate) fn is_of_root(binary: &Binary, root: &Path, target: &str) -> bool {
    binary.folder == root && binary.target == target
}

/// Builds every test of the workspace, and the programs that they start.
pub(crate) fn build_tests(root: &Path) -> Result<Vec<Binary>> {
    let mut build = cargo(root, &["test", "--locked", "--workspace", "--no-run"]);
    build.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let output = build.spawn().and_then(std::process::Child::wait_with_output);
    let output = output.with_context(|| format!("cannot run `{}`", show(&build)))?;
    ensure!(output.status.success(), "`{}` failed: {}", show(&build), output.status);
    let binaries = test_binaries(&String::from_utf8_lossy(&output.stdout))?;
    ensure!(!binaries.is_empty(), "`{}` built no test", show(&build));
    Ok(binaries)
}

/// Finds the test binaries in cargo's messages.
fn test_binaries(messages: &str) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).with_context(|| format!("no message of cargo: {line}"))?;
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
        let is_test = message.pointer("/profile/test").and_then(Value::as_bool).unwrap_or(false);
        if let (true, Some(executable)) = (is_test, text("/executable")) {
            let manifest = Path::new(text("/manifest_path").context("a package without a manifest")?);
            binaries.push(Binary {
                folder: manifest.parent().context("a manifest without a folder")?.to_owned(),
                target: text("/target/name").context("a target without a name")?.to_owned(),
                executable: executable.into(),
            });
        }
    }
    Ok(binaries)
}

/// Runs a test binary as cargo would.
fn run_tests(root: &Path, binary: &Binary) -> Result<()> {
    let folder = binary.folder.strip_prefix(root).unwrap_or(&binary.folder);
    say::line(format_args!("\n-- {} {}", binary.target, folder.display()));
    run(command(&binary.executable, &binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder))
}

/// Runs a test binary, passes on what it prints, and returns its summary.
fn run_and_hold_back(executable: &Path, folder: &Path) -> Result<Vec<String>> {
    let mut command = command(executable, folder);
    command.env("CARGO_MANIFEST_DIR", folder).stdout(Stdio::piped());
    let mut runner = command.spawn().with_context(|| format!("cannot start `{}`", show(&command)))?;
    let output = runner.stdout.take().context("the runner has no output")?;
    let summary = hold_back_summary(BufReader::new(output), say::line)?;
    let status = runner.wait().context("cannot wait for the runner")?;
    if !status.success() {
        summary.into_iter().for_each(say::line);
        bail!("`{}` failed: {status}", show(&command));
    }
    Ok(summary)
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
    fn test_binaries_are_found_in_cargos_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/r/agent/x/Cargo.toml\",\"target\":{\"name\":\"it\"},\
                        \"profile\":{\"test\":true},\"executable\":\"/t/it-1\"}\n\
                        {\"reason\":\"compiler-artifact\",\"manifest_path\":\"/r/Cargo.toml\",\"target\":{\"name\":\"latido\"},\
                        \"profile\":{\"test\":false},\"executable\":\"/t/latido\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        let it = Binary { folder: "/r/agent/x".into(), target: "it".to_owned(), executable: "/t/it-1".into() };
        assert_eq!(test_binaries(messages).unwrap(), [it]);
        assert!(test_binaries("rubbish").is_err());
    }

    #[test]
    fn a_runner_that_fails_is_told() {
        assert!(run_and_hold_back(Path::new("/bin/true"), Path::new("/")).unwrap().is_empty());
        let error = run_and_hold_back(Path::new("/bin/false"), Path::new("/")).unwrap_err().to_string();
        assert_eq!(error, "`false` failed: exit status: 1");
    }

    #[test]
    fn nothing_is_lost_when_more_follows_a_summary() {
        let (passed, held) = held("test result: ok. 1 passed\nrunning 2 tests\ntest result: FAILED. 1 passed\n");
        assert_eq!(passed, ["test result: ok. 1 passed", "running 2 tests"]);
        assert_eq!(held, ["test result: FAILED. 1 passed"]);
    }
}
