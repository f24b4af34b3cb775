//! How files in these formats are read and written whole.
//!
//! A file is replaced by a temporary file beside it and a rename, so that a reader sees the old content or the new one,
//! and a full disk leaves the old one as it was. Temporary files begin with a dot; a crash may leave one behind, and no
//! reader looks at it. All files have mode 0600.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::FORMAT_VERSION;

/// Bytes of one file that is read whole. The largest is `job.json`, whose environment the kernel bounds to about 2 MiB;
/// more is not ours, and is not read into memory.
pub const FILE_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of one line that is read. A record with two texts of the longest kind has far less; a longer line is damage.
pub const RECORD_MAX: usize = 1024 * 1024;

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It exists, and is written once.
    #[error("create {path}: it exists")]
    Exists {
        /// which file
        path: PathBuf,
    },
    /// The value has no JSON form.
    #[error("write {path} as JSON")]
    Encode {
        /// which file
        path: PathBuf,
        /// what the encoder said
        source: serde_json::Error,
    },
    /// The file system refused; the old content, where there was one, is whole.
    #[error("write {path}")]
    Io {
        /// which file
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No byte in it: somebody truncated it, or a crash did.
    #[error("read {path}: it is empty")]
    Empty {
        /// which file
        path: PathBuf,
    },
    /// Zero bytes only: a file system gave back a file whose content it had lost.
    #[error("read {path}: it holds zero bytes only")]
    ZeroFilled {
        /// which file
        path: PathBuf,
    },
    /// It ends in the middle.
    #[error("read {path}: it is torn, its end is missing")]
    Torn {
        /// which file
        path: PathBuf,
        /// what the decoder said
        source: serde_json::Error,
    },
    /// It is not in the format.
    #[error("read {path}: it is not in latido's format")]
    NotOurs {
        /// which file
        path: PathBuf,
        /// what the decoder said
        source: serde_json::Error,
    },
    /// More than [`FILE_MAX`] bytes.
    #[error("read {path}: it is longer than {FILE_MAX} bytes")]
    TooLarge {
        /// which file
        path: PathBuf,
    },
    /// A newer latido wrote it.
    #[error("read {path}: it has version {found}, written by a newer latido; this one knows version {known}")]
    NewerVersion {
        /// which file
        path: PathBuf,
        /// the version in the file
        found: u64,
        /// the highest this program knows
        known: u32,
    },
    /// The file system refused.
    #[error("read {path}")]
    Io {
        /// which file
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
}

/// What a file of lines holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines<T> {
    /// the records, in order
    pub records: Vec<T>,
    /// numbers, from 1, of the lines that are no record
    pub damaged: Vec<u64>,
}

/// Replaces a file durably: when this returns, the new content survives a loss of power.
///
/// # Errors
/// When the value cannot be encoded or the file system refuses; the old content is whole.
pub fn replace<T: Serialize>(path: &Path, value: &T) -> Result<(), WriteError> {
    let written = write_beside(path, value, Durability::Synced)?;
    written.rename_to(path)?;
    sync_folder(path)
}

/// Replaces a file so that a loss of power leaves the old content or the new one, whole: the content is on the disk when
/// this returns, its name may not be. Half the wait of [`replace`].
///
/// # Errors
/// As [`replace`].
pub fn replace_whole<T: Serialize>(path: &Path, value: &T) -> Result<(), WriteError> {
    write_beside(path, value, Durability::Synced)?.rename_to(path)
}

/// Puts a folder on the disk with all that is in it, before it gets the name under which others find it.
///
/// What is in files is waited for, and the names in each folder that has any. An empty file or folder is no more than its
/// name.
///
/// # Errors
/// When the file system refuses.
pub fn sync_tree(folder: &Path) -> Result<(), WriteError> {
    let refuse = |path: &Path| {
        let path = path.to_owned();
        move |source| WriteError::Io { path, source }
    };
    let mut is_empty = true;
    for entry in std::fs::read_dir(folder).map_err(refuse(folder))? {
        is_empty = false;
        let entry = entry.map_err(refuse(folder))?;
        let path = entry.path();
        let found = entry.metadata().map_err(refuse(&path))?;
        if found.is_dir() {
            sync_tree(&path)?;
        } else if found.len() > 0 {
            File::open(&path).and_then(|file| file.sync_all()).map_err(refuse(&path))?;
        }
    }
    if is_empty {
        return Ok(());
    }
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(refuse(folder))
}

/// Puts a file on the disk with its name, where there is one.
///
/// # Errors
/// When the file system refuses.
pub fn sync_file(path: &Path) -> Result<(), WriteError> {
    match File::open(path) {
        Ok(file) => {
            file.sync_all().map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
            sync_folder(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(WriteError::Io { path: path.to_owned(), source }),
    }
}

/// Replaces a file without waiting for the disk; a loss of power may bring the old content back.
///
/// # Errors
/// As [`replace`].
pub fn replace_quick<T: Serialize>(path: &Path, value: &T) -> Result<(), WriteError> {
    write_beside(path, value, Durability::Quick)?.rename_to(path)
}

/// Makes a file durably, once.
///
/// # Errors
/// [`WriteError::Exists`] when it is there already, whatever it holds; else as [`replace`].
pub fn create<T: Serialize>(path: &Path, value: &T) -> Result<(), WriteError> {
    let written = write_beside(path, value, Durability::Synced)?;
    match std::fs::hard_link(&written.path, path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(WriteError::Exists { path: path.to_owned() });
        }
        Err(source) => return Err(WriteError::Io { path: path.to_owned(), source }),
    }
    drop(written);
    sync_folder(path)
}

/// Reads a file whole. `None`: there is none.
///
/// # Errors
/// When the file is damaged, newer than this program, or cannot be read. Each error names the file.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReadError> {
    let Some(bytes) = read_bytes(path)? else { return Ok(None) };
    let path = || path.to_owned();
    if bytes.is_empty() {
        return Err(ReadError::Empty { path: path() });
    }
    if bytes.iter().all(|byte| *byte == 0) {
        return Err(ReadError::ZeroFilled { path: path() });
    }
    let version = match serde_json::from_slice::<VersionOnly>(&bytes) {
        Ok(only) => only.version,
        Err(source) if source.is_eof() => return Err(ReadError::Torn { path: path(), source }),
        Err(source) => return Err(ReadError::NotOurs { path: path(), source }),
    };
    if let Some(found) = version
        && found > u64::from(FORMAT_VERSION)
    {
        return Err(ReadError::NewerVersion { path: path(), found, known: FORMAT_VERSION });
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|source| ReadError::NotOurs { path: path(), source })
}

/// Appends one record as a line of its own, in one write; with `sync` it is on the disk when this returns.
///
/// A torn last line is ended first, so that the new record stands alone.
///
/// # Errors
/// When the value cannot be encoded or the file system refuses; a piece of the line may stand in the file, and the next
/// append isolates it.
pub fn append_line<T: Serialize>(path: &Path, value: &T, sync: bool) -> Result<(), WriteError> {
    let refuse = |source| WriteError::Io { path: path.to_owned(), source };
    let mut line = vec![b'\n'];
    serde_json::to_writer(&mut line, value).map_err(|source| WriteError::Encode { path: path.to_owned(), source })?;
    line.push(b'\n');
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path).map_err(refuse)?;
    let length = file.metadata().map_err(refuse)?.len();
    let line = if is_torn(&file, length).map_err(refuse)? { &line[..] } else { &line[1..] };
    let count = file.write(line).map_err(refuse)?;
    if count != line.len() {
        return Err(refuse(io::Error::from(io::ErrorKind::StorageFull)));
    }
    if sync {
        file.sync_data().map_err(refuse)?;
        if length == 0 {
            sync_folder(path)?;
        }
    }
    Ok(())
}

/// Reads all records of a file of lines; an absent file has none.
///
/// # Errors
/// When the file cannot be read. Damage is no error: it is listed.
pub fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Lines<T>, ReadError> {
    let mut lines = Lines { records: Vec::new(), damaged: Vec::new() };
    for_each_line(path, |number, record| match record {
        Some(record) => lines.records.push(record),
        None => lines.damaged.push(number),
    })?;
    Ok(lines)
}

/// Hands each line's number, from 1, and its record (`None` for damage) to `take`, one in memory at a time. Empty lines
/// are passed over.
///
/// # Errors
/// When the file cannot be read.
pub fn for_each_line<T: DeserializeOwned>(path: &Path, mut take: impl FnMut(u64, Option<T>)) -> Result<(), ReadError> {
    let refuse = |source| ReadError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refuse(error)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = RECORD_MAX as u64 + 1;
        if reader.by_ref().take(limit).read_until(b'\n', &mut line).map_err(refuse)? == 0 {
            break;
        }
        let whole = line.len() <= RECORD_MAX;
        if !whole && line.last() != Some(&b'\n') {
            skip_line(&mut reader).map_err(refuse)?;
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            take(number, whole.then(|| serde_json::from_slice(text).ok()).flatten());
        }
    }
    Ok(())
}

/// Drops the older lines of a file of lines, so that at most `bytes` of the newest stay.
///
/// A line that another process appends in the same moment may be lost: it is for histories with one writer.
///
/// # Errors
/// When the file system refuses; the file is as it was.
pub fn keep_newest(path: &Path, bytes: u64) -> Result<(), WriteError> {
    let refuse = |source| WriteError::Io { path: path.to_owned(), source };
    let mut reader = BufReader::new(File::open(path).map_err(refuse)?);
    let length = reader.get_ref().metadata().map_err(refuse)?.len();
    let Some(surplus) = length.checked_sub(bytes).filter(|surplus| *surplus > 0) else { return Ok(()) };
    reader.seek(SeekFrom::Start(surplus - 1)).map_err(refuse)?;
    // The line that the cut falls into goes as well; one that begins at the cut stays.
    skip_line(&mut reader).map_err(refuse)?;
    let (temporary, mut file) = open_temporary(path).map_err(refuse)?;
    io::copy(&mut reader, &mut file).map_err(refuse)?;
    temporary.rename_to(path)
}

#[derive(serde::Deserialize)]
struct VersionOnly {
    version: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    Synced,
    Quick,
}

/// A temporary file that is removed unless it was renamed.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn rename_to(self, path: &Path) -> Result<(), WriteError> {
        std::fs::rename(&self.path, path).map_err(|source| WriteError::Io { path: path.to_owned(), source })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing to remove, and what cannot be removed is a dot file that nobody reads.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn write_beside<T: Serialize>(path: &Path, value: &T, durability: Durability) -> Result<Temporary, WriteError> {
    let refuse = |source| WriteError::Io { path: path.to_owned(), source };
    let mut bytes = serde_json::to_vec(value).map_err(|source| WriteError::Encode { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    let (temporary, mut file) = open_temporary(path).map_err(refuse)?;
    file.write_all(&bytes).map_err(refuse)?;
    if durability == Durability::Synced {
        file.sync_all().map_err(refuse)?;
    }
    Ok(temporary)
}

fn open_temporary(path: &Path) -> io::Result<(Temporary, File)> {
    /// Sets writers of one process apart; the pid sets processes apart.
    static NEXT: AtomicU32 = AtomicU32::new(0);

    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.{number}.tmp", std::process::id()));
    let beside = path.with_file_name(beside);
    // Truncates what a crashed process of the same pid may have left.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    Ok((Temporary { path: beside }, file))
}

fn sync_folder(path: &Path) -> Result<(), WriteError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| WriteError::Io { path: path.to_owned(), source })
}

fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, ReadError> {
    let refuse = |source| ReadError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(refuse)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    Ok(Some(bytes))
}

fn is_torn(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    // A file that shrank between the two looks has lost its end to somebody else.
    Ok(file.read_at(&mut byte, last)? == 1 && byte[0] != b'\n')
}

/// Passes over the rest of a line that is too long, without keeping it.
fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(());
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(chunk.len(), |position| position + 1);
        reader.consume(count);
        if end.is_some() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_was_written_is_read_and_nothing_is_left_beside() {
        use std::os::unix::fs::PermissionsExt;

        let folder = folder();
        let path = folder.path().join("status.json");
        assert!(read::<serde_json::Value>(&path).unwrap().is_none());
        for (number, write) in [replace::<serde_json::Value>, replace_quick].into_iter().enumerate() {
            write(&path, &json!({"version": 1, "n": number})).unwrap();
            assert_eq!(read::<serde_json::Value>(&path).unwrap(), Some(json!({"version": 1, "n": number})));
        }
        assert_eq!(names(folder.path()), ["status.json"]);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_is_created_once() {
        let folder = folder();
        let path = folder.path().join("end.json");
        create(&path, &json!({"n": 1})).unwrap();
        assert!(matches!(create(&path, &json!({"n": 2})), Err(WriteError::Exists { .. })));
        assert_eq!(read::<serde_json::Value>(&path).unwrap(), Some(json!({"n": 1})));
        assert_eq!(names(folder.path()), ["end.json"]);
    }

    /// Where the child of the next test finds the file it is to replace.
    const CHILD: &str = "LATIDO_TEST_REPLACE";

    #[test]
    fn c235_child_replaces_beyond_its_file_size_limit() {
        let Some(path) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
        let large = json!({"n": "x".repeat(1024 * 1024)});
        assert!(matches!(replace(&path, &large), Err(WriteError::Io { .. })));
        assert!(matches!(replace_quick(&path, &large), Err(WriteError::Io { .. })));
        assert!(matches!(create(&path.with_extension("new"), &large), Err(WriteError::Io { .. })));
    }

    // anomalyco/opencode#7607, Velocidex/velociraptor#2885, Icinga/icinga2#1074. A limit of file size stands for the
    // full disk: the kernel refuses in the middle of the write just the same, and needs no mount.
    #[test]
    fn c235_a_write_that_fails_leaves_the_old_content_whole() {
        let folder = folder();
        let path = folder.path().join("status.json");
        replace(&path, &json!({"n": 1})).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the limit must not reach this process")]
        let child = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "disk::tests::c235_child_replaces_beyond_its_file_size_limit"])
            .env(CHILD, &path)
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && output.contains("1 passed"), "{output}");
        assert_eq!(read::<serde_json::Value>(&path).unwrap(), Some(json!({"n": 1})));
        assert_eq!(names(folder.path()), ["status.json"]);
    }

    // wazuh/wazuh#36615
    #[test]
    fn c237_damaged_files_have_a_clear_message_with_their_name() {
        let folder = folder();
        let path = folder.path().join("start.json");
        let whole = serde_json::to_vec(&json!({"version": 1, "job": "a"})).unwrap();
        let half = &whole[..whole.len() / 2];
        let cases: [(&[u8], &str); 6] = [
            (b"", "it is empty"),
            (&[0; 300], "zero bytes only"),
            (half, "it is torn"),
            (b"\xff\xfe\x00rubbish", "not in latido's format"),
            (b"[1,2]", "not in latido's format"),
            (b"{\"version\": 2}", "newer latido"),
        ];
        for (bytes, message) in cases {
            std::fs::write(&path, bytes).unwrap();
            let error = read::<crate::files::Start>(&path).unwrap_err().to_string();
            assert!(error.contains(message) && error.contains("start.json"), "{error}");
        }
    }

    // elizaOS/eliza#30878, Tracer-Cloud/opensre#5750, Tracer-Cloud/opensre#6356
    #[test]
    fn c228_c229_a_torn_line_is_isolated_before_the_next_record() {
        for torn in [&b"{\"n\":0,\"x\":"[..], b"{\"n\":0,\"x\":\"\xe2"] {
            let folder = folder();
            let path = folder.path().join("heartbeats.jsonl");
            std::fs::write(&path, torn).unwrap();
            for number in [1, 2] {
                append_line(&path, &json!({"n": number}), number == 2).unwrap();
            }
            let lines = read_lines::<serde_json::Value>(&path).unwrap();
            assert_eq!(lines, Lines { records: vec![json!({"n": 1}), json!({"n": 2})], damaged: vec![1] });
        }
    }

    #[test]
    fn the_newest_whole_lines_are_kept() {
        let folder = folder();
        let path = folder.path().join("heartbeats.jsonl");
        std::fs::write(&path, "1\n22\n333\n4444\n").unwrap();
        for (bytes, kept) in
            [(100, "1\n22\n333\n4444\n"), (10, "333\n4444\n"), (9, "333\n4444\n"), (8, "4444\n"), (0, "")]
        {
            keep_newest(&path, bytes).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), kept);
        }
        assert_eq!(names(folder.path()), ["heartbeats.jsonl"]);
    }

    // PrimeIntellect-ai/nano-rlm PR #97
    #[test]
    fn c231_damage_anywhere_is_told_with_its_line_and_the_rest_is_read() {
        let folder = folder();
        let path = folder.path().join("ledger.jsonl");
        let long = "x".repeat(RECORD_MAX + 10);
        std::fs::write(&path, format!("{{\"n\":1}}\n{{\"n\":\n\n{{\"n\":2}}\n{long}\n{{\"n\":3}}\n{{\"n\":4,\n\n"))
            .unwrap();
        let lines = read_lines::<serde_json::Value>(&path).unwrap();
        assert_eq!(lines.records, [json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]);
        assert_eq!(lines.damaged, [2, 5, 7]);
        assert_eq!(read_lines::<u8>(&folder.path().join("absent")).unwrap().records, [0; 0]);
    }
}
