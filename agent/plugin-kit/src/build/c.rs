//! C: zig, which brings a libc, or clang with one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{BuildError, Made, World, bindings, component, read_made, run, tool};
use crate::project::Project;
use crate::tool::{Said, Tool, Toolbox, Version, Wanted};

const ZIG: Wanted = Wanted { name: "zig", variable: "LATIDO_ZIG", programs: &["zig", "python-zig"] };
const CLANG: Wanted = Wanted {
    name: "clang",
    variable: "LATIDO_CLANG",
    programs: &["clang", "clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17", "clang-16"],
};

const GET: &str = "python3 -m pip install ziglang==0.17.1";
const GET_CLANG: &str = "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32";

/// What C is built with, and what it says for itself.
const FLAGS: [&str; 7] =
    ["-mexec-model=reactor", "-Wl,-z,stack-size=131072", "-O2", "-Wall", "-fno-color-diagnostics", "-I", "bindings"];

pub(super) fn make(project: &Project, world: &World, toolbox: &Toolbox) -> Result<Made, BuildError> {
    let (compiler, name, first, described) = compiler(project, toolbox)?;
    bindings::write_all(project, world)?;
    let output = project.root().join("build/c/core.wasm");
    let wrong = |source| BuildError::Write { path: output.clone(), source };
    std::fs::create_dir_all(output.parent().unwrap_or(project.root())).map_err(wrong)?;
    let _absent = std::fs::remove_file(&output);
    let mut arguments: Vec<OsString> = first.iter().chain(FLAGS.iter()).map(OsString::from).collect();
    arguments.extend(["-o", "build/c/core.wasm"].map(OsString::from));
    arguments.extend(sources(project.root())?.into_iter().map(PathBuf::into_os_string));
    let generated = Path::new(bindings::FOLDER).join(world.snake());
    arguments.push(generated.with_extension("c").into());
    arguments.push(format!("{}_component_type.o", generated.display()).into());
    let said = run(name, &compiler, project.root(), &arguments, &[])?;
    if !said.is_success {
        return Err(refused(name, world, &said));
    }
    let module = read_made(name, &output)?;
    component::judge_module(&module, world, HINT)?;
    Ok(Made { component: component::of_module(&module)?, tool: described, warnings: said.text() })
}

type Compiler = (Tool, &'static str, &'static [&'static str], String);

/// zig where there is one, since it needs nothing beside it; clang otherwise.
fn compiler(project: &Project, toolbox: &Toolbox) -> Result<Compiler, BuildError> {
    let has_zig = toolbox.find(project.root(), &ZIG).is_some();
    if has_zig || toolbox.find(project.root(), &CLANG).is_none() {
        let is_fit = |version: Version| version >= Version(0, 14, 0);
        let (zig, version) =
            tool(project, toolbox, &ZIG, GET, &["version"], is_fit, "0.14 or later, 0.17.1 is tested")?;
        return Ok((zig, "zig", &["cc", "-target", "wasm32-wasi", "-s"], format!("zig {version}")));
    }
    let is_fit = |version: Version| version >= Version(16, 0, 0);
    let (clang, version) = tool(project, toolbox, &CLANG, GET_CLANG, &["--version"], is_fit, "16 or later")?;
    Ok((clang, "clang", &["--target=wasm32-wasi", "-Wl,--strip-debug"], format!("clang {version}")))
}

/// The C files of a project: all that lie in its folder.
fn sources(root: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let wrong = |source| BuildError::Read { path: root.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root).map_err(wrong)? {
        let name = PathBuf::from(entry.map_err(wrong)?.file_name());
        if name.extension().is_some_and(|extension| extension == "c") {
            files.push(Path::new(".").join(name)); // a name may begin with a hyphen
        }
    }
    files.sort();
    Ok(files)
}

const HINT: &str = "write it in plugin.c; the header in bindings/ declares it";

fn refused(tool: &'static str, world: &World, said: &Said) -> BuildError {
    let text = said.text();
    let mut missing: Vec<String> = text
        .lines()
        .filter_map(|line| line.split_once("undefined symbol: "))
        .map(|(_, symbol)| symbol.split_whitespace().next().unwrap_or(symbol))
        .filter(|symbol| symbol.starts_with("exports_latido_plugin_"))
        .map(|symbol| format!("`{symbol}`"))
        .collect();
    missing.sort();
    missing.dedup();
    if !missing.is_empty() {
        return BuildError::MissingExport { kind: world.kind, missing, hint: HINT };
    }
    let ended = said.ended.clone();
    if text.contains("wasi") && (text.contains("file not found") || text.contains("cannot open")) && tool == "clang" {
        let get = format!("{GET}` or `{GET_CLANG}");
        return BuildError::NoTool { tool: "a libc for clang's target wasm32-wasi", variable: CLANG.variable, get };
    }
    BuildError::Source { tool, ended, said: text, file: "plugin.c" }
}
