//! Checks of the places that latido writes to, and of the agent that watches them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use latido::jobs::client::{AGENT_WITHIN, AskError, ask_agent};
use latido::jobs::exposed::exposed_at;
use latido::jobs::inspect::{AttemptFacts, AttemptState, inspect};
use latido::jobs::records::job_names;
use latido::jobs::sockets::{make_folder, remove_folder, short_id};
use latido_protocol::control::{Answer, Request};
use latido_protocol::layout::StateDir;

use super::Check;
use crate::failure::chain;

/// Below this an attempt's log and records may not fit: the default bound of one log is 64 MiB.
const FREE_BYTES_MIN: u64 = 64 * 1024 * 1024;
/// Below this a few busy jobs fill the disk within their bounds.
const FREE_BYTES_SOUND: u64 = 1024 * 1024 * 1024;
/// An attempt makes about ten files.
const FREE_FILES_SOUND: u64 = 1000;

/// The state directory can be written, and by nobody else.
pub(super) fn state_directory(state: &StateDir) -> Check {
    let name = "state directory";
    let path = state.path();
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => {
            Check::fail(name, format!("{} is not a directory", path.display()), "name another with --state-dir")
        }
        Ok(metadata) => existing(name, path, &metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let above = existing_above(path);
            match try_to_write(&above) {
                Ok(()) => Check::ok(name, format!("{} will be made by the first job", path.display())),
                Err(error) => Check::fail(
                    name,
                    format!("{} cannot be made in {}: {error}", path.display(), above.display()),
                    "make it yourself with mode 0700, or name another with --state-dir",
                ),
            }
        }
        Err(error) => Check::fail(
            name,
            format!("cannot look at {}: {error}", path.display()),
            "make it readable, or name another with --state-dir",
        ),
    }
}

fn existing(name: &'static str, path: &Path, metadata: &fs::Metadata) -> Check {
    let shown = path.display();
    if let Err(error) = try_to_write(path) {
        return Check::fail(
            name,
            format!("cannot write to {shown}: {error}"),
            "make it writable for this user, or name another with --state-dir",
        );
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Check::fail(name, format!("{shown} belongs to another user"), "name one of your own with --state-dir");
    }
    if metadata.mode() & 0o077 != 0 {
        let mode = metadata.mode() & 0o777;
        return Check::warn(
            name,
            format!("others may enter {shown} (mode {mode:04o}): it holds output and environments"),
            format!("chmod 700 {shown}"),
        );
    }
    if let Some(folder) = exposed_at(path) {
        let folder = folder.display();
        return Check::fail(
            name,
            format!("everybody may write to {folder}, and so put another directory in the place of {shown}"),
            format!("chmod o-w {folder}, or name another directory with --state-dir; an agent refuses this one"),
        );
    }
    Check::ok(name, format!("{shown} is private and can be written"))
}

/// Writes a file to the disk and removes it.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".latido-doctor-{}", short_id()));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(b"doctor\n").and_then(|()| file.sync_all()));
    let removed = fs::remove_file(&path);
    written.and(removed)
}

/// The nearest folder above that exists.
fn existing_above(path: &Path) -> PathBuf {
    path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// There is room for logs and records.
pub(super) fn disk_space(state: &StateDir) -> Check {
    let name = "disk space";
    let place = existing_above(state.path());
    let room = match rustix::fs::statvfs(&place) {
        Ok(room) => room,
        Err(error) => {
            return Check::warn(
                name,
                format!("cannot tell how much is free at {}: {error}", place.display()),
                format!("look with `df {}`", place.display()),
            );
        }
    };
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let detail = format!("{} MiB free at {}", free / (1024 * 1024), place.display());
    let next = "free some space, lower agent.log.size_max, or name another disk with --state-dir";
    if free < FREE_BYTES_MIN {
        Check::fail(name, detail, next)
    } else if free < FREE_BYTES_SOUND {
        Check::warn(name, detail, next)
    } else if room.f_files > 0 && room.f_favail < FREE_FILES_SOUND {
        Check::warn(name, format!("{detail}, but only {} files can be made", room.f_favail), "remove files there")
    } else {
        Check::ok(name, detail)
    }
}

/// Sockets find a private folder with a path short enough.
pub(super) fn sockets() -> Check {
    let name = "sockets";
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match make_folder(runtime.as_deref()) {
        Ok(folder) => {
            remove_folder(&folder);
            let base = folder.parent().unwrap_or(&folder);
            match &runtime {
                Some(runtime) if !folder.starts_with(runtime) => Check::warn(
                    name,
                    format!("{} cannot be used, so {} is", runtime.display(), base.display()),
                    "let XDG_RUNTIME_DIR be a short path to a folder of your own with mode 0700",
                ),
                Some(_) | None => Check::ok(name, format!("{} is private and short enough", base.display())),
            }
        }
        Err(error) => Check::fail(name, chain(&error), "let XDG_RUNTIME_DIR be a folder of your own with mode 0700"),
    }
}

/// An agent watches the state directory.
pub(super) fn agent(state: &StateDir) -> Check {
    let name = "agent";
    let start = "run `latido agent`; without it jobs run, and nothing is resumed by itself";
    let ours = env!("CARGO_PKG_VERSION");
    match ask_agent(state, Request::Hello, AGENT_WITHIN) {
        Ok(Answer::Hello { agent, pid }) if agent == ours => Check::ok(name, format!("version {agent}, pid {pid}")),
        Ok(Answer::Hello { agent, pid }) => Check::warn(
            name,
            format!("version {agent} runs (pid {pid}), and this is version {ours}"),
            "start the agent again; running jobs are adopted",
        ),
        Err(AskError::Refused { message }) => {
            Check::fail(name, format!("it answers that it cannot {message}"), "start the agent of this version")
        }
        Ok(_) => Check::fail(name, "something else answers on its socket", "look who listens on agent.sock"),
        Err(AskError::NobodyThere { .. }) => Check::warn(name, "no agent watches this state directory", start),
        Err(error) => Check::fail(name, chain(&error), start),
    }
}

/// Every supervisor can write what it has to write, and none is stopped.
pub(super) fn supervisors(state: &StateDir) -> Check {
    let name = "supervisors";
    let names = match job_names(state) {
        Ok(names) => names,
        Err(error) => {
            let next = "make it readable, or name another with --state-dir";
            return Check::fail(name, format!("cannot list the jobs: {error}"), next);
        }
    };
    let latest = names.iter().filter_map(|job| Some((job, inspect(state, job)?.latest?)));
    let running: Vec<_> = latest.filter(|(_, latest)| latest.state == AttemptState::Running).collect();
    let troubled: Vec<String> = running
        .iter()
        .filter_map(|(job, AttemptFacts { records, doubt, .. })| {
            let told = records.status.as_ref().and_then(|status| status.trouble_words());
            Some(format!("job {job}: {}", doubt.clone().or(told)?))
        })
        .collect();
    match troubled.first() {
        None => Check::ok(name, format!("{} of them run without trouble", running.len())),
        Some(first) if troubled.len() == 1 => {
            Check::fail(name, first, "mend what is named; `latido why JOB` shows more")
        }
        Some(first) => {
            let detail = format!("{first}; and {} more", troubled.len() - 1);
            Check::fail(name, detail, "mend what is named; `latido status` lists them all")
        }
    }
}
