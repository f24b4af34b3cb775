//! The processes of the config: looked at every few seconds, and their end is known at once where a pidfd can be had.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use latido_driver::{Fact, Look, WatchFact};
use latido_policy::{Absence, Naming};
use latido_process::Pidfd;
use latido_process::find::{self, Called};
use latido_process::identity::{self, Look as Life};
use latido_protocol::SubjectName;
use latido_protocol::files::Identity;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock;
use crate::driver_thread::DriverHandle;
use crate::settings::NamedBy;

/// A look costs a pass over `/proc` where a process is known by its name: a millisecond on a busy host.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Bytes of a pid file that are read: a number and what some programs write after it.
const PID_FILE_MAX: u64 = 4096;

/// Watches one process for ever. `seen`: the process that was seen last before the agent's start.
pub(crate) async fn watch(driver: DriverHandle, name: SubjectName, named_by: NamedBy, mut seen: Option<Identity>) {
    loop {
        let (named, known) = (named_by.clone(), seen.clone());
        let Ok(look) = tokio::task::spawn_blocking(move || look(&named, known.as_ref())).await else { return };
        let alive = match &look {
            Look::Seen { identity, .. } => Some(identity.clone()),
            Look::Absent(_) | Look::Ended { .. } | Look::Failed { .. } => None,
        };
        if driver.tell(Fact::Watched(Box::new(WatchFact::Looked { process: name.clone(), look }))).await.is_err() {
            return;
        }
        if let Some(identity) = &alive
            && ended_within(identity, LOOK_EVERY).await
        {
            let look = Look::Ended { identity: identity.clone(), exit: None };
            if driver.tell(Fact::Watched(Box::new(WatchFact::Looked { process: name.clone(), look }))).await.is_err() {
                return;
            }
        } else if alive.is_none() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        seen = alive.or(seen);
    }
}

/// Waits so long, and answers whether the process ended meanwhile.
async fn ended_within(identity: &Identity, length: Duration) -> bool {
    let Some(process) = open(identity) else {
        tokio::time::sleep(length).await;
        return false;
    };
    matches!(tokio::time::timeout(length, process.readable()).await, Ok(Ok(_)))
}

/// The process as something to wait for; `None` where the system has no such thing, and the next look tells.
fn open(identity: &Identity) -> Option<AsyncFd<OwnedFd>> {
    let pidfd = Pidfd::open(identity).ok().flatten()?.as_fd().try_clone_to_owned().ok()?;
    #[expect(deprecated, reason = "an OwnedFd keeps its descriptor, which is all that the unsafe call asks for")]
    let process = AsyncFd::with_interest(pidfd, Interest::READABLE);
    process.ok()
}

/// Looks for the process that is named. What was seen before and lives is the one, whatever else is called so.
fn look(named_by: &NamedBy, known: Option<&Identity>) -> Look {
    let known = known.filter(|known| matches!(identity::look(known), Life::Alive { .. }));
    match named_by {
        NamedBy::PidFile(file) => by_file(file, known),
        NamedBy::Pid(pid) => by_pid(*pid, Naming::Pid),
        NamedBy::Name(text) => by_call(&Called::Name(text.clone()), known),
        NamedBy::Command(text) => by_call(&Called::Command(text.clone()), known),
    }
}

fn by_file(file: &Path, known: Option<&Identity>) -> Look {
    let text = match read_some(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // It takes its file away before it ends.
            return known.map_or(Look::Absent(Absence::Unnamed), |known| seen(known.clone(), Naming::Name));
        }
        Err(error) => return Look::Failed { detail: format!("cannot read {}: {error}", file.display()) },
    };
    let Some(pid) = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok()) else {
        return Look::Failed { detail: format!("{} holds no pid", file.display()) };
    };
    let written = file.metadata().and_then(|file| file.modified()).map(latido_protocol::WallTime::from);
    match written {
        Ok(written) => {
            let ago = clock::wall().as_millis().saturating_sub(written.as_millis());
            by_pid(pid, Naming::File { written_ago: Duration::from_millis(ago) })
        }
        Err(error) => Look::Failed { detail: format!("cannot tell the age of {}: {error}", file.display()) },
    }
}

fn read_some(file: &Path) -> std::io::Result<String> {
    use std::io::Read;

    let mut text = String::new();
    std::fs::File::open(file)?.take(PID_FILE_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn by_pid(pid: u32, naming: Naming) -> Look {
    match identity::of(pid) {
        Ok(Some(identity)) => seen(identity, naming),
        Ok(None) => Look::Absent(Absence::NoProcess),
        Err(error) => Look::Failed { detail: format!("cannot {error}") },
    }
}

fn by_call(called: &Called, known: Option<&Identity>) -> Look {
    match find::called(called) {
        Ok(found) => {
            let same = known.filter(|known| found.contains(known)).cloned();
            let first = same.or_else(|| found.into_iter().next());
            first.map_or(Look::Absent(Absence::Unnamed), |identity| seen(identity, Naming::Name))
        }
        Err(error) => Look::Failed { detail: format!("cannot {error}") },
    }
}

fn seen(identity: Identity, naming: Naming) -> Look {
    match find::age(&identity) {
        Ok(age) => Look::Seen { identity, age, naming },
        Err(error) => {
            Look::Failed { detail: format!("cannot tell how long process {} has run: {error}", identity.pid) }
        }
    }
}
