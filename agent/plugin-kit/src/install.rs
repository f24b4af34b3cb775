//! Where installed plugins lie, and how one gets there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::project::{NAME_RULE, is_name};
use crate::whole::write_whole_as;

/// Why a plugin was not installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// It cannot be called so: a name is no path.
    #[error("install it as {name:?}: {NAME_RULE}")]
    Name {
        /// the name
        name: String,
    },
    /// Others may put plugins into the folder.
    #[error("install it into {}: {why}", folder.display())]
    Foreign {
        /// the folder
        folder: PathBuf,
        /// what is wrong with it
        why: &'static str,
    },
    /// The system refused; what was installed under this name before is as it was.
    #[error("install it into {}", folder.display())]
    Write {
        /// the folder
        folder: PathBuf,
        /// what the system says
        source: io::Error,
    },
}

/// The file of an installed plugin, whether it is there or not. `None` where no plugin can be called so.
pub fn installed(folder: &Path, name: &str) -> Option<PathBuf> {
    is_name(name).then(|| folder.join(format!("{name}.wasm")))
}

/// Puts a component into the folder of installed plugins, which is made if it is not there and has to be this user's alone.
/// One of the same name is replaced: whoever reads it has the old or the new one, whole.
///
/// # Errors
///
/// Says what keeps it from being installed.
pub fn install(folder: &Path, name: &str, component: &[u8]) -> Result<PathBuf, InstallError> {
    let path = installed(folder, name).ok_or_else(|| InstallError::Name { name: name.to_owned() })?;
    let refused = |source| InstallError::Write { folder: folder.to_owned(), source };
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(refused(error)),
    }
    let found = fs::symlink_metadata(folder).map_err(refused)?;
    let foreign = |why| InstallError::Foreign { folder: folder.to_owned(), why };
    if !found.is_dir() {
        return Err(foreign("it is not a folder"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(foreign("others may write into it, its mode has to be 0700"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(foreign("it belongs to another user"));
    }
    write_whole_as(&path, component, 0o600).map_err(refused)?;
    Ok(path)
}
