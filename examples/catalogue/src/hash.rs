//! Reads one file to its end.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::books::{Record, Stamp};

/// Bytes read at a time: between two of them the program can still say that it lives.
const CHUNK: usize = 1024 * 1024;

/// Hashes the file; one that cannot be read becomes a record with the reason.
pub(crate) fn record(path: PathBuf, alive: &mut dyn FnMut()) -> Record {
    match hash(&path, alive) {
        Ok((stamp, hash)) => Record { path, stamp, hash: Some(hash), skipped: None },
        Err(error) => {
            let stamp = path.symlink_metadata().map(|metadata| stamp(&metadata)).unwrap_or_default();
            Record { path, stamp, hash: None, skipped: Some(error.to_string()) }
        }
    }
}

/// What tells a changed file from an unchanged one without reading it.
pub(crate) fn stamp(metadata: &Metadata) -> Stamp {
    let modified_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
    Stamp { size: i64::try_from(metadata.len()).unwrap_or(i64::MAX), modified_ns }
}

fn hash(path: &Path, alive: &mut dyn FnMut()) -> io::Result<(Stamp, String)> {
    let mut file = File::open(path)?;
    // Taken before reading: a file that is written meanwhile looks changed to the next run.
    let stamp = stamp(&file.metadata()?);
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK.min(usize::try_from(stamp.size).unwrap_or(CHUNK) + 1)];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => hasher.update(&chunk[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        alive();
    }
    Ok((stamp, hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
