//! Processes that somebody else started, found by what they are called.

use std::io;

use latido_protocol::files::Identity;

use crate::identity::{self, IdentityError};
use crate::proc;

/// Bytes of a program's name that the kernel keeps.
const NAME_MAX: usize = 15;

/// What a process is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Called {
    /// The program's name, as `ps -o comm` shows it; the kernel keeps its first 15 bytes.
    Name(String),
    /// A text in its command line, as `ps -o args` shows it.
    Command(String),
}

/// Why processes could not be looked for, which is no proof that there are none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The processes cannot be listed.
    #[error("list the processes in /proc")]
    List {
        /// what the kernel said
        source: io::Error,
    },
    /// `/proc` does not show the processes of others (`hidepid`).
    #[error("see all processes: /proc hides those of other users")]
    Hidden,
    /// Who one of them is cannot be told.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Finds the processes that are called so, the oldest first. The caller itself is none of them.
///
/// # Errors
/// `/proc` cannot be read, or does not show everything while nothing was found.
pub fn called(called: &Called) -> Result<Vec<Identity>, FindError> {
    let own = std::process::id();
    let pids = proc::pids().map_err(|source| FindError::List { source })?;
    let mut found: Vec<Identity> = Vec::new();
    for pid in pids.into_iter().filter(|pid| *pid != own) {
        if matches(pid, called)
            && let Some(identity) = identity::of(pid)?
        {
            found.push(identity);
        }
    }
    found.sort_by_key(|identity| (identity.start_time, identity.pid));
    if found.is_empty() && matches!(identity::of(1), Err(IdentityError::Hidden { .. })) {
        return Err(FindError::Hidden);
    }
    Ok(found)
}

/// How long a process of this boot has run, in hundredths of a second as the kernel counts.
///
/// # Errors
/// `/proc` does not tell how long the machine is up.
pub fn age(identity: &Identity) -> io::Result<std::time::Duration> {
    let ticks = proc::uptime()?.saturating_sub(identity.start_time);
    Ok(std::time::Duration::from_millis(ticks.saturating_mul(10)))
}

/// A process that ends while it is looked at is not called anything.
fn matches(pid: u32, called: &Called) -> bool {
    match called {
        Called::Name(name) => {
            let kept = &name.as_bytes()[..name.len().min(NAME_MAX)];
            let shown = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
            shown.strip_suffix(b"\n").unwrap_or(&shown) == kept
        }
        Called::Command(text) => {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(line.strip_suffix(b"\0").unwrap_or(&line)).replace('\0', " ");
            !text.is_empty() && line.contains(text.as_str())
        }
    }
}
