//! Python: componentize-py, which puts an interpreter and the modules that were imported into the component.

use std::ffi::OsStr;
use std::path::Path;

use latido_plugin_host::Kind;

use super::{BuildError, Made, World, bindings, read_made, run, tool, write};
use crate::project::Project;
use crate::tool::{Tool, Toolbox, Version, Wanted};

const COMPONENTIZE: Wanted =
    Wanted { name: "componentize-py", variable: "LATIDO_COMPONENTIZE_PY", programs: &["componentize-py"] };

const GET: &str = "python3 -m pip install componentize-py==0.25.1";

pub(super) fn make(project: &Project, world: &World, toolbox: &Toolbox) -> Result<Made, BuildError> {
    let is_fit = |version: Version| (version.0, version.1) == (0, 25);
    let (tool, version) = tool(project, toolbox, &COMPONENTIZE, GET, &["--version"], is_fit, "0.25.1")?;
    for_editors(project, world, &tool)?;
    let entry = project.root().join("build/python/latido_entry.py");
    write(&entry, entry_module(world).as_bytes())?;
    let output = project.root().join("build/python/component.wasm");
    let _absent = std::fs::remove_file(&output);
    let world_name = world.name();
    let arguments = [
        "-q",
        "-d",
        "wit",
        "-w",
        world_name,
        "componentize",
        "-p",
        ".",
        "-p",
        "build/python",
        "-o",
        "build/python/component.wasm",
        "latido_entry",
    ];
    let said =
        run(COMPONENTIZE.name, &tool, project.root(), &arguments, &[("PYTHONDONTWRITEBYTECODE", OsStr::new("1"))])?;
    if !said.is_success {
        return Err(refused(world.kind, &said.ended, &said.text()));
    }
    let component = read_made(COMPONENTIZE.name, &output)?;
    Ok(Made { component, tool: format!("componentize-py {version}"), warnings: said.text() })
}

/// Writes the bindings as Python modules, for editors and type checkers: the build does not read them.
fn for_editors(project: &Project, world: &World, tool: &Tool) -> Result<(), BuildError> {
    let folder = project.root().join(bindings::FOLDER);
    let changed = |path: &Path| std::fs::metadata(path).and_then(|about| about.modified()).ok();
    if changed(&folder).is_some_and(|written| changed(&project.root().join("wit/latido.wit")) <= Some(written)) {
        return Ok(());
    }
    let _absent = std::fs::remove_dir_all(&folder);
    let arguments = ["-q", "-d", "wit", "-w", world.name(), "bindings", bindings::FOLDER];
    run(COMPONENTIZE.name, tool, project.root(), &arguments, &[])?;
    Ok(())
}

/// The classes and functions that a plugin has to have.
fn wanted(kind: Kind) -> [(&'static str, &'static str); 2] {
    let own = match kind {
        Kind::Sink => ("Sink", "\"write\", \"flush\""),
        Kind::Rule => ("Rule", "\"evaluate\""),
        Kind::Strategy => ("Strategy", "\"decide\", \"observe\""),
    };
    [("Lifecycle", "\"describe\", \"configure\""), own]
}

/// The module that is built: it takes the plugin's classes, and says while it is built what they lack.
fn entry_module(world: &World) -> String {
    let mut text = String::from("# Written by `latido plugin build`.\nimport plugin\n\n_missing = []\n");
    for (class, functions) in wanted(world.kind) {
        text.push_str(&format!(
            "for _function in ({functions},):\n    if not callable(getattr(getattr(plugin, \"{class}\", None), _function, None)):\n        \
             _missing.append(\"{class}.\" + _function)\n"
        ));
    }
    text.push_str(&format!("if _missing:\n    raise ImportError(\"{LACKS}\" + \" \".join(_missing))\n"));
    for (class, _) in wanted(world.kind) {
        text.push_str(&format!("{class} = plugin.{class}\n"));
    }
    text
}

/// What stands before the names of missing functions.
const LACKS: &str = "latido: plugin.py lacks ";

fn refused(kind: Kind, ended: &str, said: &str) -> BuildError {
    if let Some(names) = said.lines().find_map(|line| line.split_once(LACKS)) {
        let missing = names.1.split_whitespace().map(|name| format!("`{name}`")).collect();
        let hint = "write the class and its functions in plugin.py";
        return BuildError::MissingExport { kind, missing, hint };
    }
    if let Some(missing) = abstract_functions(said) {
        return BuildError::MissingExport { kind, missing, hint: "write the function in plugin.py" };
    }
    BuildError::Source { tool: COMPONENTIZE.name, ended: ended.to_owned(), said: own_words(said), file: "plugin.py" }
}

/// The functions that a class has from the bindings alone, as Python complains of them.
fn abstract_functions(said: &str) -> Option<Vec<String>> {
    let (_, rest) = said.split_once("Can't instantiate abstract class ")?;
    let line = rest.lines().next()?;
    let class = line.split_whitespace().next()?;
    Some(line.split('\'').skip(1).step_by(2).map(|function| format!("`{class}.{function}`")).collect())
}

/// What the tool says of the source, without the tool's own stack.
fn own_words(said: &str) -> String {
    let said = said.split("Stack backtrace:").next().unwrap_or(said);
    let said = said.split_once("AssertionError:").map_or(said, |(_, said)| said);
    // The folders of the project as the interpreter sees them while it is built.
    said.replace("\"/0/", "\"").replace("\"/1/", "\"build/python/").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_are_only_inherited_are_named() {
        let said = "TypeError: Can't instantiate abstract class Sink without an implementation for abstract methods 'flush', 'write'\n";
        assert_eq!(abstract_functions(said).unwrap(), ["`Sink.flush`", "`Sink.write`"]);
        assert_eq!(abstract_functions("SyntaxError: invalid syntax"), None);
    }

    #[test]
    fn the_tools_own_stack_is_left_out() {
        let said = "Traceback (most recent call last):\n  File \"/x/bin/componentize-py\", line 8\nAssertionError:   File \
                    \"/0/plugin.py\", line 53\n    def x(:\nSyntaxError: invalid syntax\n\nStack backtrace:\n   0: <anyhow>";
        assert_eq!(own_words(said), "File \"plugin.py\", line 53\n    def x(:\nSyntaxError: invalid syntax");
    }
}
