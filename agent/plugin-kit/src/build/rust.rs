//! Rust: cargo, for a target that needs no WASI.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::{BuildError, Made, World, bindings, component, read_made, run, tool};
use crate::project::Project;
use crate::tool::{Tool, Toolbox, Version, Wanted};

const CARGO: Wanted = Wanted { name: "cargo", variable: "LATIDO_CARGO", programs: &["cargo"] };
const COMPILER: Wanted = Wanted { name: "rustc", variable: "RUSTC", programs: &["rustc"] };

/// What plugins are built for: nothing but the plugins' interfaces is imported.
const TARGET: &str = "wasm32-unknown-unknown";

/// The first version with the edition of the projects.
const OLDEST: Version = Version(1, 85, 0);

pub(super) fn make(project: &Project, world: &World, toolbox: &Toolbox) -> Result<Made, BuildError> {
    let get = "curl -sSf https://sh.rustup.rs | sh";
    let (cargo, version) =
        tool(project, toolbox, &CARGO, get, &["--version"], |version| version >= OLDEST, "1.85 or later")?;
    has_target(project, toolbox, &cargo)?;
    bindings::write_all(project, world)?;
    let arguments =
        ["build", "--release", "--quiet", "--target", TARGET, "--message-format", "json-render-diagnostics"];
    // They are meant for the machine's own builds.
    let none = OsStr::new("");
    let environment =
        [("RUSTFLAGS", none), ("CARGO_ENCODED_RUSTFLAGS", none), ("CARGO_BUILD_TARGET", OsStr::new(TARGET))];
    let said = run(CARGO.name, &cargo, project.root(), &arguments, &environment)?;
    if !said.is_success {
        return Err(BuildError::Source { tool: CARGO.name, ended: said.ended, said: said.stderr, file: "src/" });
    }
    let module =
        module(&said.stdout).unwrap_or_else(|| project.root().join("target").join(TARGET).join("release/plugin.wasm"));
    let module = read_made(CARGO.name, &module)?;
    let hint = "implement its trait and write `bindings::export!(Plugin with_types_in bindings);`";
    component::judge_module(&module, world, hint)?;
    Ok(Made { component: component::of_module(&module)?, tool: format!("cargo {version}"), warnings: said.stderr })
}

/// Whether the compiler has the target's standard library.
fn has_target(project: &Project, toolbox: &Toolbox, cargo: &Tool) -> Result<(), BuildError> {
    let beside = cargo.program.with_file_name("rustc");
    let compiler = if beside.is_file() { Some(Tool::new(beside)) } else { toolbox.find(project.root(), &COMPILER) };
    let missing = |tool, get: &str| BuildError::NoTool { tool, variable: CARGO.variable, get: get.to_owned() };
    let compiler = compiler.ok_or_else(|| missing("rustc", "curl -sSf https://sh.rustup.rs | sh"))?;
    let said = run(COMPILER.name, &compiler, project.root(), &["--print", "sysroot"], &[])?;
    let libraries = Path::new(said.stdout.trim()).join("lib/rustlib").join(TARGET);
    let has_own = fs::read_dir(project.root().join(".cargo")).is_ok(); // an author's own way, such as build-std
    if libraries.is_dir() || has_own {
        return Ok(());
    }
    Err(missing("the standard library for wasm32-unknown-unknown", "rustup target add wasm32-unknown-unknown"))
}

/// The module that cargo says it made.
fn module(messages: &str) -> Option<PathBuf> {
    let mut found = None;
    for line in messages.lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let is_module = message
            .pointer("/target/kind")
            .is_some_and(|kinds| kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib")));
        let files = message.pointer("/filenames").and_then(serde_json::Value::as_array);
        let file =
            files.into_iter().flatten().filter_map(serde_json::Value::as_str).find(|file| file.ends_with(".wasm"));
        if let (true, Some(file)) = (is_module, file) {
            found = Some(PathBuf::from(file));
        }
    }
    found
}
