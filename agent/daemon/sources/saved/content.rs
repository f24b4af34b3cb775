//! What a file holds, as far as it takes to tell that it holds something else.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use latido_plugin_host::COMPONENT_MAX;
use sha2::{Digest, Sha256};

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is no file.
    Absent,
    /// There is something that is not read, and why.
    Unread(String),
    /// Bytes of this digest.
    Bytes([u8; 32]),
}

/// What the system says of a file without reading it. It changes with every change that is made through the file system,
/// also where size and time of modification are put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// `None` where there is no file, or it cannot be told.
    pub(super) fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|found| Self::from(&found))
    }
}

impl From<&Metadata> for Stamp {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

impl Content {
    /// Reads a file. One that is larger than any component may be, or no file at all, is not read.
    pub(crate) fn of(path: &Path) -> Self {
        let unread = |error: io::Error| {
            if error.kind() == io::ErrorKind::NotFound { Self::Absent } else { Self::Unread(error.to_string()) }
        };
        match path.metadata() {
            Ok(found) if !found.is_file() => return Self::Unread("it is not a file".to_owned()),
            Ok(_) => {}
            Err(error) => return unread(error),
        }
        match digest(path) {
            Ok(Some(digest)) => Self::Bytes(digest),
            Ok(None) => Self::Unread(format!("it has more than {COMPONENT_MAX} bytes")),
            Err(error) => unread(error),
        }
    }
}

fn digest(path: &Path) -> io::Result<Option<[u8; 32]>> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() > COMPONENT_MAX as u64 {
        return Ok(None);
    }
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(hasher.finalize().into())),
            length => hasher.update(buffer.get(..length).unwrap_or_default()),
        }
    }
}
