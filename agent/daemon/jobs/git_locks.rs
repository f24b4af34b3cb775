//! Locks that a git left when it was killed: with one of them in the work tree of a job, each git command of each later
//! attempt fails at once.
//!
//! A lock is taken for left behind only where that is proven: it was last written before the attempt before had ended, whose
//! processes are proven dead, by more than the clock of files may lag, nobody has it open, and no git works in the tree (an
//! editor of a commit message may be open for hours, and the lock's file is closed meanwhile). All else is told of and left
//! alone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::at_work;
use latido_protocol::WallTime;
use latido_protocol::files::GitLocks;

/// Locks of one work tree.
const IN_TREE: [&str; 2] = ["index.lock", "HEAD.lock"];
/// Locks of the repository, which work trees share.
const IN_SHARED: [&str; 3] = ["config.lock", "packed-refs.lock", "shallow.lock"];

/// How far the time of a file may lie behind the clock: the kernel stamps files with the time of its last tick, and the slowest
/// tick is a hundredth of a second. Source: `CONFIG_HZ` and `current_time` of Linux.
const FILE_TIME_LAG: Duration = Duration::from_millis(10);

/// Where git keeps what belongs to a directory.
struct Repository {
    tree: PathBuf,
    folder: PathBuf,
    shared: PathBuf,
}

/// Looks for locks in the work tree of a directory, removes those that are left behind if that is asked for, and says in words
/// what it found. `ended`: when the attempt before ended, where there was one.
pub(super) fn look(directory: &Path, git_locks: GitLocks, ended: Option<WallTime>) -> Vec<String> {
    if git_locks == GitLocks::Ignore {
        return Vec::new();
    }
    let Some(found) = directory.ancestors().find_map(repository) else { return Vec::new() };
    let in_tree = IN_TREE.iter().map(|name| found.folder.join(name));
    let in_shared = IN_SHARED.iter().map(|name| found.shared.join(name));
    in_tree.chain(in_shared).filter_map(|lock| look_at(&lock, &found, git_locks, ended)).collect()
}

fn repository(tree: &Path) -> Option<Repository> {
    let git = tree.join(".git");
    let kind = fs::metadata(&git).ok()?.file_type();
    let folder = if kind.is_dir() {
        git
    } else {
        // A work tree beside the repository, or a submodule.
        let text = fs::read_to_string(&git).ok()?;
        tree.join(text.strip_prefix("gitdir:")?.trim())
    };
    let shared =
        fs::read_to_string(folder.join("commondir")).map_or_else(|_| folder.clone(), |at| folder.join(at.trim()));
    Some(Repository { tree: tree.to_owned(), folder, shared })
}

/// `None`: there is no such lock.
fn look_at(lock: &Path, found: &Repository, git_locks: GitLocks, ended: Option<WallTime>) -> Option<String> {
    let metadata = fs::symlink_metadata(lock).ok().filter(fs::Metadata::is_file)?;
    let written = metadata.modified().ok()?;
    let shown = format!("{} of {}", lock.display(), WallTime::from(written));
    let hinders = "git commands of this attempt fail while it lies there";
    let at_work = match at_work::at_work_on(lock, "git", &[&found.tree, &found.folder, &found.shared]) {
        Ok(pids) => pids,
        Err(error) => {
            let why = latido_protocol::chain(&error);
            return Some(format!("{shown} lies there, and whether anybody holds it cannot be told: cannot {why}"));
        }
    };
    if !at_work.is_empty() {
        let pids = at_work.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        return Some(format!("{shown} is held, and stays: pid {pids} may be at work; {hinders}"));
    }
    if ended.is_none_or(|ended| WallTime::from(written + FILE_TIME_LAG) >= ended) {
        return Some(format!("{shown} lies there, and no attempt of this job is proven to have left it: {hinders}"));
    }
    if git_locks == GitLocks::Report {
        return Some(format!(
            "{shown} was left behind by a git that is gone: {hinders}; remove it, or set launch.git_locks"
        ));
    }
    // While it lies there no git takes it; somebody else may have removed it, and a git have made its own.
    let is_same =
        fs::symlink_metadata(lock).is_ok_and(|now| (now.dev(), now.ino()) == (metadata.dev(), metadata.ino()));
    if !is_same {
        return Some(format!("{shown} was replaced meanwhile, and stays"));
    }
    match fs::remove_file(lock) {
        Ok(()) => Some(format!("{shown} was left behind by a git that is gone, and was removed")),
        Err(error) => Some(format!("{shown} was left behind by a git that is gone, and cannot be removed: {error}")),
    }
}
