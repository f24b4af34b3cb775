//! The cgroup of an attempt's own: made, entered, asked who is in it, emptied, removed.
//!
//! Version 2 where there is a hierarchy of it, and the controllers of version 1 for what it does not have. A cgroup lies in
//! `latido/` under the highest folder, on the way from the top of its hierarchy to the caller's own cgroup, that the caller
//! may write to: root's is the top, that of others what was delegated to them. So an attempt is never in the cgroup of
//! the agent or of the login session that launched it, and is not ended or counted with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use latido_protocol::files::{Cgroup, CgroupFolder};
use rustix::fs::Access;

use crate::proc::number_behind;

/// Where hierarchies are mounted on every Linux.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The folder that holds the cgroups of attempts.
const BASE: &str = "latido";

/// The cgroup, beside those of attempts, into which a supervisor goes that was started from inside an attempt.
const SUPERVISORS: &str = "supervisors";

/// How deep a job's own cgroups inside its cgroup are looked at; the kernel allows any depth, programs make two or three.
const DEPTH_MAX: u32 = 16;

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

/// The name of an attempt's cgroup, and what those of all attempts of its job begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    job: String,
    attempt: u32,
}

impl Name {
    /// Names the cgroup of an attempt. The path of the job's folder sets jobs of one name in several state directories
    /// apart.
    pub fn new(job: &str, job_folder: &Path, attempt: u32) -> Self {
        let folder = std::path::absolute(job_folder).unwrap_or_else(|_| job_folder.to_owned());
        // FNV-1a: the same in every version and on every machine, unlike the hashes of the standard library.
        let hash = folder.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut name = job.to_owned();
        // Writing to a text does not fail.
        let _ = write!(name, "-{hash:016x}-");
        Self { job: name, attempt }
    }

    fn of_attempt(&self) -> String {
        format!("{}{:04}", self.job, self.attempt)
    }

    /// Which other attempt of the same job a folder is of.
    fn other_attempt(&self, folder: &str) -> Option<u32> {
        let number = folder.strip_prefix(&self.job)?.parse::<u32>().ok()?;
        (number != self.attempt).then_some(number)
    }
}

/// The hierarchies in which a cgroup can be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    list: Vec<Hierarchy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    version: u32,
    /// those that may be used in `place`
    controllers: Vec<String>,
    /// the highest folder that may be written to
    place: PathBuf,
    /// the caller's own cgroup
    own: PathBuf,
}

impl Hierarchies {
    /// Finds those under a folder, which is [`ROOT`] everywhere but in tests and in unusual containers. Where a cgroup
    /// cannot be made there are none.
    pub fn under(root: &Path) -> Self {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut tops = vec![root.to_owned()];
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        // The second name of a hierarchy is a link.
        tops.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
        if root.join(PROCS).exists() {
            // It is a hierarchy itself; what lies in it are cgroups.
            tops.truncate(1);
        }
        let mut list: Vec<_> = tops.iter().filter_map(|top| Hierarchy::at(top, &own)).collect();
        list.sort_by_key(|hierarchy| std::cmp::Reverse(hierarchy.version));
        Self { list }
    }

    /// Makes the cgroup of an attempt. Nothing is an error that leaves no cgroup or a limit unenforced: the caller judges.
    ///
    /// # Errors
    /// A folder that may be made could not be; what was made before it is removed.
    pub fn make(&self, name: &Name, limits: Limits) -> Result<Made, CgroupError> {
        let mut made = Made::default();
        match self.fill(name, limits, &mut made) {
            Ok(()) => Ok(made),
            Err(error) => {
                remove(&made.cgroup);
                Err(error)
            }
        }
    }

    fn fill(&self, name: &Name, limits: Limits, made: &mut Made) -> Result<(), CgroupError> {
        let unified = self.list.iter().find(|hierarchy| hierarchy.version == 2);
        if let Some(unified) = unified {
            let path = unified.make(name)?;
            made.cgroup.folders.push(CgroupFolder { path, version: 2, controllers: Vec::new() });
        }
        for (controller, setting, limit) in
            [("memory", "memory_max", limits.memory_max), ("pids", "pids_max", limits.pids_max)]
        {
            let Some(limit) = limit else { continue };
            let with = |version| {
                move |hierarchy: &&Hierarchy| {
                    hierarchy.version == version && hierarchy.controllers.iter().any(|known| known == controller)
                }
            };
            let enforced = if self.list.iter().any(|hierarchy| with(2)(&hierarchy)) {
                enforce(&made.cgroup.folders[0].path, controller, 2, limit)
                    .map(|()| made.cgroup.folders[0].controllers.push(controller.to_owned()))
            } else if let Some(hierarchy) = self.list.iter().find(with(1)) {
                let path = hierarchy.make(name)?;
                let result = enforce(&path, controller, 1, limit);
                let controllers = vec![controller.to_owned()];
                made.cgroup.folders.push(CgroupFolder { path, version: 1, controllers });
                result
            } else {
                Err(io::Error::other(format!("no cgroup with the controller {controller} can be made")))
            };
            if let Err(error) = enforced {
                made.unenforced.push(format!("{setting} of {limit}: {error}"));
            }
        }
        if made.cgroup.folders.is_empty() {
            // Any will do to know who is in it.
            let says = |hierarchy: &&Hierarchy| hierarchy.controllers.iter().any(|c| c == "pids" || c == "freezer");
            if let Some(hierarchy) = self.list.iter().find(says) {
                let path = hierarchy.make(name)?;
                made.cgroup.folders.push(CgroupFolder { path, version: 1, controllers: Vec::new() });
            }
        }
        Ok(())
    }

    /// The cgroups that earlier attempts of the same job left, empty or not.
    pub fn leftovers(&self, name: &Name) -> BTreeMap<u32, Cgroup> {
        let mut found: BTreeMap<u32, Cgroup> = BTreeMap::new();
        for hierarchy in &self.list {
            for entry in std::fs::read_dir(hierarchy.place.join(BASE)).into_iter().flatten().flatten() {
                let Some(attempt) = entry.file_name().to_str().and_then(|folder| name.other_attempt(folder)) else {
                    continue;
                };
                let folder = CgroupFolder { path: entry.path(), version: hierarchy.version, controllers: Vec::new() };
                found.entry(attempt).or_default().folders.push(folder);
            }
        }
        found
    }

    /// Takes the calling process out of the cgroup of an attempt that it was started from: it is none of its processes.
    /// Where it may not, it stays, and is told from them by its mark.
    pub fn leave(&self) {
        for hierarchy in &self.list {
            let base = hierarchy.place.join(BASE);
            if !hierarchy.own.starts_with(&base) || hierarchy.own == base.join(SUPERVISORS) {
                continue;
            }
            let to = base.join(SUPERVISORS);
            let _ = std::fs::create_dir(&to);
            let _ = put(&to.join(PROCS), "0");
        }
    }
}

impl Hierarchy {
    /// The hierarchy whose top this folder is. `None`: it is none, or nothing of it may be written to.
    fn at(top: &Path, own_lines: &str) -> Option<Self> {
        if !top.join(PROCS).exists() {
            return None;
        }
        let version = if top.join("cgroup.controllers").exists() { 2 } else { 1 };
        let name = top.file_name()?.to_str()?;
        let own = own_path(own_lines, (version == 1).then_some(name))?;
        let own = top.join(own.strip_prefix('/').unwrap_or(&own));
        let place = highest_writable(top, &own)?;
        let controllers = if version == 1 {
            name.split(',').map(str::to_owned).collect()
        } else {
            enable(&place)
        };
        Some(Self { version, controllers, place, own })
    }

    fn make(&self, name: &Name) -> Result<PathBuf, CgroupError> {
        let base = self.place.join(BASE);
        let path = base.join(name.of_attempt());
        for folder in [&base, &path] {
            match std::fs::create_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(CgroupError::Make { path: folder.clone(), source: error });
                }
                Ok(()) | Err(_) => {}
            }
        }
        if self.version == 2 {
            for controller in &self.controllers {
                // What cannot be given on is missed when a limit is set.
                let _ = put(&base.join("cgroup.subtree_control"), &format!("+{controller}"));
            }
        }
        Ok(path)
    }
}

/// The caller's own cgroup as `/proc/self/cgroup` says it: in the hierarchy with this controller, or in that of version 2.
fn own_path(lines: &str, controller: Option<&str>) -> Option<String> {
    lines.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(wanted) => !controllers.is_empty() && wanted.split(',').any(|one| controllers.split(',').any(|c| c == one)),
        };
        is_it.then(|| path.to_owned())
    })
}

/// The highest folder on the way from the top to one's own cgroup in which cgroups can be made and filled.
fn highest_writable(top: &Path, own: &Path) -> Option<PathBuf> {
    let writable = |folder: &&Path| {
        let may = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
        may(folder) && may(&folder.join(PROCS))
    };
    // A container may not show its own cgroup under the path that the host knows it by.
    let own = if own.is_dir() { own } else { top };
    let mut folders: Vec<&Path> = own.ancestors().take_while(|folder| folder.starts_with(top)).collect();
    folders.reverse();
    folders.into_iter().find(writable).map(Path::to_owned)
}

/// Lets the children of a place have what it has itself; returns what of memory and pids they can have.
fn enable(place: &Path) -> Vec<String> {
    let list = |file: &str| std::fs::read_to_string(place.join(file)).unwrap_or_default();
    let (has, gives) = (list("cgroup.controllers"), list("cgroup.subtree_control"));
    let in_list = |list: &str, wanted: &str| list.split_ascii_whitespace().any(|one| one == wanted);
    ["memory", "pids"]
        .into_iter()
        .filter(|one| in_list(&has, one))
        // Refused where processes lie in the place itself and it is not the top.
        .filter(|one| in_list(&gives, one) || put(&place.join("cgroup.subtree_control"), &format!("+{one}")).is_ok())
        .map(str::to_owned)
        .collect()
}

fn enforce(folder: &Path, controller: &str, version: u32, limit: u64) -> io::Result<()> {
    let file = match (controller, version) {
        ("memory", 1) => "memory.limit_in_bytes",
        ("memory", _) => "memory.max",
        (_, _) => "pids.max",
    };
    put(&folder.join(file), &limit.to_string())
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Opens what a process writes `0` into to enter a cgroup.
///
/// # Errors
/// When it may not be entered.
pub fn entries(cgroup: &Cgroup) -> Result<Vec<OwnedFd>, CgroupError> {
    let open = |folder: &CgroupFolder| {
        let path = folder.path.join(PROCS);
        let file = OpenOptions::new().write(true).open(&path);
        file.map(OwnedFd::from).map_err(|source| CgroupError::Enter { path: folder.path.clone(), source })
    };
    cgroup.folders.iter().map(open).collect()
}

/// The pids of all that is in it and in cgroups below it. A folder that is gone has nobody in it.
pub fn members(cgroup: &Cgroup) -> BTreeSet<u32> {
    let mut pids = BTreeSet::new();
    for folder in &cgroup.folders {
        walk(&folder.path, DEPTH_MAX, &mut |path| {
            let list = std::fs::read_to_string(path.join(PROCS)).unwrap_or_default();
            // 0 stands for a process outside this pid namespace.
            pids.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()).filter(|pid| *pid > 0));
        });
    }
    pids
}

/// Kills all that is in it at once, forks in flight included. `false`: this kernel or hierarchy cannot.
pub fn kill(cgroup: &Cgroup) -> bool {
    let unified = cgroup.folders.iter().find(|folder| folder.version == 2);
    unified.is_some_and(|folder| put(&folder.path.join("cgroup.kill"), "1").is_ok())
}

/// Removes it with the cgroups below it. `false`: something is still in it.
pub fn remove(cgroup: &Cgroup) -> bool {
    let mut removed = true;
    for folder in &cgroup.folders {
        // Never anything that was not made here, whatever a record says.
        if folder.path.parent().and_then(Path::file_name).is_none_or(|base| base != BASE) {
            continue;
        }
        walk(&folder.path, DEPTH_MAX, &mut |path| {
            let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            removed &= std::fs::remove_dir(path).as_ref().err().is_none_or(gone);
        });
    }
    removed
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_own_cgroup_is_found_in_each_hierarchy() {
        let lines = "8:pids:/a\n4:cpu,cpuacct:/b:c\n1:name=systemd:/d\n0::/e\n";
        for (controller, path) in [
            (None, Some("/e")),
            (Some("pids"), Some("/a")),
            (Some("cpu,cpuacct"), Some("/b:c")),
            (Some("cpuacct"), Some("/b:c")),
            (Some("memory"), None),
        ] {
            assert_eq!(own_path(lines, controller).as_deref(), path, "{controller:?}");
        }
    }

    #[test]
    fn only_attempts_of_the_same_job_are_its_leftovers() {
        let name = Name::new("a", Path::new("/state/jobs/a"), 3);
        let other = |job, folder, attempt| Name::new(job, Path::new(folder), attempt).of_attempt();
        assert_eq!(name.other_attempt(&other("a", "/state/jobs/a", 2)), Some(2));
        assert_eq!(name.other_attempt(&other("a", "/state/jobs/a", 3)), None);
        assert_eq!(name.other_attempt(&other("a", "/elsewhere/jobs/a", 2)), None);
        assert_eq!(name.other_attempt(&other("a-b", "/state/jobs/a", 2)), None);
    }

    #[test]
    fn a_count_is_told_from_one_whose_name_begins_alike() {
        let events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
        assert_eq!((number_behind(events, "oom"), number_behind(events, "oom_kill")), (Some(3), Some(2)));
        assert_eq!(number_behind(events, "absent"), None);
    }

    #[test]
    fn nothing_is_removed_that_is_no_cgroup_of_an_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("precious");
        std::fs::create_dir(&path).unwrap();
        remove(&Cgroup { folders: vec![CgroupFolder { path: path.clone(), version: 2, controllers: vec![] }] });
        assert!(path.exists());
    }
}
