//! Where cgroups of attempts can be made, and their making.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use latido_protocol::files::{Cgroup, CgroupFolder};
use rustix::fs::Access;

use super::{BASE, CgroupError, Limits, Made, PROCS, put, remove};

/// The cgroup, beside those of attempts, into which a supervisor goes that was started from inside an attempt.
const SUPERVISORS: &str = "supervisors";

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
        let hash = folder
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
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
    /// Finds those under a folder, which is [`super::ROOT`] everywhere but in tests and in unusual containers. Where a cgroup
    /// cannot be made there are none.
    pub fn under(root: &Path) -> Self {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut tops = vec![root.to_owned()];
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
        // The second name of a hierarchy is a link.
        tops.extend(
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
        if root.join(PROCS).exists() {
            // It is a hierarchy itself; what lies in it are cgroups.
            tops.truncate(1);
        }
        let mut list: Vec<_> = tops.iter().filter_map(|top| Hierarchy::at(top, &own)).collect();
        list.sort_by_key(|hierarchy| std::cmp::Reverse(hierarchy.version));
        Self { list }
    }

    /// True where no cgroup can be made at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The version of the hierarchy in which a controller, `memory` or `pids`, can enforce a limit.
    pub fn enforces(&self, controller: &str) -> Option<u32> {
        let has = |hierarchy: &&Hierarchy| hierarchy.controllers.iter().any(|known| known == controller);
        self.list.iter().find(has).map(|hierarchy| hierarchy.version)
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
        let controllers = if version == 1 { name.split(',').map(str::to_owned).collect() } else { enable(&place) };
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
pub(crate) fn own_path(lines: &str, controller: Option<&str>) -> Option<String> {
    // A name may end in a carriage return, which `lines` takes for a part of the line's end.
    lines.split_terminator('\n').find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match controller {
            None => number == "0" && controllers.is_empty(),
            Some(wanted) => {
                !controllers.is_empty() && wanted.split(',').any(|one| controllers.split(',').any(|c| c == one))
            }
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
}
