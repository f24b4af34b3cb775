//! `cargo xtask guests`: gets what WebAssembly needs and builds the built-in plugins and the tests' guests.
//!
//! What is built lies in `target/components`, the tests' guests in `target/components/guests`. Nothing is done when the
//! sources have not changed since. The same sources in the same place give the same bytes.

mod debian;
mod toolchain;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

pub(crate) use toolchain::Toolchain;

use crate::{say, shell};

/// A workspace of guests: where its members lie, how their modules are named, where their components go.
struct Group {
    sources: &'static str,
    prefix: &'static str,
    components: &'static str,
}

const GROUPS: [Group; 2] = [
    Group { sources: "plugins", prefix: "latido_plugin_", components: "target/components" },
    Group { sources: "tests/guests", prefix: "latido_guest_", components: "target/components/guests" },
];

/// Holds the digest of the sources and of every component, as they were after the last build.
const STAMP: &str = "target/components/built.txt";

/// Builds every component that is not up to date.
///
/// # Errors
///
/// Says what is missing and what to install where no toolchain can be had, and names the workspace, module or file
/// that failed otherwise.
pub(crate) fn build(root: &Path) -> Result<()> {
    let folder = root.join("target/components");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let lock = File::create(folder.join(".lock")).context("cannot create target/components/.lock")?;
    lock.lock().context("cannot lock target/components/.lock")?;
    let sources = sources_digest(root)?;
    if fs::read_to_string(root.join(STAMP)).is_ok_and(|stamp| is_current(root, &stamp, &sources)) {
        say::line("guests: up to date in target/components");
        return Ok(());
    }
    let toolchain = Toolchain::find(root)?;
    let mut built = BTreeMap::new();
    for group in &GROUPS {
        toolchain.build(root, &root.join(group.sources))?;
        for member in members(&root.join(group.sources))? {
            let module = toolchain.output(root).join(format!("{}{}.wasm", group.prefix, member.replace('-', "_")));
            let component = format!("{}/{member}.wasm", group.components);
            built.insert(component.clone(), componentise(&module, &root.join(&component))?);
        }
    }
    write_stamp(root, &sources, &built)?;
    say::line(format_args!("guests: {} components in target/components, built {}", built.len(), toolchain.way()));
    Ok(())
}

/// Turns a core module, which carries its world as a custom section, into a component. Returns the component's digest.
fn componentise(module: &Path, component: &Path) -> Result<String> {
    let bytes = fs::read(module).with_context(|| format!("cannot read the module {}", module.display()))?;
    let encoded = wit_component::ComponentEncoder::default()
        .module(&bytes)
        .and_then(|encoder| encoder.validate(true).encode())
        .with_context(|| format!("cannot turn {} into a component", module.display()))?;
    let folder = component.parent().context("a component lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Replaced whole: a build of the agent that embeds it may be running.
    let new = component.with_extension("new");
    fs::write(&new, &encoded).with_context(|| format!("cannot write {}", new.display()))?;
    fs::rename(&new, component).with_context(|| format!("cannot replace {}", component.display()))?;
    Ok(hex(&Sha256::digest(&encoded)))
}

/// The members of a workspace of guests: the folders that hold a manifest.
fn members(workspace: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace).with_context(|| format!("cannot read {}", workspace.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", workspace.display()))?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "{} has no member with a Cargo.toml", workspace.display());
    Ok(names)
}

/// The digest of everything a component is made from, as far as it lies in the repository.
fn sources_digest(root: &Path) -> Result<String> {
    let mut files = Vec::new();
    for folder in ["wit", "plugins", "tests/guests", "tests/xtask/src/guests"] {
        collect_files(&root.join(folder), &mut files)?;
    }
    files.push(root.join("tests/xtask/src/guests.rs"));
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        digest.update(format!("{name}\n{}\n", bytes.len()));
        digest.update(bytes);
    }
    digest.update(std::env::var(toolchain::CHOICE).unwrap_or_default());
    Ok(hex(&digest.finalize()))
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.is_file() {
            files.push(path);
        } else if path.file_name().is_some_and(|name| name != "target") {
            collect_files(&path, files)?;
        }
    }
    Ok(())
}

/// Tells whether the stamp is of these sources and every component is what was built then.
fn is_current(root: &Path, stamp: &str, sources: &str) -> bool {
    let mut lines = stamp.lines();
    lines.next() == Some(sources)
        && lines.all(|line| {
            line.split_once("  ").is_some_and(|(digest, component)| {
                fs::read(root.join(component)).is_ok_and(|bytes| hex(&Sha256::digest(&bytes)) == digest)
            })
        })
}

fn write_stamp(root: &Path, sources: &str, built: &BTreeMap<String, String>) -> Result<()> {
    let mut stamp = format!("{sources}\n");
    for (component, digest) in built {
        stamp.push_str(&format!("{digest}  {component}\n"));
    }
    fs::write(root.join(STAMP), stamp).with_context(|| format!("cannot write {STAMP}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs a command whose output is wanted, and says what it was where it fails.
fn output(command: &mut std::process::Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start `{}`", shell::show(command)))?;
    ensure!(
        output.status.success(),
        "`{}` failed: {}\n{}",
        shell::show(command),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_component_or_source_is_built_again() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a.wasm"), b"abc").unwrap();
        let stamp = format!("sources\n{}  a.wasm\n", hex(&Sha256::digest(b"abc")));
        assert!(is_current(root.path(), &stamp, "sources"));
        assert!(!is_current(root.path(), &stamp, "other sources"));
        fs::write(root.path().join("a.wasm"), b"abd").unwrap();
        assert!(!is_current(root.path(), &stamp, "sources"));
        fs::remove_file(root.path().join("a.wasm")).unwrap();
        assert!(!is_current(root.path(), &stamp, "sources"));
    }
}
