//! Looking beneath a directory: the kernel resolves each path (`openat2`), and refuses every one that leads out.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, PROC_SUPER_MAGIC, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::bindings::v0_2::strategy::latido::plugin::workspace::{Entry, Listed, WorkspaceError};
use crate::capability::log::printable;

/// Names in one listing, as the package says.
const NAMES_MAX: usize = 1000;

/// Bytes of names that are taken from the kernel at once: some thousand of them.
const NAMES_AT_ONCE: usize = 64 << 10;

/// Tries to resolve a path while something is renamed beside it: the kernel gives up where it cannot be sure of a `..`.
const TRIES: usize = 8;

/// The largest number that a double holds exactly, as the package promises of every number.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Bytes of a path that a message shows.
const SHOWN_MAX: usize = 200;

/// A job's directory.
pub(super) struct Directory(OwnedFd);

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        opened.map(Self).map_err(|error| refusal(path.as_os_str().as_encoded_bytes(), error))
    }

    pub(super) fn look(&self, path: &str) -> Result<Entry, WorkspaceError> {
        self.look_at(path.as_bytes())
    }

    /// Reads a regular file. Nothing else is opened: a device may act on that, a FIFO may wait.
    pub(super) fn read(&self, path: &str, offset: u64, length: u32) -> Result<Vec<u8>, WorkspaceError> {
        let failed = |error: io::Error| WorkspaceError::Failed(format!("`{}`: {error}", shown(path.as_bytes())));
        let found = self.resolve(path.as_bytes(), OFlags::PATH)?;
        let known = rustix::fs::fstat(&found).map_err(|error| failed(error.into()))?;
        if FileType::from_raw_mode(known.st_mode) != FileType::RegularFile {
            return Err(WorkspaceError::Failed(format!("`{}` is no regular file", shown(path.as_bytes()))));
        }
        if offset >= unsigned(known.st_size) {
            return Ok(Vec::new());
        }
        // By its handle, so that it is the very file that was looked at.
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(itself, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let mut file = File::from(opened);
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        file.take(length.into()).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// Lists a directory. However many names it has, no more than the first are held.
    pub(super) fn list(&self, path: &str) -> Result<Vec<Listed>, WorkspaceError> {
        let found = self.resolve(path.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?;
        let names = first_names(&found, NAMES_MAX).map_err(|error| refusal(path.as_bytes(), error))?;
        let listed = names.into_iter().filter_map(|name| {
            let entry = self.listed(path.as_bytes(), &found, &name)?;
            Some(Listed { name: String::from_utf8_lossy(&name).into_owned(), entry })
        });
        Ok(listed.collect())
    }

    /// What is known of a name in a directory; nothing where it is gone. A link is what it leads to, and where it leads
    /// out or nowhere it is itself.
    fn listed(&self, path: &[u8], directory: &OwnedFd, name: &[u8]) -> Option<Entry> {
        let known = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT).ok()?;
        if FileType::from_raw_mode(known.st_mode) == FileType::Symlink
            && let Ok(entry) = self.look_at(&[path, b"/", name].concat())
        {
            return Some(entry);
        }
        Some(entry(&known))
    }

    fn look_at(&self, path: &[u8]) -> Result<Entry, WorkspaceError> {
        let found = self.resolve(path, OFlags::PATH)?;
        rustix::fs::fstat(&found).map(|known| entry(&known)).map_err(|error| refusal(path, error))
    }

    /// Opens what a path leads to, beneath the directory.
    fn resolve(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, WorkspaceError> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let open = || rustix::fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), beneath);
        let mut opened = open();
        for _ in 1..TRIES {
            if opened.as_ref().is_err_and(|error| *error == Errno::AGAIN) {
                opened = open();
            }
        }
        let found = opened.map_err(|error| refusal(path, error))?;
        let system = rustix::fs::fstatfs(&found).map_err(|error| refusal(path, error))?;
        if system.f_type == PROC_SUPER_MAGIC {
            // A job's directory may be `/`, and the agent's own environment with its secrets stands in /proc.
            return Err(WorkspaceError::Denied(format!("`{}` is no file of a job: it lies in /proc", shown(path))));
        }
        Ok(found)
    }
}

/// The first names of a directory in the order of their bytes.
fn first_names(directory: &OwnedFd, max: usize) -> Result<Vec<Vec<u8>>, Errno> {
    let mut buffer = Vec::with_capacity(NAMES_AT_ONCE);
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    let mut first: BinaryHeap<Vec<u8>> = BinaryHeap::with_capacity(max + 1);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let is_behind = first.len() == max && first.peek().is_some_and(|last| name >= last.as_slice());
        if name == b"." || name == b".." || is_behind {
            continue;
        }
        first.push(name.to_owned());
        if first.len() > max {
            first.pop();
        }
    }
    Ok(first.into_sorted_vec())
}

fn entry(known: &Stat) -> Entry {
    let modified = unsigned(known.st_mtime).saturating_mul(1000).saturating_add(known.st_mtime_nsec / 1_000_000);
    Entry {
        size: unsigned(known.st_size),
        modified: modified.min(NUMBER_MAX),
        directory: FileType::from_raw_mode(known.st_mode) == FileType::Directory,
    }
}

/// A number as the package has them: what is before zero is zero.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0).min(NUMBER_MAX)
}

fn refusal(path: &[u8], error: Errno) -> WorkspaceError {
    let shown = shown(path);
    if error == Errno::NOENT || error == Errno::NOTDIR {
        WorkspaceError::NotFound
    } else if error == Errno::XDEV {
        WorkspaceError::Denied(format!("`{shown}` leads out of the job's directory"))
    } else if error == Errno::LOOP {
        WorkspaceError::Denied(format!("`{shown}` leads through too many links, or one of /proc"))
    } else if error == Errno::NOSYS {
        WorkspaceError::Failed("the kernel cannot keep a path in a directory: `openat2` needs Linux 5.6".to_owned())
    } else {
        WorkspaceError::Failed(format!("`{shown}`: {}", io::Error::from(error)))
    }
}

fn shown(path: &[u8]) -> String {
    printable(&String::from_utf8_lossy(path), SHOWN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_names_are_those_in_the_order_of_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "e", "d", "c", "B"] {
            File::create(folder.path().join(name)).unwrap();
        }
        let opened = OwnedFd::from(File::open(folder.path()).unwrap());
        assert_eq!(first_names(&opened, 4).unwrap(), [b"B", b"a", b"b", b"c"]);
    }

    #[test]
    fn a_job_that_runs_in_the_root_shows_nothing_of_proc() {
        let root = Directory::open(Path::new("/")).unwrap();
        for path in ["proc/self/environ", "proc", "proc/1/cmdline"] {
            assert!(matches!(root.read(path, 0, 10), Err(WorkspaceError::Denied(_))), "{path}");
        }
        assert!(matches!(root.list("proc"), Err(WorkspaceError::Denied(_))));
        assert!(root.look("etc").unwrap().directory);
    }
}
