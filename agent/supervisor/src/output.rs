//! The job's output: from its pipe into a bounded log, byte for byte.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use latido_protocol::files::LogLimits;
use rustix::io::Errno;

/// Bytes of one read.
const CHUNK: usize = 16 * 1024;

/// Chunks of one pass, so that a job that prints without a pause does not keep the loop from its other work.
const PASS_MAX: u32 = 16;

/// A log smaller than this would be rotated at every chunk.
const SIZE_MIN: u64 = CHUNK as u64;

/// What a look into the pipe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// bytes came
    Some,
    /// nothing to read just now
    Nothing,
    /// every writer has closed it
    Closed,
}

pub(crate) struct Output {
    /// gone once every writer has closed it
    pipe: Option<OwnedFd>,
    log: Log,
    bytes: u64,
}

impl Output {
    /// Takes the reading end, which has to be non-blocking.
    pub(crate) fn new(pipe: OwnedFd, path: PathBuf, limits: LogLimits) -> Self {
        Self { pipe: Some(pipe), log: Log::new(path, limits), bytes: 0 }
    }

    /// Bytes that came so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the log could not take.
    pub(crate) fn lost(&self) -> u64 {
        self.log.lost
    }

    /// What to poll for.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Lets go of a log that was removed, so that its space is free although the job prints nothing.
    pub(crate) fn look(&mut self) {
        self.log.look();
    }

    /// Moves what is in the pipe into the log.
    pub(crate) fn drain(&mut self) -> Drained {
        let mut drained = Drained::Nothing;
        // Uninitialised on purpose: only pages that bytes arrive in become memory of this process.
        let mut buffer = [MaybeUninit::<u8>::uninit(); CHUNK];
        for pass in 0..PASS_MAX {
            let Some(pipe) = &self.pipe else { return Drained::Closed };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(([], _)) => {
                    self.pipe = None;
                    self.log.file = None;
                    return Drained::Closed;
                }
                Ok((filled, _)) => {
                    if pass == 0 {
                        self.log.look();
                    }
                    self.log.append(filled);
                    self.bytes += filled.len() as u64;
                    drained = Drained::Some;
                }
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        drained
    }
}

/// `output.log` with its rotated predecessors.
struct Log {
    path: PathBuf,
    size_max: u64,
    files_max: u32,
    file: Option<File>,
    size: u64,
    /// bytes lost since the last that were kept; told in the log when it takes bytes again
    untold: u64,
    /// bytes lost in all
    lost: u64,
}

impl Log {
    fn new(path: PathBuf, limits: LogLimits) -> Self {
        let (size_max, files_max) = (limits.size_max.max(SIZE_MIN), limits.files_max.max(1));
        Self { path, size_max, files_max, file: None, size: 0, untold: 0, lost: 0 }
    }

    /// Looks what became of the file: it may have been truncated, or removed to free its space.
    fn look(&mut self) {
        let Some(open) = self.file.as_ref().and_then(|file| file.metadata().ok()) else { return };
        let same =
            self.path.symlink_metadata().is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino()));
        if same {
            self.size = open.len();
        } else {
            self.file = None;
        }
    }

    /// Appends all or counts what was lost. It never waits for space.
    fn append(&mut self, mut bytes: &[u8]) {
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
        self.size += count as u64;
        Ok(count)
    }

    fn open(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        self.size = file.metadata()?.len();
        self.file = Some(file);
        Ok(())
    }

    /// Moves each file one number up; the oldest goes.
    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        let missing_is_fine = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
        let oldest = self.files_max - 1;
        if oldest == 0 {
            missing_is_fine(std::fs::remove_file(&self.path))?;
        } else {
            for number in (1..oldest).rev() {
                missing_is_fine(std::fs::rename(numbered(number), numbered(number + 1)))?;
            }
            missing_is_fine(std::fs::rename(&self.path, numbered(1)))?;
        }
        self.file = None;
        self.size = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &tempfile::TempDir, files_max: u32) -> Log {
        Log::new(folder.path().join("output.log"), LogLimits { size_max: SIZE_MIN, files_max, carriage_returns: latido_protocol::files::CarriageReturns::default() })
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
        let mut log = Log::new(folder.path().join("absent/output.log"), LogLimits { size_max: 0, files_max: 0, carriage_returns: latido_protocol::files::CarriageReturns::default() });
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
}
