//! Processes seen from outside: who lives, and how one is killed without hitting another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use latido_protocol::files::Identity;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One life of one pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks since boot at which it started.
    pub(crate) start_time: u64,
}

impl Process {
    /// Finds who has this pid. Returns `None` for nobody and for one that has ended and waits to be collected.
    pub(crate) fn at(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (state, start_time) = state_and_start(&stat)?;
        (!matches!(state, 'Z' | 'X' | 'x')).then_some(Self { pid, start_time })
    }

    /// Tells whether this very process lives.
    pub(crate) fn is_alive(self) -> bool {
        Self::at(self.pid) == Some(self)
    }

    /// Sends SIGKILL to this very process.
    ///
    /// # Errors
    ///
    /// Refuses where the pid belongs to nobody or to another.
    pub(crate) fn kill(self) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).context("a pid that cannot be")?;
        // The descriptor pins one process; the check after it says which.
        let pinned = pidfd_open(pid, PidfdFlags::empty()).with_context(|| format!("cannot find process {pid}"))?;
        if !self.is_alive() {
            bail!("process {} is another one or gone; it is left alone", self.pid);
        }
        pidfd_send_signal(&pinned, Signal::KILL).with_context(|| format!("cannot kill process {}", self.pid))
    }
}

impl From<&Identity> for Process {
    fn from(identity: &Identity) -> Self {
        Self { pid: identity.pid, start_time: identity.start_time }
    }
}

/// Reads fields 3 and 22 of `/proc/PID/stat`. The name before them may hold spaces and brackets.
fn state_and_start(stat: &str) -> Option<(char, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// A live process with the variables it was started with.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) process: Process,
    pub(crate) program: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
}

/// Lists the live processes that carry the variable `LATIDO_DIR` with a path under `state`.
pub(crate) fn under(state: &Path) -> Vec<Seen> {
    let Ok(folders) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = folders.flatten().filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| look(pid, state)).collect()
}

fn look(pid: u32, state: &Path) -> Option<Seen> {
    let raw = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment: BTreeMap<String, String> = raw
        .split(|byte| *byte == 0)
        .filter_map(|pair| String::from_utf8_lossy(pair).split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .filter(|(name, _)| name.starts_with("LATIDO_"))
        .collect();
    Path::new(environment.get("LATIDO_DIR")?).starts_with(state).then_some(())?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Some(Seen { process: Process::at(pid)?, program, environment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::command;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1000 10 18446744073709551615";
        assert_eq!(state_and_start(stat), Some(('S', 4711)));
        assert_eq!(state_and_start("7 (x"), None);
    }

    #[test]
    fn only_the_very_process_is_killed() {
        let mut child = command("sleep", Path::new("/")).arg("600").spawn().unwrap();
        let process = Process::at(child.id()).unwrap();
        let another = Process { start_time: process.start_time - 1, ..process };
        assert!(another.kill().unwrap_err().to_string().contains("left alone"));
        assert!(process.is_alive());
        process.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!process.is_alive());
    }

    #[test]
    fn processes_are_found_by_the_directory_they_carry() {
        let state = tempfile::tempdir().unwrap();
        let mut child = command("sleep", Path::new("/"))
            .arg("600")
            .env("LATIDO_DIR", state.path().join("jobs/a/attempts/0001"))
            .env("LATIDO_ATTEMPT", "1")
            .spawn()
            .unwrap();
        // Between fork and exec the child still shows its parent's variables.
        let found =
            crate::clock::wait_for("the child", std::time::Duration::from_secs(30), std::time::Duration::ZERO, || {
                Ok(under(state.path()).pop())
            });
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = found.unwrap();
        assert_eq!(seen.process.pid, child.id());
        assert_eq!(seen.environment["LATIDO_ATTEMPT"], "1");
        assert!(under(state.path()).is_empty());
    }
}
