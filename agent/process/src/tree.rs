//! All processes of an attempt: found by group, session, descent, mark and cgroup, and ended.

mod mark;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use latido_protocol::files::{Cgroup, Identity};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use self::mark::{Belongs, file_id, mark_of};
use crate::cgroup;
use crate::identity;
use crate::pidfd::Pidfd;
use crate::proc::{self, Stat};
use crate::sys;
use crate::told::Told;

/// The mark in the environment of an attempt's processes: it names the attempt directory.
pub const MARK: &str = "LATIDO_DIR";

/// Between two scans while processes are ended. A program that forks in its last moments is found by the next scan.
const SCAN_EVERY: Duration = Duration::from_millis(50);

/// After SIGKILL a process ends as soon as the kernel lets it; one that waits in the kernel for a dead disk does not.
/// Then there are survivors, which are named.
const KILL_FOR: Duration = Duration::from_secs(5);

/// Where an attempt's processes are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// the attempt directory
    pub attempt_dir: PathBuf,
    /// the job's first process, where it is known
    pub process: Option<Identity>,
    /// the supervisor, where it is known
    pub supervisor: Option<Identity>,
    /// its cgroup, where it has one
    pub cgroup: Option<Cgroup>,
}

impl Tree {
    /// Where an attempt whose ending is recorded is looked for once more: numbers of another machine, boot or pid namespace
    /// name nobody here, marks do.
    #[must_use]
    pub fn seen_from_here(mut self) -> Self {
        self.process = self.process.filter(identity::is_here);
        self.supervisor = self.supervisor.filter(identity::is_here);
        self
    }
}

/// What lives of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// its processes, without the supervisor, the caller, and what has ended
    pub processes: Vec<Identity>,
    /// the supervisors of this attempt that live
    pub supervisors: Vec<Identity>,
    /// processes that have the number of its group, whose first process is gone, and that carry no mark: the number may
    /// have been given to a group of somebody else. They get no signal
    pub doubtful: Vec<Identity>,
    /// what carries the mark of another attempt of the same job, supervisors too: also where the job's files are gone
    pub others: Vec<Identity>,
    /// processes whose environment could not be read (another user's, or protected), so that a mark in it was not seen;
    /// there are always some, and they prove nothing
    pub unreadable: u32,
}

/// How an attempt's processes were ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// processes that got SIGTERM
    pub terminated: u32,
    /// processes that got SIGKILL
    pub killed: u32,
    /// what lives all the same, with what is doubtful
    pub survivors: Vec<Identity>,
}

/// Why the processes of an attempt could not be looked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// `/proc` would not be read.
    #[error("list the processes in /proc")]
    Proc {
        /// what the kernel said
        source: io::Error,
    },
    /// This host, boot or pid namespace is another one than the attempt's, or cannot be told.
    #[error("look for the processes of {attempt_dir}: {why}")]
    Elsewhere {
        /// which attempt
        attempt_dir: PathBuf,
        /// why, in words
        why: String,
    },
}

/// Finds what lives of an attempt. Attempts that were launched from inside this one are their own, with their
/// supervisors, and are passed over.
///
/// # Errors
/// When `/proc` cannot be read, or when the attempt belongs to another machine or pid namespace.
pub fn find(tree: &Tree) -> Result<Living, TreeError> {
    for known in [&tree.process, &tree.supervisor].into_iter().flatten() {
        if identity::is_here(known) {
            continue;
        }
        return match identity::look(known) {
            // An earlier boot: nothing of it can live, and its numbers mean nothing.
            identity::Look::Gone { .. } => Ok(Living::default()),
            identity::Look::Unknown { why } => Err(TreeError::Elsewhere { attempt_dir: tree.attempt_dir.clone(), why }),
            identity::Look::Alive { .. } => Err(TreeError::Elsewhere {
                attempt_dir: tree.attempt_dir.clone(),
                why: "it is not of this host".to_owned(),
            }),
        };
    }
    Scan::run(tree).map_err(|source| TreeError::Proc { source })
}

/// Whether a process descends from the caller, a subreaper: then it is of the caller's attempt, whoever it has become.
pub fn descends_from_caller(pid: u32) -> bool {
    /// No sane tree is deeper; a parent that changes while the way up is walked must not make it endless.
    const DEPTH_MAX: u32 = 256;

    let own = std::process::id();
    let mut at = pid;
    for _ in 0..DEPTH_MAX {
        match proc::stat(at) {
            Ok(Some(stat)) if stat.parent == own => return true,
            Ok(Some(stat)) if stat.parent != 0 => at = stat.parent,
            Ok(_) | Err(_) => return false,
        }
    }
    false
}

/// Sends a signal to each process, through a descriptor whose identity was checked. Returns how many got it.
pub fn signal(processes: &[Identity], signal: Signal) -> u32 {
    let sent = processes.iter().filter(|process| {
        // What is gone or cannot be signalled is seen by the next scan.
        matches!(Pidfd::open(process), Ok(Some(pidfd)) if pidfd.signal(signal).unwrap_or(false))
    });
    u32::try_from(sent.count()).unwrap_or(u32::MAX)
}

/// Kills what a scan found: by the cgroup, so that nothing forks away, where all that is in it was found; and each by itself.
/// Returns how many were signalled by themselves.
pub fn kill(tree: &Tree, living: &Living) -> u32 {
    if let Some(own) = &tree.cgroup {
        // What was launched from inside the attempt is not its own, and may not have been able to leave the cgroup.
        let is_others = |pid: &u32| {
            let is_found = living.processes.iter().any(|process| process.pid == *pid);
            !is_found && matches!(mark_of(tree, *pid), Some(Belongs::Sibling | Belongs::Others | Belongs::Supervises))
        };
        if !cgroup::members(own).iter().any(is_others) {
            cgroup::kill(own);
        }
    }
    signal(&living.processes, Signal::KILL)
}

/// Ends what lives of an attempt: SIGTERM, up to `grace`, SIGKILL, and scans again until nothing is left or the kernel
/// does not end it within 5 s. Who gets SIGTERM and who is spared is in [`Told`]. An emptied cgroup is removed.
///
/// # Errors
/// As [`find`].
pub fn end(tree: &Tree, grace: Duration) -> Result<Ended, TreeError> {
    let mut ended = Ended::default();
    let mut told = Told::from_now();
    let grace_until = sys::monotonic() + grace;
    let kill_until = grace_until + KILL_FOR;
    loop {
        let living = find(tree)?;
        let now = sys::monotonic();
        if living.processes.is_empty() || now >= kill_until {
            ended.survivors = living.processes;
            ended.survivors.extend(living.doubtful);
            tree.cgroup.as_ref().map(cgroup::remove);
            return Ok(ended);
        }
        let until = if now < grace_until {
            ended.terminated += told.tell(&living.processes);
            grace_until
        } else {
            let count = kill(tree, &living);
            ended.killed = ended.killed.max(count);
            kill_until
        };
        wait_for_one(&living.processes, until.saturating_sub(now).min(SCAN_EVERY));
    }
}

/// Waits until one of them ends, at most so long.
fn wait_for_one(processes: &[Identity], at_most: Duration) {
    let pidfds: Vec<_> = processes.iter().filter_map(|process| Pidfd::open(process).ok().flatten()).collect();
    if pidfds.len() < processes.len() {
        // One has ended since the scan.
        return sys::pause(Duration::from_millis(1));
    }
    let mut fds: Vec<_> = pidfds.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
    // An error here only brings the next scan forward.
    let _ = rustix::event::poll(&mut fds, Some(&sys::timespec(at_most)));
}

struct Scan<'a> {
    tree: &'a Tree,
    /// all that `/proc` shows, with the mark of each where it has one
    seen: Vec<Seen>,
    unreadable: u32,
}

struct Seen {
    stat: Stat,
    belongs: Belongs,
}

impl<'a> Scan<'a> {
    fn run(tree: &'a Tree) -> io::Result<Living> {
        let mut scan = Self { tree, seen: Vec::new(), unreadable: 0 };
        scan.look_at_all()?;
        scan.add_members();
        let doubtful = scan.add_group();
        scan.add_descendants();
        Ok(scan.into_living(&doubtful))
    }

    fn look_at_all(&mut self) -> io::Result<()> {
        // What was started before the attempt is none of it: most processes of a machine need no second look.
        let known = [&self.tree.supervisor, &self.tree.process].into_iter().flatten();
        let earliest = known.map(|identity| identity.start_time).min().unwrap_or(0);
        for pid in proc::pids()? {
            let Ok(Some(stat)) = proc::stat(pid) else { continue };
            if stat.start_time < earliest {
                continue;
            }
            let mark = if stat.has_ended() { Some(Belongs::Unmarked) } else { mark_of(self.tree, pid) };
            self.unreadable += u32::from(mark.is_none());
            let belongs = mark.unwrap_or(Belongs::Unmarked);
            self.seen.push(Seen { stat, belongs });
        }
        Ok(())
    }

    /// Adds what is in the attempt's cgroup, whatever it did to its group, session, parent and environment.
    fn add_members(&mut self) {
        let Some(own) = &self.tree.cgroup else { return };
        let members = cgroup::members(own);
        for seen in &mut self.seen {
            if seen.belongs == Belongs::Unmarked && members.contains(&seen.stat.pid) {
                seen.belongs = Belongs::Ours;
            }
        }
    }

    /// Adds what is in the process group or POSIX session that the job's first process leads; returns what is only
    /// doubtfully so.
    fn add_group(&mut self) -> Vec<u32> {
        let Some(leader) = &self.tree.process else { return Vec::new() };
        let number = leader.pid;
        // While the first process is there, collected or not, its number is the group's. After that, members keep the
        // number from being given away, but another group may have had it in between and lost its leader too.
        let is_leader = |seen: &Seen| seen.stat.pid == number && seen.stat.start_time == leader.start_time;
        let certain = self.seen.iter().any(is_leader);
        let taken = !certain && self.seen.iter().any(|seen| seen.stat.pid == number);
        let lock = self.lock_file();
        let mut doubtful = Vec::new();
        for seen in &mut self.seen {
            let in_group = seen.stat.group == number || seen.stat.session == number;
            if !in_group || taken || seen.belongs != Belongs::Unmarked {
                continue;
            }
            if certain || lock.is_some_and(|(device, inode)| proc::holds_lock(seen.stat.pid, device, inode)) {
                seen.belongs = Belongs::Ours;
            } else {
                doubtful.push(seen.stat.pid);
            }
        }
        doubtful
    }

    fn lock_file(&self) -> Option<(u64, u64)> {
        let path = self.tree.attempt_dir.parent()?.parent()?.join("lock");
        file_id(&path)
    }

    /// Adds children of what is ours, and of the supervisor, to which orphans are reparented.
    fn add_descendants(&mut self) {
        let is_supervisor = |stat: &Stat| {
            self.tree.supervisor.as_ref().is_some_and(|s| s.pid == stat.pid && s.start_time == stat.start_time)
        };
        let mut parents: BTreeSet<u32> = self
            .seen
            .iter()
            .filter(|seen| matches!(seen.belongs, Belongs::Ours | Belongs::Supervises) || is_supervisor(&seen.stat))
            .map(|seen| seen.stat.pid)
            .collect();
        let supervisors: BTreeSet<u32> =
            self.seen.iter().filter(|seen| is_supervisor(&seen.stat)).map(|seen| seen.stat.pid).collect();
        loop {
            let mut grew = false;
            for seen in &mut self.seen {
                let new = seen.belongs == Belongs::Unmarked
                    && !supervisors.contains(&seen.stat.pid)
                    && parents.contains(&seen.stat.parent);
                if new {
                    seen.belongs = Belongs::Ours;
                    grew |= parents.insert(seen.stat.pid);
                }
            }
            if !grew {
                return;
            }
        }
    }

    fn into_living(self, doubtful: &[u32]) -> Living {
        let mut living = Living { unreadable: self.unreadable, ..Living::default() };
        let own = std::process::id();
        for seen in &self.seen {
            let Ok(identity) = identity::from_stat(&seen.stat) else { continue };
            if seen.stat.has_ended() {
                continue;
            }
            if seen.belongs == Belongs::Supervises || self.tree.supervisor.as_ref() == Some(&identity) {
                living.supervisors.push(identity);
            } else if seen.stat.pid == own {
                continue;
            } else if seen.belongs == Belongs::Ours {
                living.processes.push(identity);
            } else if seen.belongs == Belongs::Sibling {
                living.others.push(identity);
            } else if seen.belongs == Belongs::Unmarked && doubtful.contains(&seen.stat.pid) {
                living.doubtful.push(identity);
            }
        }
        living
    }
}
