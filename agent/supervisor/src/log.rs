//! A bounded log, byte for byte, with an index of when its bytes were written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use latido_protocol::WallTime;
use latido_protocol::files::LogLimits;

use crate::clock;

/// A log smaller than this would be rotated at every few lines.
const SIZE_MIN: u64 = 16 * 1024;

/// Bytes between two records of the index, but for silence: the index stays below a tenth of its log.
const INDEX_BYTES: u64 = 512;

/// Milliseconds between two records, however much is written.
const INDEX_EVERY: u64 = 1_000;

/// Milliseconds after which the next byte has a record of its own, however few were written.
const INDEX_QUIET: u64 = 60_000;

/// `output.log` with its rotated predecessors.
pub(crate) struct Log {
    path: PathBuf,
    size_max: u64,
    files_max: u32,
    file: Option<File>,
    size: u64,
    index: Option<Index>,
    /// bytes lost since the last that were kept; told in the log when it takes bytes again
    untold: u64,
    /// bytes lost in all
    lost: u64,
}

/// The file beside a log that says when its bytes were written.
struct Index {
    path: PathBuf,
    /// offset and wall time of the last record, in this file
    last: Option<(u64, u64)>,
}

impl Log {
    /// A log at this path, with an index at another.
    pub(crate) fn new(path: PathBuf, index: Option<PathBuf>, limits: LogLimits) -> Self {
        let (size_max, files_max) = (limits.size_max.max(SIZE_MIN), limits.files_max.max(1));
        let index = index.map(|path| Index { path, last: None });
        Self { path, size_max, files_max, file: None, size: 0, index, untold: 0, lost: 0 }
    }

    /// Bytes that could not be kept.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Lets go of the file, which is opened again for the next byte.
    pub(crate) fn close(&mut self) {
        self.file = None;
    }

    /// Looks what became of the file: it may have been truncated, or removed to free its space.
    pub(crate) fn look(&mut self) {
        let Some(open) = self.file.as_ref().and_then(|file| file.metadata().ok()) else { return };
        let same =
            self.path.symlink_metadata().is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino()));
        if same {
            if open.len() < self.size {
                self.index.as_mut().map(Index::begin);
            }
            self.size = open.len();
        } else {
            self.file = None;
        }
    }

    /// Appends all or counts what was lost. It never waits for space.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) {
        if self.untold > 0 {
            let notice =
                format!("\n[latido: {} bytes of output were lost, the log could not be written]\n", self.untold);
            if self.write(notice.as_bytes()).is_ok() {
                self.untold = 0;
            }
        }
        while !bytes.is_empty() {
            let Ok(count) = self.write(bytes) else {
                self.untold += bytes.len() as u64;
                self.lost += bytes.len() as u64;
                return;
            };
            bytes = &bytes[count..];
        }
    }

    /// Writes what fits into the current file, after making room for it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_some() && self.size >= self.size_max {
            self.rotate()?;
        }
        if self.file.is_none() {
            self.open()?;
        }
        if self.size >= self.size_max {
            self.rotate()?;
            self.open()?;
        }
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        let room = usize::try_from(self.size_max - self.size).unwrap_or(usize::MAX);
        let count = file.write(&bytes[..bytes.len().min(room)])?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        if let Some(index) = &mut self.index {
            index.note(self.size, clock::wall());
        }
        self.size += count as u64;
        Ok(count)
    }

    fn open(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        if self.size == 0 {
            self.index.as_mut().map(Index::begin);
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        rotate(&self.path, self.files_max)?;
        if let Some(index) = &self.index {
            rotate(&index.path, self.files_max)?;
        }
        self.file = None;
        self.size = 0;
        Ok(())
    }
}

impl Index {
    /// Begins anew, with its log. An index is no promise: what cannot be written leaves a hole in it.
    fn begin(&mut self) {
        self.last = None;
        let _ = std::fs::remove_file(&self.path);
    }

    /// Takes in that the byte at this offset is written at this time.
    fn note(&mut self, offset: u64, at: WallTime) {
        let now = at.as_millis();
        let is_due = self.last.is_none_or(|(last, then)| {
            // A clock that was set back has records of its own.
            let (passed, grown) = (now.abs_diff(then), offset.saturating_sub(last));
            passed >= INDEX_QUIET || passed >= INDEX_EVERY && grown >= INDEX_BYTES
        });
        if is_due {
            self.last = Some((offset, now));
            let record = format!("{offset:020} {at}\n");
            let _ = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)
                .and_then(|mut file| file.write_all(record.as_bytes()));
        }
    }
}

/// Moves each file one number up; the oldest goes.
fn rotate(path: &Path, files_max: u32) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let missing_is_fine = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    let oldest = files_max - 1;
    if oldest == 0 {
        return missing_is_fine(std::fs::remove_file(path));
    }
    for number in (1..oldest).rev() {
        missing_is_fine(std::fs::rename(numbered(number), numbered(number + 1)))?;
    }
    missing_is_fine(std::fs::rename(path, numbered(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &tempfile::TempDir, files_max: u32) -> Log {
        Log::new(
            folder.path().join("output.log"),
            None,
            LogLimits {
                size_max: SIZE_MIN,
                files_max,
                carriage_returns: latido_protocol::files::CarriageReturns::default(),
            },
        )
    }

    fn sizes(folder: &tempfile::TempDir) -> Vec<(String, u64)> {
        let mut sizes: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len()))
            .collect();
        sizes.sort();
        sizes
    }

    // sddm/sddm#1874
    #[test]
    fn c181_the_log_is_bounded_and_a_removed_one_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(&folder, 3);
        let chunk = [b'x'; 10_000];
        for _ in 0..100 {
            log.look();
            log.append(&chunk);
        }
        let names = ["output.log", "output.log.1", "output.log.2"];
        assert_eq!(sizes(&folder).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), names);
        assert!(sizes(&folder).iter().all(|(_, size)| *size <= SIZE_MIN));
        std::fs::remove_file(folder.path().join("output.log")).unwrap();
        log.look();
        log.append(b"again");
        assert_eq!(std::fs::read(folder.path().join("output.log")).unwrap(), b"again");
    }

    // stellar/stellar-core#2867, logrotate/logrotate#363
    #[test]
    fn c179_a_log_truncated_from_outside_begins_at_zero() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(&folder, 2);
        log.append(&[b'x'; 9000]);
        File::create(folder.path().join("output.log")).unwrap();
        log.look();
        log.append(&[b'y'; 9000]);
        assert_eq!(sizes(&folder), [("output.log".to_owned(), 9000)]);
        assert!(std::fs::read(folder.path().join("output.log")).unwrap().iter().all(|byte| *byte == b'y'));
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::new(
            folder.path().join("absent/output.log"),
            None,
            LogLimits {
                size_max: 0,
                files_max: 0,
                carriage_returns: latido_protocol::files::CarriageReturns::default(),
            },
        );
        log.append(b"lost");
        assert_eq!(log.lost, 4);
        std::fs::create_dir(folder.path().join("absent")).unwrap();
        log.append(b"kept");
        let text = std::fs::read_to_string(folder.path().join("absent/output.log")).unwrap();
        assert!(text.contains("4 bytes of output were lost") && text.ends_with("kept"), "{text}");
    }

    #[test]
    fn one_file_only_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = log(&folder, 1);
        for _ in 0..10 {
            log.append(&[b'x'; 10_000]);
        }
        assert_eq!(sizes(&folder).len(), 1);
    }

    #[test]
    fn the_index_says_when_bytes_were_written_and_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let mut index = Index { path: folder.path().join("output.index"), last: None };
        let at = |seconds: u64| WallTime::from_millis(1_700_000_000_000 + seconds * 1000);
        // (offset, second) and whether it has a record
        let notes =
            [(0, 0, true), (600, 0, false), (700, 1, true), (800, 2, false), (900, 61, true), (5000, 61, false)];
        for (offset, second, _) in notes {
            index.note(offset, at(second));
        }
        let text = std::fs::read_to_string(&index.path).unwrap();
        let expected: Vec<_> = notes.iter().filter(|note| note.2).collect();
        assert_eq!(text.lines().count(), expected.len());
        for (line, (offset, second, _)) in text.lines().zip(expected) {
            assert_eq!(line, format!("{offset:020} {}", at(*second)));
            assert_eq!(line.len() + 1, 46, "each record has the width that the layout says");
        }
        index.begin();
        assert!(!index.path.exists());
    }

    #[test]
    fn the_index_is_rotated_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let limits = LogLimits {
            size_max: SIZE_MIN,
            files_max: 2,
            carriage_returns: latido_protocol::files::CarriageReturns::default(),
        };
        let mut log = Log::new(folder.path().join("output.log"), Some(folder.path().join("output.index")), limits);
        for _ in 0..10 {
            log.append(&[b'x'; 10_000]);
        }
        let names: Vec<_> = sizes(&folder).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["output.index", "output.index.1", "output.log", "output.log.1"]);
        let text = std::fs::read_to_string(folder.path().join("output.index")).unwrap();
        assert!(text.starts_with("00000000000000000000 "), "{text}");
        File::create(folder.path().join("output.log")).unwrap();
        log.look();
        assert!(!folder.path().join("output.index").exists(), "a truncated log begins anew");
    }
}
