//! What the tests of the SQLite store share.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use latido_store::{Batch, NewEntry, Store};
use tempfile::TempDir;

/// Makes a directory that every user may pass through, and the path of a store in it.
pub(crate) fn place() -> (TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = directory.path().join("latido.db");
    (directory, path)
}

/// Returns a batch of `count` entries whose bodies begin with `"n": first`, `first + 1` and so on, filled to `bytes`.
pub(crate) fn numbered(first: u64, count: u64, bytes: usize) -> Batch {
    let entry = |n: u64| NewEntry {
        at_ms: n,
        kind: "phase".to_owned(),
        subject: None,
        body: format!("{{\"n\":{n},\"filling\":\"{}\"}}", "x".repeat(bytes)),
    };
    Batch { entries: (first..first + count).map(entry).collect(), ..Batch::default() }
}

/// Checks that the journal holds 1 to its end, each entry once and in its place, and returns the end.
pub(crate) fn check_whole(store: &dyn Store) -> u64 {
    let last = store.last_sequence().unwrap();
    let rows = store.entries_after(0, &[], usize::MAX).unwrap();
    let numbers: Vec<u64> = rows.iter().map(|row| row.sequence).collect();
    assert_eq!(numbers, (1..=last).collect::<Vec<u64>>(), "no hole and no double");
    for row in &rows {
        let start = format!("{{\"n\":{},", row.sequence);
        assert!(row.body.starts_with(&start), "entry {} holds {}", row.sequence, row.body);
    }
    last
}

/// Returns the size of a file, 0 where there is none.
pub(crate) fn size(path: &Path, suffix: &str) -> u64 {
    let name = format!("{}{suffix}", path.display());
    fs::metadata(name).map_or(0, |file| file.len())
}

/// A file system in memory, of one size, that goes with the value.
pub(crate) struct SmallDisk {
    pub(crate) place: PathBuf,
    _directory: TempDir,
}

impl SmallDisk {
    /// Returns `None`, and says so, where mounting is not allowed.
    pub(crate) fn mount(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().to_owned();
        let options = std::ffi::CString::new(format!("size={size}")).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        match rustix::mount::mount("tmpfs", &place, "tmpfs", flags, options.as_c_str()) {
            Ok(()) => Some(Self { place, _directory: directory }),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: a small disk cannot be mounted here: {error}");
                None
            }
        }
    }

    /// Takes all the space that is left.
    pub(crate) fn exhaust(&self) -> PathBuf {
        let ballast = self.place.join("ballast");
        let mut file = fs::File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.place, rustix::mount::UnmountFlags::DETACH);
    }
}
