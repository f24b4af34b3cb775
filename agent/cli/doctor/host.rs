//! Checks of the program's own files and of what the kernel offers.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use latido::jobs::launch::supervisor_program;
use rustix::process::{PidfdFlags, Resource};

use super::Check;
use crate::failure::chain;

/// The agent holds two descriptors for each running job, and plugins and clients beside them.
const DESCRIPTORS_SOUND: u64 = 1024;
/// Below this a handful of jobs is too much.
const DESCRIPTORS_MIN: u64 = 128;

/// The supervisor is there, can be executed, and is of the same version.
pub(super) fn supervisor() -> Check {
    let name = "supervisor";
    let install = "install latido and latido-supervisor of one version into the same folder";
    let program = match supervisor_program() {
        Ok(program) => program,
        Err(error) => return Check::fail(name, chain(&error), install),
    };
    let shown = program.display();
    match std::fs::metadata(&program) {
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
            Check::fail(name, format!("{shown} is not executable"), format!("chmod +x {shown}"))
        }
        Ok(_) => match stated_version(&program) {
            Ok(Some(version)) if version == OURS => Check::ok(name, format!("{shown}, version {version}")),
            Ok(Some(version)) => {
                Check::fail(name, format!("{shown} is version {version}, and this is version {OURS}"), install)
            }
            Ok(None) => Check::warn(name, format!("cannot tell the version of {shown}"), install),
            Err(error) => Check::fail(name, format!("cannot read {shown}: {error}"), install),
        },
        Err(error) => Check::fail(name, format!("cannot look at {shown}: {error}"), install),
    }
}

const OURS: &str = env!("CARGO_PKG_VERSION");

/// The version in the text that the program's `--version` prints. It is read and not run: a doctor starts nothing.
fn stated_version(program: &Path) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    std::fs::File::open(program)?.take(PROGRAM_MAX).read_to_end(&mut bytes)?;
    Ok(version_in(&bytes))
}

fn version_in(bytes: &[u8]) -> Option<String> {
    let before = b"latido-supervisor ";
    let starts = bytes.windows(before.len()).enumerate().filter(|(_, window)| window == before);
    starts.map(|(at, _)| &bytes[at + before.len()..]).find_map(|rest| {
        let length = rest.iter().take(VERSION_LENGTH_MAX).position(|byte| *byte == b'\n')?;
        let version = std::str::from_utf8(&rest[..length]).ok()?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
    })
}

/// `1.22.333-alpha.4444` and the like.
const VERSION_LENGTH_MAX: usize = 40;

/// A debug build of the supervisor has 10 MB; more is not read.
const PROGRAM_MAX: u64 = 128 * 1024 * 1024;

/// Processes can be told apart: machine, boot, namespace, start time.
pub(super) fn identity() -> Check {
    let name = "identity";
    match latido_process::identity::own() {
        Ok(_) => Check::ok(name, "machine id, boot id and /proc can be read"),
        Err(error) => {
            Check::fail(name, chain(&error), "mount /proc without hidepid, and let /etc/machine-id be readable")
        }
    }
}

/// Processes can be held by descriptor, so that no signal reaches a recycled pid.
pub(super) fn pidfd() -> Check {
    let name = "pidfd";
    match rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty()) {
        Ok(_) => Check::ok(name, "the kernel has it"),
        Err(error) => Check::fail(
            name,
            format!("the kernel refuses pidfd_open: {error}"),
            "use Linux 5.3 or newer; in a container allow pidfd_open and pidfd_send_signal",
        ),
    }
}

/// A supervisor can become the parent of what its job leaves behind.
pub(super) fn subreaper() -> Check {
    let name = "subreaper";
    match rustix::process::child_subreaper() {
        Ok(_) => Check::ok(name, "the kernel has it"),
        Err(error) => Check::fail(
            name,
            format!("the kernel refuses PR_GET_CHILD_SUBREAPER: {error}"),
            "use Linux 3.4 or newer; in a container allow prctl",
        ),
    }
}

/// There are file descriptors enough.
pub(super) fn descriptors() -> Check {
    let name = "descriptors";
    let limit = rustix::process::getrlimit(Resource::Nofile);
    // The agent raises its own soft limit to the hard one.
    let Some(current) = limit.maximum else { return Check::ok(name, "no limit") };
    let detail = format!("{current} for the agent");
    let next = format!(
        "raise the hard limit of the agent: LimitNOFILE= in its unit, or `ulimit -Hn {DESCRIPTORS_SOUND}` as root"
    );
    if current < DESCRIPTORS_MIN {
        Check::fail(name, detail, next)
    } else if current < DESCRIPTORS_SOUND {
        Check::warn(name, detail, next)
    } else {
        Check::ok(name, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn a_version_is_found_in_the_text_around_it() {
        let program = b"\0latido-supervisor ATTEMPT_DIR\n\0latido-supervisor 0.1.0\nusage";
        assert_eq!(version_in(program).as_deref(), Some("0.1.0"));
        assert_eq!(version_in(b"latido-supervisor 0.1.0"), None);
        assert_eq!(version_in(b"nothing"), None);
    }
}
