//! `cargo xtask purity`: the policy as a WebAssembly module imports nothing, so there is nothing it could look at.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use wasmparser::{Parser, Payload};

use crate::guests::Toolchain;
use crate::say;
use crate::shell::run;

/// A module has to be a `cdylib`; this one exports a function that keeps every part of the policy from being left out.
const WRAPPER: &str = include_str!("purity/wrapper.rs");

/// Builds the policy for `wasm32-unknown-unknown` and looks at the module's imports.
///
/// # Errors
///
/// Names what is imported; fails where the guest toolchain does.
pub(crate) fn check(root: &Path) -> Result<()> {
    let module = build(root)?;
    let bytes = std::fs::read(&module).with_context(|| format!("cannot read {}", module.display()))?;
    let imports = imports(&bytes)?;
    ensure!(imports.is_empty(), "the policy imports {}; it has to be told instead", imports.join(", "));
    say::line(format_args!("the policy as a WebAssembly module ({} kB) imports nothing", bytes.len() / 1000));
    Ok(())
}

/// Writes the wrapper's crate into the target folder and builds it with the guests' toolchain.
fn build(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/purity");
    let source = folder.join("src");
    std::fs::create_dir_all(&source).with_context(|| format!("cannot create {}", source.display()))?;
    for (path, text) in [(folder.join("Cargo.toml"), manifest(root)), (source.join("lib.rs"), WRAPPER.to_owned())] {
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let toolchain = Toolchain::find(root)?;
    run(&mut toolchain.cargo(root, &folder)?)?;
    Ok(toolchain.output(root).join("latido_purity.wasm"))
}

/// A workspace of its own; without optimisation, so that nothing is found to be dead and left out.
fn manifest(root: &Path) -> String {
    let policy = root.join("agent/policy");
    format!(
        "[package]\nname = \"latido-purity\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\nlatido-policy = {{ path = {policy:?} }}\n\n\
         [profile.release]\nopt-level = 0\npanic = \"abort\"\n\n[workspace]\n"
    )
}

/// What a module asks its host for, as `module.name`.
fn imports(module: &[u8]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ImportSection(section) = payload.context("the module cannot be read")? {
            for import in section.into_imports() {
                let import = import.context("an import cannot be read")?;
                found.push(format!("{}.{}", import.module, import.name));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Magic and version.
    const HEADER: &[u8] = b"\0asm\x01\0\0\0";

    #[test]
    fn an_import_is_found() {
        // One type `() -> ()`, one function `env.now` of that type.
        let types = b"\x01\x04\x01\x60\x00\x00";
        let import = b"\x02\x0b\x01\x03env\x03now\x00\x00";
        let module = [HEADER, types, import].concat();
        assert_eq!(imports(&module).unwrap(), ["env.now"]);
        assert_eq!(imports(HEADER).unwrap(), [""; 0]);
        assert!(imports(b"rubbish").is_err());
    }
}
