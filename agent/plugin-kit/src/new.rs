//! Makes a project that builds and passes its own first case.

mod templates;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use latido_plugin_host::{Kind, PACKAGE_VERSIONS};

use crate::build::{self, BuildError};
use crate::project::{Language, NAME_RULE, Project, ProjectError, is_name};

/// The package's text, as a project gets it.
pub const WIT: &str = include_str!("../../../wit/latido.wit");

/// Why no project was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NewError {
    /// It cannot be called so.
    #[error("call a plugin \"{name}\": {NAME_RULE}")]
    Name {
        /// what was asked for
        name: String,
    },
    /// Something of that name is there.
    #[error("make {}: it is there already, and nothing is overwritten", path.display())]
    Exists {
        /// what is there
        path: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("write {}", path.display())]
    Write {
        /// which
        path: PathBuf,
        /// what the system says
        source: io::Error,
    },
    /// What was made is no project.
    #[error("read what was made")]
    Project(#[source] ProjectError),
    /// Its bindings cannot be written.
    #[error("write its bindings")]
    Bindings(#[source] BuildError),
}

/// What a project is to be.
#[derive(Clone, Copy, Debug)]
pub struct NewProject<'a> {
    /// Its name, and that of its folder.
    pub name: &'a str,
    /// What it is written in.
    pub language: Language,
    /// What it does.
    pub kind: Kind,
}

/// Makes a project in a folder of its name, below `parent`.
///
/// # Errors
///
/// Says what is wrong with the name or the place. Nothing that is there is changed.
pub fn create(parent: &Path, new: &NewProject<'_>) -> Result<Project, NewError> {
    if !is_name(new.name) {
        return Err(NewError::Name { name: new.name.to_owned() });
    }
    let root = parent.join(new.name);
    fs::create_dir(&root).map_err(|source| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            NewError::Exists { path: root.clone() }
        } else {
            NewError::Write { path: root.clone(), source }
        }
    })?;
    for (path, text) in templates::of(new) {
        let path = root.join(path);
        let wrong = |source| NewError::Write { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(wrong)?;
        }
        fs::write(&path, text).map_err(wrong)?;
    }
    let project = Project::open(&root).map_err(NewError::Project)?;
    build::write_bindings(&project).map_err(NewError::Bindings)?;
    Ok(project)
}

/// The version of the package that new projects are written against.
pub(crate) fn package_version() -> &'static str {
    let [newest, ..] = PACKAGE_VERSIONS;
    newest
}
