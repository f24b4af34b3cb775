//! Reads an attempt's output log as one stream of bytes, across rotations, while it grows.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use latido_protocol::layout::AttemptDir;

/// More rotated files than any setting keeps; it bounds the search for the oldest.
const ROTATED_MAX: u32 = 10_000;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("read {path}")]
pub struct OutputError {
    /// which file
    pub path: PathBuf,
    /// what the system said
    pub source: io::Error,
}

/// A reader of an attempt's output, the oldest kept byte first.
pub struct Output {
    current: PathBuf,
    open: Option<Open>,
}

struct Open {
    file: File,
    inode: u64,
    offset: u64,
}

/// How much of a log's end is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The last bytes, so many.
    Bytes(u64),
    /// The last lines, so many; one that has not ended counts.
    Lines(u64),
}

/// Finds where the last `wanted` lines of a file begin, and how many of them it has. It reads from the end, so that a tail
/// costs what it shows.
fn last_lines(file: &mut File, length: u64, wanted: u64, is_newest: bool) -> io::Result<(u64, u64)> {
    const BLOCK: u64 = 64 * 1024;
    let mut found = 0;
    let mut end = length;
    let mut block = Vec::new();
    while end > 0 && found < wanted {
        let begin = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(begin))?;
        block.clear();
        file.by_ref().take(end - begin).read_to_end(&mut block)?;
        let from_end = block.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        for (index, _) in from_end {
            let after = begin + index as u64 + 1;
            // An older file ends where the line goes on that begins the newer one.
            let begins_line = after < length || !is_newest;
            if begins_line {
                found += 1;
            }
            if found == wanted {
                return Ok((after, found));
            }
        }
        end = begin;
    }
    Ok((0, found))
}

/// What one read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gave {
    /// This many bytes.
    Bytes(usize),
    /// Nothing more is there at present.
    Nothing,
    /// The file that was being read was rotated away and removed before it was read to its end or before the next
    /// one was found: some output is lost to this reader.
    Gap,
}

impl Output {
    /// Begins at the oldest byte that is kept.
    pub fn from_oldest(attempt: &AttemptDir) -> Self {
        Self { current: attempt.output(), open: None }
    }

    /// Begins so far from the end of what is kept, or at the oldest byte where less is kept.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn from_last(attempt: &AttemptDir, tail: Tail) -> Result<Self, OutputError> {
        let mut output = Self::from_oldest(attempt);
        let mut left = match tail {
            Tail::Bytes(count) | Tail::Lines(count) => count,
        };
        for number in 0..ROTATED_MAX {
            let path = if number == 0 { output.current.clone() } else { output.rotated(number) };
            let Some(mut open) = Self::opened(&path)? else { break };
            let length = open.file.metadata().map_err(Self::fail(&path))?.len();
            let (offset, found) = match tail {
                Tail::Bytes(_) | Tail::Lines(_) if left == 0 => (length, 0),
                Tail::Bytes(_) => (length.saturating_sub(left), length.min(left)),
                // Nothing follows the last line's end, so that one begins no line.
                Tail::Lines(_) => last_lines(&mut open.file, length, left, number == 0).map_err(Self::fail(&path))?,
            };
            open.offset = open.file.seek(SeekFrom::Start(offset)).map_err(Self::fail(&path))?;
            output.open = Some(open);
            left -= found.min(left);
            if left == 0 {
                break;
            }
        }
        Ok(output)
    }

    fn rotated(&self, number: u32) -> PathBuf {
        let mut name = self.current.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn fail(path: &Path) -> impl FnOnce(io::Error) -> OutputError {
        move |source| OutputError { path: path.to_owned(), source }
    }

    /// The inode of a file, `None` where there is none.
    fn inode(path: &Path) -> Result<Option<u64>, OutputError> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(metadata.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Self::fail(path)(error)),
        }
    }

    fn opened(path: &Path) -> Result<Option<Open>, OutputError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Self::fail(path)(error)),
        };
        let inode = file.metadata().map_err(Self::fail(path))?.ino();
        Ok(Some(Open { file, inode, offset: 0 }))
    }

    /// The oldest file that is kept.
    fn oldest(&self) -> Result<Option<Open>, OutputError> {
        let mut newest_missing = 1;
        while newest_missing < ROTATED_MAX && Self::inode(&self.rotated(newest_missing))?.is_some() {
            newest_missing += 1;
        }
        for number in (1..newest_missing).rev() {
            if let Some(open) = Self::opened(&self.rotated(number))? {
                return Ok(Some(open));
            }
        }
        Self::opened(&self.current)
    }

    /// The file that follows the one with this inode; the flag says that it may not be the very next.
    fn following(&self, inode: u64) -> Result<Option<(Open, bool)>, OutputError> {
        if Self::inode(&self.current)? == Some(inode) {
            return Ok(None);
        }
        for number in 1..ROTATED_MAX {
            match Self::inode(&self.rotated(number))? {
                Some(found) if found == inode => {
                    let next = if number == 1 { self.current.clone() } else { self.rotated(number - 1) };
                    return match Self::opened(&next)? {
                        // Rotated once more in between: the name has moved on to our own file.
                        Some(open) if open.inode == inode => Ok(None),
                        Some(open) => Ok(Some((open, false))),
                        None => Ok(None),
                    };
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(self.oldest()?.map(|open| (open, true)))
    }

    /// Reads what comes next into the buffer; never waits.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Gave, OutputError> {
        let path = self.current.clone();
        if self.open.is_none() {
            self.open = self.oldest()?;
        }
        let Some(open) = &mut self.open else { return Ok(Gave::Nothing) };
        // Somebody may have cut the file from outside; the writer goes on at its start.
        let length = open.file.metadata().map_err(Self::fail(&path))?.len();
        if length < open.offset {
            open.offset = open.file.seek(SeekFrom::Start(0)).map_err(Self::fail(&path))?;
        }
        let count = open.file.read(buffer).map_err(Self::fail(&path))?;
        if count > 0 {
            open.offset += count as u64;
            return Ok(Gave::Bytes(count));
        }
        let inode = open.inode;
        let Some((next, gap)) = self.following(inode)? else { return Ok(Gave::Nothing) };
        // The writer may have added to the old file after it was read to its end and before it was rotated.
        if let Some(open) = &mut self.open {
            let count = open.file.read(buffer).map_err(Self::fail(&path))?;
            if count > 0 {
                open.offset += count as u64;
                return Ok(Gave::Bytes(count));
            }
        }
        self.open = Some(next);
        if gap { Ok(Gave::Gap) } else { self.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn drain(output: &mut Output) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        let mut gap = false;
        let mut buffer = [0; 7];
        loop {
            match output.read(&mut buffer).unwrap() {
                Gave::Bytes(count) => all.extend_from_slice(&buffer[..count]),
                Gave::Gap => gap = true,
                Gave::Nothing => return (all, gap),
            }
        }
    }

    fn append(path: &Path, bytes: &[u8]) {
        File::options().append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    fn rotate(attempt: &AttemptDir, kept: u32) {
        let name = |number: u32| PathBuf::from(format!("{}.{number}", attempt.output().display()));
        let _ = std::fs::remove_file(name(kept));
        for number in (1..kept).rev() {
            let _ = std::fs::rename(name(number), name(number + 1));
        }
        std::fs::rename(attempt.output(), name(1)).unwrap();
    }

    #[test]
    fn rotations_between_two_reads_lose_nothing_that_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = AttemptDir::new(folder.path());
        let mut output = Output::from_oldest(&attempt);
        assert_eq!(output.read(&mut [0; 8]).unwrap(), Gave::Nothing);
        append(&attempt.output(), b"one ");
        assert_eq!(drain(&mut output).0, b"one ");
        append(&attempt.output(), b"two ");
        for word in [b"three ", b"four  "] {
            rotate(&attempt, 5);
            append(&attempt.output(), word);
        }
        assert_eq!(drain(&mut output), (b"two three four  ".to_vec(), false));
        let (all, gap) = drain(&mut Output::from_oldest(&attempt));
        assert_eq!((all.as_slice(), gap), (b"one two three four  ".as_slice(), false));
    }

    #[test]
    fn a_tail_begins_where_it_should_whatever_was_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = AttemptDir::new(folder.path());
        append(&attempt.output(), b"one\ntwo\nth");
        rotate(&attempt, 5);
        append(&attempt.output(), b"ree\nfour\n");
        let tail = |tail| drain(&mut Output::from_last(&attempt, tail).unwrap()).0;
        for (lines, expected) in
            [(1, "four\n"), (2, "three\nfour\n"), (3, "two\nthree\nfour\n"), (9, "one\ntwo\nthree\nfour\n"), (0, "")]
        {
            assert_eq!(String::from_utf8(tail(Tail::Lines(lines))).unwrap(), expected, "{lines} lines");
        }
        for (bytes, expected) in
            [(1, "\n"), (9, "ree\nfour\n"), (11, "three\nfour\n"), (99, "one\ntwo\nthree\nfour\n"), (0, "")]
        {
            assert_eq!(String::from_utf8(tail(Tail::Bytes(bytes))).unwrap(), expected, "{bytes} bytes");
        }
        append(&attempt.output(), b"five");
        assert_eq!(tail(Tail::Lines(2)), b"four\nfive", "a line that has not ended is one");
    }

    #[test]
    fn output_that_was_dropped_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = AttemptDir::new(folder.path());
        let mut output = Output::from_oldest(&attempt);
        append(&attempt.output(), b"one ");
        assert_eq!(drain(&mut output).0, b"one ");
        for word in [b"a", b"b", b"c", b"d"] {
            rotate(&attempt, 2);
            append(&attempt.output(), word);
        }
        assert_eq!(drain(&mut output), (b"bcd".to_vec(), true));
    }

    /// Field case C179 (stellar/stellar-core#2867): the log is cut to nothing from outside while it is followed.
    #[test]
    fn c179_a_log_cut_from_outside_is_followed_from_its_new_start() {
        let folder = tempfile::tempdir().unwrap();
        let attempt = AttemptDir::new(folder.path());
        let mut output = Output::from_oldest(&attempt);
        append(&attempt.output(), b"a long first line\n");
        drain(&mut output);
        File::options().write(true).truncate(true).open(attempt.output()).unwrap();
        append(&attempt.output(), b"new\n");
        assert_eq!(drain(&mut output).0, b"new\n");
    }
}
