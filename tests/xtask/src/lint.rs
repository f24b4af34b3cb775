//! `cargo xtask lint`: form and lints of everything, with warnings as errors.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::shell::{cargo, run, succeeds};
use crate::stages::{Stages, minutes};
use crate::{guests, say, wit_check};

/// Runs every lint; the first one that fails ends the rest. Budgets are for a fresh machine with two cores.
///
/// # Errors
///
/// Names the lint that failed.
pub(crate) fn all(root: &Path) -> Result<()> {
    let mut stages = Stages::default();
    stages.run("form: cargo fmt", minutes(1), || {
        for workspace in workspaces(root) {
            run(&mut cargo(&workspace, &["fmt", "--all", "--check"]))?;
        }
        Ok(())
    })?;
    stages.run("guests", minutes(4), || guests::build(root))?;
    stages.run("interface: wit-check", minutes(1), || wit_check::check(root))?;
    stages.run("lints: cargo clippy", minutes(6), || {
        let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        for workspace in workspaces(root) {
            let mut clippy = cargo(&workspace, &arguments);
            if workspace != root {
                clippy.env("CARGO_TARGET_DIR", root.join("target/guests/host")); // one for all, outside their sources
            }
            run(&mut clippy)?;
        }
        Ok(())
    })?;
    stages.run("documents: cargo doc", minutes(2), || {
        let mut doc = cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    stages.run("dependencies: cargo deny", minutes(1), || deny(root))?;
    say::line(stages.table());
    Ok(())
}

/// The workspaces of the repository: the main one, and those that are built for WebAssembly.
fn workspaces(root: &Path) -> Vec<PathBuf> {
    let all = [root.to_owned(), root.join("plugins"), root.join("tests/guests")];
    all.into_iter().filter(|folder| folder.join("Cargo.toml").is_file()).collect()
}

/// Checks licences, bans and sources. Advisories change from day to day and need the network: a job of their own.
fn deny(root: &Path) -> Result<()> {
    if !succeeds(&mut cargo(root, &["deny", "--version"])) {
        say::warning("cargo-deny is not installed: licences and sources were NOT checked (`cargo install cargo-deny`)");
        return Ok(());
    }
    run(&mut cargo(root, &["deny", "--offline", "--workspace", "check", "bans", "licenses", "sources"]))
}
