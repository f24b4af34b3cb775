//! The thread that writes a recording, and rotates its files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

/// What the thread is told.
pub(super) enum Told {
    /// Append these bytes, which end a line.
    Line(Vec<u8>),
    /// Go on in another file.
    Rotate,
}

/// Writes what it is told.
pub(super) struct Writer {
    path: PathBuf,
    files_max: u32,
    /// `None` before the first line, and after the disk refused one
    file: Option<File>,
    refused: Arc<AtomicBool>,
}

impl Writer {
    pub(super) fn new(path: PathBuf, files_max: u32, refused: Arc<AtomicBool>) -> Self {
        Self { path, files_max, file: None, refused }
    }

    /// Writes until nobody tells any more.
    pub(super) fn run(&mut self, queue: &Receiver<Told>) {
        while let Ok(told) = queue.recv() {
            let done = match told {
                Told::Line(text) => self.write(&text),
                Told::Rotate => self.rotate(),
            };
            if let Err(error) = done {
                self.file = None;
                if !self.refused.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, file = %self.path.display(), "cannot write the recording; it begins anew later");
                }
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.file = Some(open(&self.path)?);
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(text))
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.file = None;
        for number in (1..self.files_max).rev() {
            match std::fs::rename(rotated(&self.path, number - 1), rotated(&self.path, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        if self.files_max == 1 { std::fs::remove_file(&self.path) } else { Ok(()) }
    }
}

/// The file's name after so many rotations.
fn rotated(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Opens it for appending; what a killed agent left of a line is ended first.
fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(file)
}
