//! A component that is tried out: its bytes, and what it says of itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use latido_plugin_host::{Kind, LoadError, Manifest};
use wasmparser::{Parser, Payload};

use crate::project::Project;

/// Why a component cannot be tried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The project has not been built.
    #[error("find the component {}: the project has not been built", path.display())]
    NotBuilt {
        /// where it is looked for
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// the file
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// It is no component.
    #[error("take {}: it is {found}, and a plugin is a WebAssembly component", path.display())]
    NoComponent {
        /// the file
        path: PathBuf,
        /// what it looks like
        found: &'static str,
    },
    /// Its bytes or its manifest are wrong.
    #[error("take {}", path.display())]
    Manifest {
        /// the file
        path: PathBuf,
        /// what is wrong
        source: LoadError,
    },
    /// It does not say what it is, and exports nothing that tells.
    #[error("tell what {} is: it exports neither a sink nor a rule nor a strategy of latido:plugin", path.display())]
    NoKind {
        /// the file
        path: PathBuf,
    },
}

/// A component that is tried out.
#[derive(Clone, Debug)]
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) component: Arc<[u8]>,
    pub(crate) manifest: Manifest,
}

impl Plugin {
    /// Reads a component.
    ///
    /// # Errors
    ///
    /// Names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, PluginError> {
        let component: Arc<[u8]> =
            fs::read(path).map_err(|source| PluginError::Read { path: path.to_owned(), source })?.into();
        Self::from_bytes(path, component)
    }

    /// Takes a component's bytes. `path` is where they came from, for messages, and their name where they say none.
    ///
    /// # Errors
    ///
    /// Says what is wrong with them.
    pub fn from_bytes(path: &Path, component: Arc<[u8]>) -> Result<Self, PluginError> {
        if let Some(found) = other(&component) {
            return Err(PluginError::NoComponent { path: path.to_owned(), found });
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let manifest = Manifest::read(&stem, &component)
            .map_err(|source| PluginError::Manifest { path: path.to_owned(), source })?;
        let said = manifest.plugin.kind.as_deref().and_then(kind);
        let kind =
            said.or_else(|| exported(&component)).ok_or_else(|| PluginError::NoKind { path: path.to_owned() })?;
        let name = if manifest.plugin.name.is_empty() { stem } else { manifest.plugin.name.clone() };
        Ok(Self { name, kind, component, manifest })
    }

    /// Reads the component of a project that was built.
    ///
    /// # Errors
    ///
    /// Says where it is not, or what is wrong with it.
    pub fn of(project: &Project) -> Result<Self, PluginError> {
        let path = project.component();
        if path.exists() { Self::read(&path) } else { Err(PluginError::NotBuilt { path }) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

/// What bytes are that are no component.
fn other(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("empty");
    }
    match bytes.strip_prefix(b"\0asm") {
        None if std::str::from_utf8(bytes).is_ok() => Some("a text"),
        None => Some("no WebAssembly at all"),
        Some([1, 0, 0, 0, ..]) => Some("a core module"),
        Some(_) => None,
    }
}

fn kind(name: &str) -> Option<Kind> {
    [Kind::Sink, Kind::Rule, Kind::Strategy].into_iter().find(|kind| kind.name() == name)
}

/// The kind that a component's own exports tell.
fn exported(component: &[u8]) -> Option<Kind> {
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload.ok()?;
        if matches!(payload, Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) {
            depth += 1;
        } else if matches!(payload, Payload::End(_)) {
            depth = depth.saturating_sub(1);
        } else if let Payload::ComponentExportSection(exports) = payload
            && depth == 0
        {
            let names = exports.into_iter().filter_map(Result::ok).map(|export| export.name.name);
            let ours = names.filter_map(|name| name.strip_prefix("latido:plugin/"));
            let found = ours.filter_map(|name| kind(name.split('@').next().unwrap_or(name))).next();
            if found.is_some() {
                return found;
            }
        }
    }
    None
}
