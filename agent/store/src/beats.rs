//! The newest beats of workers, in files that are only appended to.
//!
//! A row of the database that every beat replaces costs a page of writes for a hundred bytes. So beats go, once a
//! second or some thousand together, as one packed batch and with one wait for the disk, to the end of a file beside the
//! database, and the rows take them in when they are read. Of one registration the beat with the highest sequence counts.
//!
//! The files are bounded by rounds: when one is long enough another is begun, the caller gives the newest beat of every
//! living worker once more, a few with each batch, and when it is through, the older file has nothing that is not in the
//! newer one, and goes. Who dies meanwhile has its last beat in its row.
//!
//! A file is read whole or up to where it was torn. One that is rubbish in its middle is trusted up to there, said to be
//! damaged as long as it is needed, and kept aside after that.

mod format;
mod read;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::open::beside;

pub(crate) use read::{files, take_in};

/// Bytes after which another file is begun. A start reads it in a hundredth of a second; a million workers fill it in
/// eleven seconds, and a round of theirs takes a minute.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A beat to be kept: the newest of one registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat<'a> {
    /// the worker
    pub name: &'a str,
    /// its registration, a number that no other worker ever has
    pub epoch: u64,
    /// wall time, in milliseconds since 1970
    pub at_ms: Option<u64>,
    /// when it was heard, in milliseconds of listening time
    pub heard_ms: u64,
    /// its number; it grows with every beat of a registration
    pub sequence: u64,
    /// its loop state
    pub state: Option<&'a str>,
    /// what it works on
    pub active_job: Option<&'a str>,
    /// errors it has counted
    pub errors: u64,
}

/// Beats that are kept together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeatBatch<'a> {
    /// the beats; of one registration at most one
    pub beats: Vec<Beat<'a>>,
    /// with this batch the newest beat of every living worker was given since [`BeatsKept::wants_round`] was first said
    pub ends_round: bool,
}

/// What came of keeping beats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeatsKept {
    /// The newest beat of every living worker is to be given once more, over as many calls as the caller likes, so that
    /// older files can go.
    pub wants_round: bool,
}

/// The files beside one database.
#[derive(Debug)]
pub(crate) struct BeatFiles {
    database: PathBuf,
    journal_id: String,
    /// None until the first batch: who only reads the database changes no file
    opened: Option<Opened>,
    packed: Vec<u8>,
}

#[derive(Debug)]
struct Opened {
    current: Current,
    older: Vec<Older>,
    wants_round: bool,
}

/// The file that is appended to.
#[derive(Debug)]
struct Current {
    path: PathBuf,
    file: File,
    number: u64,
    /// bytes that are known to be whole and on the disk
    bytes: u64,
    /// what lies behind them is the rest of a write that failed
    is_torn: bool,
}

/// A file that goes when the round ends.
#[derive(Debug)]
struct Older {
    path: PathBuf,
    /// it is kept for a person to look at
    is_damaged: bool,
}

impl BeatFiles {
    pub(crate) fn new(database: &Path, journal_id: &str) -> Self {
        let (database, journal_id) = (database.to_owned(), journal_id.to_owned());
        Self { database, journal_id, opened: None, packed: Vec::new() }
    }

    /// Appends the batch; it is on the disk when this returns. After an error nothing of it counts.
    pub(crate) fn keep(&mut self, batch: &BeatBatch<'_>) -> Result<BeatsKept, StoreError> {
        let mut opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let outcome = self.append(&mut opened, batch);
        let kept = BeatsKept { wants_round: opened.wants_round };
        self.opened = Some(opened);
        outcome.map(|()| kept)
    }

    fn append(&mut self, opened: &mut Opened, batch: &BeatBatch<'_>) -> Result<(), StoreError> {
        if opened.wants_round && opened.older.is_empty() && opened.current.bytes > 0 {
            let next = self.begin(opened.current.number + 1)?;
            let full = std::mem::replace(&mut opened.current, next);
            opened.older.push(Older { path: full.path, is_damaged: false });
        }
        self.packed.clear();
        if opened.current.bytes == 0 {
            format::put_header(&mut self.packed, &self.journal_id);
        }
        if !batch.beats.is_empty() {
            format::put_batch(&mut self.packed, &batch.beats)?;
        }
        let is_first = opened.current.bytes == 0;
        opened.current.append(&self.packed)?;
        if is_first {
            sync_folder(&self.database)?;
        }
        if batch.ends_round {
            opened.retire()?;
        }
        opened.wants_round |= opened.current.bytes >= FILE_BYTES_MAX;
        Ok(())
    }

    fn begin(&self, number: u64) -> Result<Current, StoreError> {
        let path = path(&self.database, number);
        let failed = |error| failed(&path, error);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(failed)?;
        Ok(Current { path, file, number, bytes: 0, is_torn: false })
    }

    /// Goes on with the newest file where it is whole, and with a new one where it is not.
    fn open(&self) -> Result<Opened, StoreError> {
        let mut older = Vec::new();
        let mut newest = None;
        let mut number = 0;
        for found in files(&self.database)? {
            number = found;
            let path = path(&self.database, found);
            let end = read::walk(&path, &self.journal_id, |_| {})?;
            let is_damaged = end.damage.is_some();
            newest = (!is_damaged).then_some(end.bytes);
            older.push(Older { path, is_damaged });
        }
        let Some(bytes) = newest else {
            let wants_round = !older.is_empty();
            return Ok(Opened { current: self.begin(number + 1)?, older, wants_round });
        };
        let path = older.pop().map(|newest| newest.path).unwrap_or_default();
        let file = OpenOptions::new().write(true).open(&path).map_err(|error| failed(&path, error))?;
        let wants_round = !older.is_empty();
        Ok(Opened { current: Current { path, file, number, bytes, is_torn: true }, older, wants_round })
    }
}

impl Opened {
    /// Everything that older files hold is in the current one too.
    fn retire(&mut self) -> Result<(), StoreError> {
        while let Some(Older { path, is_damaged }) = self.older.last() {
            let aside = beside(path, ".damaged");
            let done = if *is_damaged { fs::rename(path, aside) } else { fs::remove_file(path) };
            match done {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(path, error)),
                Ok(()) | Err(_) => _ = self.older.pop(),
            }
        }
        self.wants_round = false;
        Ok(())
    }
}

impl Current {
    fn append(&mut self, packed: &[u8]) -> Result<(), StoreError> {
        let written = self.write(packed);
        // Whatever of it reached the file is cut off before the next batch.
        self.is_torn = written.is_err();
        written.map_err(|error| failed(&self.path, error))?;
        self.bytes += packed.len() as u64;
        Ok(())
    }

    fn write(&mut self, packed: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.bytes)?;
        }
        self.file.write_all_at(packed, self.bytes)?;
        self.file.sync_data()
    }
}

/// The file of this number; the numbers grow.
fn path(database: &Path, number: u64) -> PathBuf {
    beside(database, &format!("{SUFFIX}{number}"))
}

/// Stands between the database's name and the number.
pub(crate) const SUFFIX: &str = "-beats-";

/// A name is on the disk when its folder is.
fn sync_folder(database: &Path) -> Result<(), StoreError> {
    let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(folder, error))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum is the standard library's, and the rest of it is one case"
)]
fn failed(path: &Path, error: io::Error) -> StoreError {
    let (store, kind) = (path.display().to_string(), error.kind());
    let source = error.into();
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { store, source },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { store, source },
        _ => StoreError::Io { store, source },
    }
}
