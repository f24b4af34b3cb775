//! What a job's process is put into before it runs: its cgroup, its user's sockets.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::cgroup::{self, Hierarchies, Limits, Name};
use latido_process::setup::{Setup, SetupError, User};
use latido_process::tree::{self, Tree};
use latido_protocol::files::{CgroupPlace, Enforcement, Identity, JobSettings, Orphans, Start};
use latido_protocol::layout::JobDir;
use rustix::fs::{Gid, Mode, Uid};

use crate::stop;

/// What an earlier attempt left has this long to end by itself. It had its grace before; the starter waits for this one.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// Where the sockets of jobs lie that run as another user. Others may pass through it and list nothing; the sockets in it
/// belong to their job's user alone. Only root has such jobs, and only root can make anything in `/run`.
const SOCKETS: &str = "/run/latido-jobs";

/// Why a job cannot have the surroundings it needs, and nothing is to be tried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SurroundingsError {
    #[error("launch beside what attempt {attempt} left in its cgroup: {}{}", stop::list(processes), reason(*held))]
    Leftover { attempt: u32, processes: Vec<Identity>, held: bool },
    #[error("look for what attempt {attempt} left in its cgroup")]
    Look { attempt: u32, source: tree::TreeError },
    #[error("make sockets for {user} in {folder}")]
    Sockets { user: String, folder: PathBuf, source: io::Error },
    #[error("make sockets in {folder}: it is not a folder of root's own that nobody else can write to")]
    Folder { folder: PathBuf },
}

fn reason(held: bool) -> &'static str {
    if held { " (`orphans = \"hold\"`)" } else { " (SIGKILL did not end them)" }
}

/// The hierarchies that a job's settings allow.
pub(crate) fn hierarchies(settings: &JobSettings) -> Hierarchies {
    match &settings.launch.cgroup {
        CgroupPlace::Auto => Hierarchies::under(Path::new(cgroup::ROOT)),
        CgroupPlace::None => Hierarchies::default(),
        CgroupPlace::Under(root) => Hierarchies::under(root),
    }
}

/// Empties and removes the cgroups of earlier attempts of the job. The caller holds the job's lock, so what is in them was
/// left behind.
pub(crate) fn end_leftovers(
    hierarchies: &Hierarchies,
    name: &Name,
    job: &JobDir,
    orphans: Orphans,
) -> Result<(), SurroundingsError> {
    for (attempt, cgroup) in hierarchies.leftovers(name) {
        let attempt_dir = job.attempt(attempt).path().to_owned();
        let empty = cgroup::remove(&cgroup);
        let tree = Tree { attempt_dir, process: None, supervisor: None, cgroup: Some(cgroup) };
        let refuse = |processes, held| Err(SurroundingsError::Leftover { attempt, processes, held });
        match orphans {
            Orphans::End | Orphans::Hold if empty => {}
            Orphans::End => {
                let ended =
                    tree::end(&tree, LEFTOVER_GRACE).map_err(|source| SurroundingsError::Look { attempt, source })?;
                if !ended.survivors.is_empty() {
                    return refuse(ended.survivors, false);
                }
            }
            Orphans::Hold => {
                let living = tree::find(&tree).map_err(|source| SurroundingsError::Look { attempt, source })?;
                if !living.processes.is_empty() {
                    return refuse(living.processes, true);
                }
            }
        }
    }
    Ok(())
}

/// Makes the attempt's cgroup and writes into its start what it has and what it lacks.
pub(crate) fn enclose(
    hierarchies: &Hierarchies,
    name: &Name,
    settings: &JobSettings,
    start: &mut Start,
    setup: &mut Setup,
) -> Result<(), SetupError> {
    let launch = &settings.launch;
    let limits = Limits { memory_max: launch.memory_max, pids_max: launch.pids_max };
    let is_limited = limits != Limits::default();
    let required = is_limited && launch.limits == Enforcement::Required;
    let made = match hierarchies.make(name, limits) {
        Ok(made) => made,
        Err(error) if required => return Err(error.into()),
        Err(error) => {
            // Without a cgroup its processes are found by group, session, descent and mark.
            start.notes.push(format!("no cgroup: {}", latido_protocol::chain(&error)));
            return Ok(());
        }
    };
    let is_made = !made.cgroup.folders.is_empty();
    start.cgroup = is_made.then_some(made.cgroup);
    if required && !made.unenforced.is_empty() {
        return Err(SetupError::Unenforced { limits: made.unenforced });
    }
    start.notes.extend(made.unenforced.into_iter().map(|limit| format!("not enforced: {limit}")));
    if let Some(cgroup) = &start.cgroup {
        setup.cgroup = cgroup::entrances(cgroup)?;
    }
    Ok(())
}

/// Makes a folder for the sockets of a job that runs as another user, reachable by that user and told to nobody else.
pub(crate) fn sockets_of(user: &User, base: Option<&Path>) -> Result<PathBuf, SurroundingsError> {
    let base = base.unwrap_or(Path::new(SOCKETS));
    let refuse = |folder: &Path, source| SurroundingsError::Sockets {
        user: user.name.clone(),
        folder: folder.to_owned(),
        source,
    };
    let make = |folder: &Path| {
        std::fs::DirBuilder::new().mode(0o711).create(folder)?;
        // The process's umask took the others' part away.
        rustix::fs::chmod(folder, Mode::from_raw_mode(0o711)).map_err(io::Error::from)
    };
    match make(base) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(refuse(base, error)),
        Ok(()) | Err(_) => {}
    }
    let found = base.symlink_metadata().map_err(|source| refuse(base, source))?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        return Err(SurroundingsError::Folder { folder: base.to_owned() });
    }
    let mut id = [0_u8; 6];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())
        .map_err(|source| refuse(base, source.into()))?;
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = base.join(id);
    make(&folder).map_err(|source| refuse(&folder, source))?;
    Ok(folder)
}

/// Gives a file to a job's user.
pub(crate) fn give(path: &Path, user: &User) -> io::Result<()> {
    rustix::fs::chown(path, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid))).map_err(io::Error::from)
}
