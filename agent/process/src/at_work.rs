//! Who may be at work on a file that stands for work in progress, such as the lock file of another program.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::identity::{self, IdentityError};
use crate::proc;

/// Why it cannot be told who is at work, which is no proof that nobody is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtWorkError {
    /// The file cannot be looked at.
    #[error("look at {path}")]
    File {
        /// which
        path: std::path::PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// The processes cannot be listed.
    #[error("list the processes in /proc")]
    List {
        /// what the kernel said
        source: io::Error,
    },
    /// `/proc` does not show the processes of others (`hidepid`).
    #[error("see all processes: /proc hides those of other users")]
    Hidden,
}

/// The processes that may be at work on a file: those that have it open, and those whose program's name begins with
/// `program` and that work in one of these folders or below it, since such a file may be closed while the work goes on. A
/// process of that name whose folder is not shown counts too.
///
/// # Errors
/// Nobody was found, and not everybody could be looked at.
pub fn at_work_on(file: &Path, program: &str, folders: &[&Path]) -> Result<Vec<u32>, AtWorkError> {
    let of_file = fs::metadata(file).map_err(|source| AtWorkError::File { path: file.to_owned(), source })?;
    let pids = proc::pids().map_err(|source| AtWorkError::List { source })?;
    let real: Vec<_> = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    let works = |pid: &u32| {
        proc::has_open(*pid, of_file.dev(), of_file.ino())
            || is_called(*pid, program)
                && fs::read_link(format!("/proc/{pid}/cwd")).map_or_else(
                    |error| error.kind() != io::ErrorKind::NotFound,
                    |at| real.iter().any(|folder| at.starts_with(folder)),
                )
    };
    let found: Vec<u32> = pids.into_iter().filter(works).collect();
    if found.is_empty() && matches!(identity::of(1), Err(IdentityError::Hidden { .. })) {
        return Err(AtWorkError::Hidden);
    }
    Ok(found)
}

fn is_called(pid: u32, program: &str) -> bool {
    fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(program.as_bytes()))
}
