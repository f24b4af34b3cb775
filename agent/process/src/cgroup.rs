//! The cgroup of an attempt's own: made, entered, asked who is in it, emptied, removed.
//!
//! Version 2 where there is a hierarchy of it, and the controllers of version 1 for what it does not have. A cgroup lies in
//! `latido/` under the highest folder, on the way from the top of its hierarchy to the caller's own cgroup, that the caller
//! may write to: root's is the top, that of others what was delegated to them. So an attempt is never in the cgroup of
//! the agent or of the login session that launched it, and is not ended or counted with them.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_protocol::files::{Cgroup, CgroupFolder};

use crate::proc::number_behind;
use crate::sys;

mod hierarchies;

#[cfg(test)]
pub(crate) use hierarchies::own_path;
pub use hierarchies::{Hierarchies, Name};

/// Where hierarchies are mounted on every Linux.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The folder that holds the cgroups of attempts.
const BASE: &str = "latido";

/// How deep a job's own cgroups inside its cgroup are looked at; the kernel allows any depth, programs make two or three.
const DEPTH_MAX: u32 = 16;

/// Tries to remove a cgroup that nobody is in any more, a millisecond apart.
const REMOVE_TRIES: u32 = 50;

/// Who is in a cgroup.
const PROCS: &str = "cgroup.procs";

/// Why there is no cgroup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// The kernel refused.
    #[error("make the cgroup {path}")]
    Make {
        /// which
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// A cgroup cannot be entered.
    #[error("enter the cgroup {path}")]
    Enter {
        /// which
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
}

/// What a cgroup is to enforce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// bytes of memory of all its processes together; swap is not counted
    pub memory_max: Option<u64>,
    /// processes and threads at a time
    pub pids_max: Option<u64>,
}

/// A cgroup that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// its folders; none where none could be made
    pub cgroup: Cgroup,
    /// limits that it does not enforce, each with the cause, as a sentence's beginning: `memory_max of 1048576: …`
    pub unenforced: Vec<String>,
}

/// What the kernel counted of ends for want of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfMemory {
    /// processes of it that were killed for want of memory
    pub killed_count: u64,
    /// how often it met its own limit
    pub limit_met_count: u64,
    /// its own limit in bytes
    pub memory_max: Option<u64>,
}

/// A way into a cgroup.
#[derive(Debug)]
pub struct Entrance {
    /// the folder, of version 2 alone: a process can be forked into it, which costs nothing, where moving it there waits
    /// for all processors
    pub(crate) folder: Option<OwnedFd>,
    /// what a process writes `0` into
    pub(crate) procs: OwnedFd,
}

/// Opens the ways into a cgroup.
///
/// # Errors
/// When it may not be entered.
pub fn entrances(cgroup: &Cgroup) -> Result<Vec<Entrance>, CgroupError> {
    let open = |folder: &CgroupFolder| {
        let refuse = |source| CgroupError::Enter { path: folder.path.clone(), source };
        let procs = OpenOptions::new().write(true).open(folder.path.join(PROCS)).map_err(refuse)?.into();
        let unified = (folder.version == 2).then(|| OpenOptions::new().read(true).open(&folder.path));
        Ok(Entrance { folder: unified.transpose().map_err(refuse)?.map(OwnedFd::from), procs })
    };
    cgroup.folders.iter().map(open).collect()
}

/// The pids of all that is in it and in cgroups below it. A folder that is gone has nobody in it.
pub fn members(cgroup: &Cgroup) -> BTreeSet<u32> {
    let mut pids = BTreeSet::new();
    for folder in made_here(cgroup) {
        walk(&folder.path, DEPTH_MAX, &mut |path| {
            let list = std::fs::read_to_string(path.join(PROCS)).unwrap_or_default();
            pids.extend(listed(&list));
        });
    }
    pids
}

/// The pids of a list as the kernel writes it.
pub(crate) fn listed(list: &str) -> impl Iterator<Item = u32> {
    // 0 stands for a process outside this pid namespace.
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid > 0)
}

/// Kills all that is in it at once, forks in flight included. `false`: this kernel or hierarchy cannot.
pub fn kill(cgroup: &Cgroup) -> bool {
    let unified = made_here(cgroup).find(|folder| folder.version == 2);
    unified.is_some_and(|folder| put(&folder.path.join("cgroup.kill"), "1").is_ok())
}

/// Removes it with the cgroups below it. `false`: something is still in it.
pub fn remove(cgroup: &Cgroup) -> bool {
    let mut removed = true;
    for folder in made_here(cgroup) {
        walk(&folder.path, DEPTH_MAX, &mut |path| removed &= remove_folder(path));
    }
    removed
}

/// Its folders that are named as those that are made here. Whatever else a damaged record names, nobody in it is the
/// attempt's, is killed or is removed.
fn made_here(cgroup: &Cgroup) -> impl Iterator<Item = &CgroupFolder> {
    let is_ours = |path: &Path| path.parent().and_then(Path::file_name).is_some_and(|base| base == BASE);
    cgroup.folders.iter().filter(move |folder| is_ours(&folder.path))
}

fn remove_folder(path: &Path) -> bool {
    for _ in 0..REMOVE_TRIES {
        match std::fs::remove_dir(path) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
            // A process that has ended is let go of a moment later.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && is_empty(path) => {
                sys::pause(Duration::from_millis(1));
            }
            Err(_) => return false,
        }
    }
    false
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_to_string(path.join(PROCS)).is_ok_and(|list| list.trim().is_empty())
}

/// What was killed in it for want of memory.
pub fn out_of_memory(cgroup: &Cgroup) -> OutOfMemory {
    let mut found = OutOfMemory::default();
    for folder in cgroup.folders.iter().filter(|folder| folder.controllers.iter().any(|c| c == "memory")) {
        let read = |file: &str| std::fs::read_to_string(folder.path.join(file)).unwrap_or_default();
        let (counts, met, limit) = if folder.version == 2 {
            let events = read("memory.events");
            let met = number_behind(&events, "oom");
            (events, met, read("memory.max"))
        } else {
            (read("memory.oom_control"), read("memory.failcnt").trim().parse().ok(), read("memory.limit_in_bytes"))
        };
        found.killed_count = found.killed_count.max(number_behind(&counts, "oom_kill").unwrap_or(0));
        found.limit_met_count = found.limit_met_count.max(met.unwrap_or(0));
        found.memory_max = limit.trim().parse().ok().or(found.memory_max);
    }
    found
}

/// Visits a cgroup and those below it, the lowest first.
fn walk(folder: &Path, depth: u32, visit: &mut dyn FnMut(&Path)) {
    let below = depth.checked_sub(1);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Some(depth) = below.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            walk(&entry.path(), depth, visit);
        }
    }
    visit(folder);
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_told_from_one_whose_name_begins_alike() {
        let events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!((number_behind(events, "oom"), number_behind(events, "oom_kill")), (Some(3), Some(2)));
        assert_eq!(number_behind(events, "absent"), None);
    }

    #[test]
    fn nobody_is_found_and_nothing_is_removed_in_what_is_no_cgroup_of_an_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join(PROCS), format!("{}\n", std::process::id())).unwrap();
        std::fs::write(path.join("cgroup.kill"), "").unwrap();
        let named = Cgroup { folders: vec![CgroupFolder { path: path.clone(), version: 2, controllers: vec![] }] };
        remove(&named);
        assert!(path.exists());
        assert_eq!(members(&named), BTreeSet::new());
        assert!(!kill(&named));
        assert_eq!(std::fs::read_to_string(path.join("cgroup.kill")).unwrap(), "");
    }
}
