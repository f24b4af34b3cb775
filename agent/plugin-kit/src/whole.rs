//! Writes a file so that nobody ever sees a part of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file beside its place and moves it there once it is on the disk: whoever looks sees all of it, or what was there
/// before.
///
/// # Errors
///
/// What the system says; what was there before is as it was.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_as(path, bytes, 0o644)
}

/// The same, for a file that nobody else may read.
///
/// # Errors
///
/// What the system says; what was there before is as it was.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_as(path, bytes, 0o600)
}

pub(crate) fn write_whole_as(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.new", std::process::id()));
    let new = folder.join(beside);
    match fs::remove_file(&new) {
        Ok(()) => {} // left behind by a process with this pid
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let written = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let kept = written.and_then(|()| fs::rename(&new, path)).and_then(|()| File::open(folder)?.sync_all());
    if kept.is_err() {
        drop(fs::remove_file(&new)); // the first error is the one to tell
    }
    kept
}
