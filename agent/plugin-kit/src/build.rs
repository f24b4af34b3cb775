//! Builds a project's component with its language's own tool, and judges what came out.

mod bindings;
mod c;
mod component;
mod declarations;
mod error;
mod go;
mod javascript;
mod python;
mod rust;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use error::BuildError;
pub(crate) use world::World;

use crate::project::{Language, Project};
use crate::tool::{Said, Tool, Toolbox, Version, Wanted, version_in};

/// A component that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Where it lies.
    pub component: PathBuf,
    /// How large it is, in bytes.
    pub size: usize,
    /// What built it, with its version.
    pub tool: String,
    /// What the tool warned of, in its own words.
    pub warnings: String,
}

/// What a language's tool made, before it is judged.
struct Made {
    /// A component.
    component: Vec<u8>,
    /// What made it, with its version.
    tool: String,
    /// What the tool warned of.
    warnings: String,
}

/// Builds a project's component into its `build/`.
///
/// # Errors
///
/// Says what is missing or wrong; what the tool said of the source is in its own words.
pub fn build(project: &Project, toolbox: &Toolbox) -> Result<Built, BuildError> {
    let world = World::of(project)?;
    let component = project.component();
    let folder = component.parent().unwrap_or(project.root()).to_owned();
    fs::create_dir_all(&folder).map_err(|source| BuildError::Write { path: folder.clone(), source })?;
    let made = match project.language() {
        Language::Rust => rust::make(project, &world, toolbox),
        Language::Python => python::make(project, &world, toolbox),
        Language::JavaScript => javascript::make(project, &world, toolbox),
        Language::C => c::make(project, &world, toolbox),
        Language::Go => go::make(project, &world, toolbox),
    }?;
    component::judge(&made.component, &world)?;
    let bytes = component::with_manifest(made.component, project)?;
    // Replaced whole: an agent may be about to load the one that is there.
    let new = component.with_extension("wasm.new");
    fs::write(&new, &bytes).map_err(|source| BuildError::Write { path: new.clone(), source })?;
    fs::rename(&new, &component).map_err(|source| BuildError::Write { path: component.clone(), source })?;
    Ok(Built { component, size: bytes.len(), tool: made.tool, warnings: made.warnings })
}

/// Folders of a project that hold nothing that its component is made from.
const NO_SOURCES: [&str; 8] = ["build", "bindings", "cases", "target", "node_modules", "__pycache__", ".venv", ".git"];

/// Whether a project's component is missing, or older than a file that it may be made from.
pub fn is_stale(project: &Project) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let Some(built) = changed(&project.component()) else { return true };
    newest(project.root(), true).is_none_or(|newest| newest > built)
}

/// When the newest source below a folder was changed.
fn newest(folder: &Path, is_root: bool) -> Option<SystemTime> {
    let mut newest_at = None;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let is_left_out = is_root && NO_SOURCES.iter().any(|name| entry.file_name() == **name);
        let Ok(about) = entry.metadata() else { continue };
        let at = match about.is_dir() {
            _ if is_left_out => None,
            true => newest(&entry.path(), false),
            false => about.modified().ok(),
        };
        newest_at = newest_at.max(at);
    }
    newest_at
}

/// Finds a tool and asks for its version; `is_fit` says whether that will do.
fn tool(
    project: &Project,
    toolbox: &Toolbox,
    wanted: &Wanted,
    get: &str,
    ask: &[&str],
    is_fit: impl Fn(Version) -> bool,
    expected: &str,
) -> Result<(Tool, Version), BuildError> {
    let missing = || BuildError::NoTool { tool: wanted.name, variable: wanted.variable, get: get.to_owned() };
    let tool = toolbox.find(project.root(), wanted).ok_or_else(missing)?;
    let said = run(wanted.name, &tool, project.root(), ask, &[])?;
    match version_in(&said.text()) {
        Some(version) if said.is_success && is_fit(version) => Ok((tool, version)),
        found => Err(BuildError::ToolVersion {
            tool: wanted.name,
            program: tool.program,
            found: found.map_or_else(|| said.text(), |version| version.to_string()),
            expected: expected.to_owned(),
            get: get.to_owned(),
        }),
    }
}

/// Runs a tool, whatever it answers.
fn run<S: AsRef<std::ffi::OsStr>>(
    name: &'static str,
    tool: &Tool,
    folder: &Path,
    arguments: &[S],
    environment: &[(&str, &std::ffi::OsStr)],
) -> Result<Said, BuildError> {
    tool.run(folder, arguments, environment).map_err(|source| BuildError::Start {
        tool: name,
        program: tool.program.clone(),
        source,
    })
}

/// Writes a file unless it holds this already: compilers look at the time of its last change.
fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let wrong = |source| BuildError::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(wrong)?;
    }
    fs::write(path, bytes).map_err(wrong)
}

/// Reads what a tool made; nothing there is its failure.
fn read_made(tool: &'static str, path: &Path) -> Result<Vec<u8>, BuildError> {
    fs::read(path).map_err(|source| BuildError::NoOutput { tool, path: path.to_owned(), source })
}

/// The name of a kind's world.
pub(crate) fn world_name(kind: latido_plugin_host::Kind) -> &'static str {
    world::name(kind)
}

/// Writes the bindings of a project, as far as latido has their generator: editors want them before the first build.
pub(crate) fn write_bindings(project: &Project) -> Result<(), BuildError> {
    let world = World::of(project)?;
    match project.language() {
        Language::Go => go::write_bindings(project, &world),
        Language::Rust | Language::C | Language::Python | Language::JavaScript => bindings::write_all(project, &world),
    }
}
