//! A folder that appears whole or not at all: filled under a name that nobody looks at, then given its own.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use latido_protocol::disk::{self, WriteError};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::sockets::short_id;

/// A folder that is being filled. It is removed unless it is published.
#[derive(Debug)]
pub(super) struct Prepared {
    path: PathBuf,
}

/// Why a filled folder did not get its name.
#[derive(Debug)]
pub(super) enum PublishError {
    /// Something has the name.
    Exists,
    /// What is in it cannot be put on the disk.
    Sync(WriteError),
    /// The file system refused the name.
    Name(io::Error),
}

impl Prepared {
    /// Makes an empty folder in `parent`, for its owner alone.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(super) fn make(parent: &Path) -> io::Result<Self> {
        let path = parent.join(format!(".new-{}", short_id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path })
    }

    /// Where it is filled.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it on the disk with all that is in it, then gives it its name, durably, unless something has that.
    ///
    /// # Errors
    /// It is removed then, but where the parent folder alone would not be put on the disk.
    pub(super) fn publish(self, name: &Path) -> Result<(), PublishError> {
        disk::sync_tree(&self.path).map_err(PublishError::Sync)?;
        match rustix::fs::renameat_with(CWD, &self.path, CWD, name, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => return Err(PublishError::Exists),
            // File systems without that flag: a rename onto a folder with anything in it fails as well, and no folder
            // that was published is empty.
            Err(Errno::INVAL | Errno::NOSYS) => match fs::rename(&self.path, name) {
                Ok(()) => {}
                Err(_) if name.exists() => return Err(PublishError::Exists),
                Err(source) => return Err(PublishError::Name(source)),
            },
            Err(errno) => return Err(PublishError::Name(errno.into())),
        }
        let parent = name.parent().unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(PublishError::Name)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // Once it has its name nothing is here; what cannot be removed begins with a dot and is nobody's.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_folder_appears_whole_under_its_name() {
        let parent = tempfile::tempdir().unwrap();
        let prepared = Prepared::make(parent.path()).unwrap();
        fs::create_dir(prepared.path().join("inner")).unwrap();
        fs::write(prepared.path().join("inner/file"), "content").unwrap();
        prepared.publish(&parent.path().join("name")).unwrap();
        assert_eq!(names(parent.path()), ["name"]);
        assert_eq!(fs::read_to_string(parent.path().join("name/inner/file")).unwrap(), "content");
    }

    #[test]
    fn what_has_the_name_stays_and_nothing_is_left_beside() {
        let parent = tempfile::tempdir().unwrap();
        let name = parent.path().join("name");
        fs::create_dir(&name).unwrap();
        fs::write(name.join("first"), "").unwrap();
        let prepared = Prepared::make(parent.path()).unwrap();
        fs::write(prepared.path().join("second"), "").unwrap();
        assert!(matches!(prepared.publish(&name), Err(PublishError::Exists)));
        drop(Prepared::make(parent.path()).unwrap());
        assert_eq!(names(parent.path()), ["name"]);
        assert_eq!(names(&name), ["first"]);
    }
}
