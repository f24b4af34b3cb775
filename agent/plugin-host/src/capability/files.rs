//! `files`: lines appended to files by name. A line is there whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;

use super::FileId;
use crate::bindings::v0_2::sink::latido::plugin::files::{FileError, Host};
use crate::guest::Guest;
use crate::spec::{Durability, FileGrant};

/// How much of a file's end is read at once when a torn line is looked for.
const BLOCK: u64 = 64 << 10;

/// A file that was granted; opened at the first use, and again when another lies in its place.
pub(crate) struct AppendFile {
    grant: FileGrant,
    open: Arc<Mutex<Option<File>>>,
}

impl AppendFile {
    pub(crate) fn new(grant: FileGrant) -> Self {
        Self { grant, open: Arc::default() }
    }
}

impl Host for Guest {
    async fn append(&mut self, file: String, lines: String) -> Result<(), FileError> {
        let Some(watch) = self.watch() else { return append_lines(self, file, lines).await };
        let arguments = json!({ "file": file, "lines": lines });
        watch.around("files", "append", arguments, append_lines(self, file, lines)).await
    }
}

async fn append_lines(guest: &mut Guest, file: String, lines: String) -> Result<(), FileError> {
    let Some(granted) = guest.capabilities.files.get(&file) else {
        return Err(FileError::Denied(format!("the file `{file}` is not granted")));
    };
    if lines.is_empty() {
        return Ok(());
    }
    if !lines.ends_with('\n') {
        return Err(FileError::Failed("the last line does not end with a line feed".to_owned()));
    }
    let grant = granted.grant.clone();
    let mut slot = Arc::clone(&granted.open).lock_owned().await;
    let done = tokio::task::spawn_blocking(move || append(&mut slot, &grant, &lines)).await;
    match done {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            Err(FileError::Full)
        }
        Ok(Err(error)) => Err(FileError::Failed(error.to_string())),
        Err(_) => Err(FileError::Failed("the host failed at the file".to_owned())),
    }
}

fn append(slot: &mut Option<File>, grant: &FileGrant, lines: &str) -> io::Result<()> {
    let is_there = |file: &File| file.metadata().is_ok_and(|found| FileId::of(&found).is_at(&grant.path));
    if slot.as_ref().is_some_and(|file| !is_there(file)) {
        *slot = None; // rotated away from outside
    }
    let file = match slot {
        Some(file) => file,
        None => slot.insert(open(&grant.path)?),
    };
    let before = file.metadata()?.len();
    let written = file.write_all(lines.as_bytes()).and_then(|()| match grant.durability {
        Durability::Disk => file.sync_data(),
        Durability::Process => Ok(()),
    });
    if written.is_err() {
        // Takes back what was written of the lines: all or none. Where that fails too, opening it again heals it.
        let taken_back = file.set_len(before);
        *slot = None;
        drop(taken_back);
    }
    written
}

/// Opens the file for appending, and sets a line aside that a crash tore.
fn open(path: &Path) -> io::Result<File> {
    let made = !path.exists();
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    if made && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    let length = file.metadata()?.len();
    let whole = whole_lines(&mut file, length)?;
    if whole < length {
        set_aside(&mut file, path, whole)?;
        file.set_len(whole)?;
    }
    Ok(file)
}

/// The length of the file up to its last line feed.
fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        block.clear();
        file.seek(SeekFrom::Start(start))?;
        io::Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(position) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + position as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Keeps a torn line beside the file, as `<file>.torn`: it may be somebody else's, and nothing is thrown away.
fn set_aside(file: &mut File, path: &Path, whole: u64) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    let aside = PathBuf::from(name);
    file.seek(SeekFrom::Start(whole))?;
    let mut torn = OpenOptions::new().append(true).create(true).open(&aside)?;
    let length = io::copy(file, &mut torn)?;
    torn.write_all(b"\n")?;
    torn.sync_all()?;
    tracing::warn!(path = %path.display(), aside = %aside.display(), length, "the last line was torn; it was set aside");
    Ok(())
}
