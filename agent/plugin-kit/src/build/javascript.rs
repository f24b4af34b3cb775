//! JavaScript: componentize-qjs, which puts QuickJS and the modules into the component.

use latido_plugin_host::Kind;

use super::{BuildError, Made, World, bindings, read_made, run, tool, write};
use crate::project::Project;
use crate::tool::{Toolbox, Version, Wanted};

const COMPONENTIZE: Wanted =
    Wanted { name: "componentize-qjs", variable: "LATIDO_COMPONENTIZE_QJS", programs: &["componentize-qjs"] };
const NODE: Wanted = Wanted { name: "node", variable: "PATH", programs: &["node"] };

const GET: &str = "npm install --save-dev --save-exact componentize-qjs@0.4.5";

pub(super) fn make(project: &Project, world: &World, toolbox: &Toolbox) -> Result<Made, BuildError> {
    let node = "apt-get install nodejs";
    tool(project, toolbox, &NODE, node, &["--version"], |version| version >= Version(18, 0, 0), "18 or later")?;
    // It has no option that says its version; its package does.
    let missing =
        || BuildError::NoTool { tool: COMPONENTIZE.name, variable: COMPONENTIZE.variable, get: GET.to_owned() };
    let tool = toolbox.find(project.root(), &COMPONENTIZE).ok_or_else(missing)?;
    let version = version(&tool.program);
    if let Some(found) = version.clone().filter(|version| !version.starts_with("0.4.")) {
        let (program, expected) = (tool.program, "0.4.5".to_owned());
        return Err(BuildError::ToolVersion { tool: COMPONENTIZE.name, program, found, expected, get: GET.to_owned() });
    }
    bindings::write_all(project, world)?;
    let entry = project.root().join("build/js/entry.js");
    write(&entry, entry_module(world.kind).as_bytes())?;
    write(&entry.with_file_name("random.js"), RANDOM.as_bytes())?;
    let output = project.root().join("build/js/component.wasm");
    let _absent = std::fs::remove_file(&output);
    let arguments = [
        "--wit",
        "wit",
        "--js",
        "build/js/entry.js",
        "--module-root",
        ".",
        "--world",
        world.name(),
        "--sync",
        "--output",
        "build/js/component.wasm",
    ];
    let said = run(COMPONENTIZE.name, &tool, project.root(), &arguments, &[])?;
    if !said.is_success {
        return Err(refused(world.kind, &said.ended, &said.text()));
    }
    let component = read_made(COMPONENTIZE.name, &output)?;
    let tool = format!("componentize-qjs {}", version.unwrap_or_default());
    Ok(Made { component, tool: tool.trim().to_owned(), warnings: said.stderr.trim().to_owned() })
}

/// The version in the package that a program of `node_modules/.bin` leads to.
fn version(program: &std::path::Path) -> Option<String> {
    let real = std::fs::canonicalize(program).ok()?;
    let package = real.ancestors().skip(1).map(|folder| folder.join("package.json")).find(|file| file.is_file())?;
    let package: serde_json::Value = serde_json::from_slice(&std::fs::read(package).ok()?).ok()?;
    package.get("version")?.as_str().map(str::to_owned)
}

/// The exports and functions that a plugin has to have.
fn wanted(kind: Kind) -> [(&'static str, &'static [&'static str]); 2] {
    let own: (&str, &[&str]) = match kind {
        Kind::Sink => ("sink", &["write", "flush"]),
        Kind::Rule => ("rule", &["evaluate"]),
        Kind::Strategy => ("strategy", &["decide", "observe"]),
    };
    [("lifecycle", &["describe", "configure"]), own]
}

/// What stands before the names of missing functions.
const LACKS: &str = "latido: plugin.js lacks ";

/// The module that is built: it takes the plugin's exports, and says while it is built what they lack.
fn entry_module(kind: Kind) -> String {
    let mut text = String::from(
        "// Written by `latido plugin build`.\nimport \"./random.js\";\nimport * as plugin from \"../../plugin.js\";\n\nconst missing = \
         [];\n",
    );
    for (export, functions) in wanted(kind) {
        for function in functions {
            text.push_str(&format!(
                "if (typeof plugin.{export}?.{function} !== \"function\") missing.push(\"{export}.{function}\");\n"
            ));
        }
    }
    text.push_str(&format!("if (missing.length > 0) throw new Error(\"{LACKS}\" + missing.join(\" \") + \" .\");\n"));
    for (export, _) in wanted(kind) {
        text.push_str(&format!("export const {export} = plugin.{export};\n"));
    }
    text
}

/// QuickJS takes its seed while the component is built, so that every instance would draw the same numbers.
const RANDOM: &str = "\
// Written by `latido plugin build`: `Math.random` begins at the moment of its first call, not at that of the build.
let state = 0;
Math.random = () => {
  if (state === 0) state = (Date.now() ^ Math.floor(performance.now() * 1e6)) >>> 0 || 1;
  state = (state + 0x6d2b79f5) >>> 0;
  let mixed = Math.imul(state ^ (state >>> 15), state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
};
";

fn refused(kind: Kind, ended: &str, said: &str) -> BuildError {
    if let Some((_, names)) = said.lines().find_map(|line| line.split_once(LACKS)) {
        let names = names.split(" .").next().unwrap_or(names);
        let missing = names.split_whitespace().map(|name| format!("`{name}`")).collect();
        return BuildError::MissingExport { kind, missing, hint: "export it from plugin.js" };
    }
    // What it prints of itself before it begins tells the author nothing.
    let words = said.split_once("Error:").map_or(said, |(_, words)| words);
    let words =
        words.trim_start_matches([':', ' ']).lines().filter(|line| !is_banner(line)).collect::<Vec<_>>().join("\n");
    let said = words.trim().replace("/plugin.js", "plugin.js");
    BuildError::Source { tool: COMPONENTIZE.name, ended: ended.to_owned(), said, file: "plugin.js" }
}

fn is_banner(line: &str) -> bool {
    let line = line.trim_start();
    line == COMPONENTIZE.name || ["WIT: ", "JS: ", "Output: "].iter().any(|start| line.starts_with(start))
}
