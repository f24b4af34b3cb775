//! Who a process is: machine, boot, pid namespace, pid and time of start.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use latido_protocol::files::Identity;
use rustix::io::Errno;

use crate::proc::{self, Stat};
use crate::sys;

/// Why an identity could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file that says which machine, boot or pid namespace this is.
    #[error("read {path}")]
    Machine {
        /// which file
        path: PathBuf,
        /// what the kernel said
        source: io::Error,
    },
    /// `/proc` would not tell about a process.
    #[error("read /proc/{pid}/stat")]
    Process {
        /// which process
        pid: u32,
        /// what the kernel said
        source: io::Error,
    },
    /// The process is there and `/proc` does not show it (mounted with `hidepid`, or not at all).
    #[error("see process {pid}: it exists, and /proc does not show it")]
    Hidden {
        /// which process
        pid: u32,
    },
}

/// What a look at an identity found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// It lives.
    Alive {
        /// the state letter of `/proc/PID/stat`: `R`, `S`, `D`, `T` …
        state: char,
    },
    /// It is proven gone.
    Gone {
        /// how that is known, in words
        proof: String,
    },
    /// It cannot be told from here.
    Unknown {
        /// why, in words
        why: String,
    },
}

impl Look {
    /// Whether it lives and runs nothing, because a signal or a debugger has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Alive { state: 'T' | 't' })
    }
}

/// The identity of the calling process.
///
/// # Errors
/// When the machine's or the process's own files cannot be read.
pub fn own() -> Result<Identity, IdentityError> {
    let pid = std::process::id();
    of(pid)?.ok_or(IdentityError::Hidden { pid })
}

/// The identity of a process of this pid namespace. `None`: no such process; a zombie counts as ended.
///
/// # Errors
/// When `/proc` does not tell, which is no proof of anything.
pub fn of(pid: u32) -> Result<Option<Identity>, IdentityError> {
    stat_of(pid)?.filter(|stat| !stat.has_ended()).map(|stat| from_stat(&stat)).transpose()
}

/// Looks whether the process of an identity lives. It never believes and always checks.
pub fn look(identity: &Identity) -> Look {
    let here = match here() {
        Ok(here) => here,
        Err(error) => return Look::Unknown { why: format!("cannot {error}") },
    };
    if identity.machine_id != here.machine_id {
        return Look::Unknown { why: format!("it is on another machine ({})", identity.machine_id) };
    }
    if identity.boot_id != here.boot_id {
        return Look::Gone { proof: "the machine was started again since".to_owned() };
    }
    if identity.pid_namespace != here.pid_namespace {
        return Look::Unknown { why: format!("it is in another pid namespace ({})", identity.pid_namespace) };
    }
    let pid = identity.pid;
    match stat_of(pid) {
        Ok(None) => Look::Gone { proof: format!("there is no process {pid}") },
        Ok(Some(stat)) if stat.start_time != identity.start_time => Look::Gone {
            proof: format!(
                "pid {pid} is another process, started {} after boot, not {}",
                ticks(stat.start_time),
                ticks(identity.start_time)
            ),
        },
        Ok(Some(stat)) if stat.has_ended() => {
            Look::Gone { proof: format!("process {pid} has ended and waits to be collected") }
        }
        Ok(Some(stat)) => Look::Alive { state: stat.state },
        Err(error) => Look::Unknown { why: format!("cannot {error}") },
    }
}

/// The identity that a line of `/proc` belongs to, zombies included.
pub(crate) fn from_stat(stat: &Stat) -> Result<Identity, IdentityError> {
    let here = here()?;
    Ok(Identity {
        machine_id: here.machine_id.clone(),
        boot_id: here.boot_id.clone(),
        pid_namespace: here.pid_namespace,
        pid: stat.pid,
        start_time: stat.start_time,
    })
}

/// As [`of`], and a process that ended but was not collected counts.
pub(crate) fn of_uncollected(pid: u32) -> Result<Option<Identity>, IdentityError> {
    stat_of(pid)?.map(|stat| from_stat(&stat)).transpose()
}

/// True when an identity can be compared with pids of this process's own view.
pub(crate) fn is_here(identity: &Identity) -> bool {
    here().is_ok_and(|here| {
        here.machine_id == identity.machine_id
            && here.boot_id == identity.boot_id
            && here.pid_namespace == identity.pid_namespace
    })
}

/// Machine, boot and namespace: the same for as long as this process lives.
struct Here {
    machine_id: String,
    boot_id: String,
    pid_namespace: u64,
}

fn here() -> Result<&'static Here, IdentityError> {
    static HERE: OnceLock<Here> = OnceLock::new();
    if let Some(here) = HERE.get() {
        return Ok(here);
    }
    let found = Here {
        machine_id: machine_id(),
        boot_id: read_line("/proc/sys/kernel/random/boot_id")?,
        pid_namespace: std::fs::metadata("/proc/self/ns/pid")
            .map_err(|source| IdentityError::Machine { path: "/proc/self/ns/pid".into(), source })?
            .ino(),
    };
    Ok(HERE.get_or_init(|| found))
}

fn machine_id() -> String {
    match read_line("/etc/machine-id") {
        // Images that have not been booted hold nothing, or the word `uninitialized`.
        Ok(id) if !id.is_empty() && id != "uninitialized" => id,
        Ok(_) | Err(_) => sys::host_name(),
    }
}

fn read_line(path: &str) -> Result<String, IdentityError> {
    std::fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .map_err(|source| IdentityError::Machine { path: path.into(), source })
}

/// What `/proc` says of a process; that it says nothing is checked with the kernel itself.
fn stat_of(pid: u32) -> Result<Option<Stat>, IdentityError> {
    let read = || proc::stat(pid).map_err(|source| IdentityError::Process { pid, source });
    if let Some(stat) = read()? {
        return Ok(Some(stat));
    }
    match sys::pid(pid).map(rustix::process::test_kill_process) {
        None | Some(Err(Errno::SRCH)) => Ok(None),
        // EPERM says that it is there as clearly as success does. It may have been started a moment ago.
        Some(Ok(()) | Err(_)) => match read()? {
            Some(stat) => Ok(Some(stat)),
            None if sys::pid(pid).map(rustix::process::test_kill_process) == Some(Err(Errno::SRCH)) => Ok(None),
            None => Err(IdentityError::Hidden { pid }),
        },
    }
}

/// Clock ticks since boot as seconds; `/proc` counts in hundredths on every architecture.
fn ticks(ticks: u64) -> String {
    format!("{}.{:02} s", ticks / 100, ticks % 100)
}
