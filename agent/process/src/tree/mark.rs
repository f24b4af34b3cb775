//! Whose mark a process carries.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{MARK, Tree};
use crate::proc;
use crate::start::SUPERVISES;

/// What a path leads to, whatever it is called.
pub(super) fn file_id(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Belongs {
    /// it carries this attempt's mark, or is proven by group, descent or cgroup
    Ours,
    /// it carries the mark of another attempt of the same job, or supervises that
    Sibling,
    /// it carries the mark of another job's attempt, or supervises that
    Others,
    /// it is a supervisor of this attempt
    Supervises,
    /// its environment says nothing
    Unmarked,
}

/// Whose mark a process carries. `None`: its environment cannot be read.
pub(super) fn mark_of(tree: &Tree, pid: u32) -> Option<Belongs> {
    let environ = proc::environ(pid)?;
    let (directory, ours) = match (proc::variable(&environ, SUPERVISES), proc::variable(&environ, MARK)) {
        (Some(directory), _) => (directory, Belongs::Supervises),
        (None, Some(directory)) => (directory, Belongs::Ours),
        (None, None) => return Some(Belongs::Unmarked),
    };
    Some(if is_this(tree, directory) {
        ours
    } else if is_of_this_job(tree, directory) {
        Belongs::Sibling
    } else {
        Belongs::Others
    })
}

/// Whether it is an attempt of the same job: a job of this name, in this state directory, whatever has been removed of
/// the folders between the two.
fn is_of_this_job(tree: &Tree, directory: &Path) -> bool {
    /// `jobs/NAME/attempts/0001`: from an attempt up to its state directory.
    const DEPTH: usize = 4;

    let parts =
        |path: &Path| path.ancestors().nth(2).map(|job| (job.file_name().map(ToOwned::to_owned), job.to_owned()));
    let (Some((name, job)), Some((own_name, own_job))) = (parts(directory), parts(&tree.attempt_dir)) else {
        return false;
    };
    let state = |path: &Path| path.ancestors().nth(DEPTH).and_then(file_id);
    job == own_job || name == own_name && state(directory).is_some_and(|found| Some(found) == state(&tree.attempt_dir))
}

/// The same directory, also where a link leads to it under another name.
fn is_this(tree: &Tree, directory: &Path) -> bool {
    let own = &tree.attempt_dir;
    if directory == own {
        return true;
    }
    // A folder that was removed has no inode to be known by; its state directory has.
    directory.file_name() == own.file_name()
        && (file_id(directory).is_some_and(|found| Some(found) == file_id(own)) || is_of_this_job(tree, directory))
}
