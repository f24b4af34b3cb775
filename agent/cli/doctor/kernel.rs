//! Checks of what this kernel, as it is set up here, lets latido do: limits of cgroups, watches of files, clocks.

use std::path::Path;

use latido::jobs::clock::{since_boot, wall_time};
use latido_process::cgroup::{self, Hierarchies};
use rustix::fs::inotify::{self, CreateFlags};

use super::Check;

/// No latido was made before this: a clock that says so was not set. 2025-01-01 in milliseconds.
const NEVER_BEFORE: u64 = 1_735_689_600_000;

/// Cgroups in which limits can be enforced, and from which no process gets away.
pub(super) fn cgroup() -> Check {
    let name = "cgroup";
    let hierarchies = Hierarchies::under(Path::new(cgroup::ROOT));
    if hierarchies.is_empty() {
        return Check::warn(
            name,
            "no cgroup can be made here: a process that changes its session and its environment cannot be found again, \
             and memory_max and pids_max are refused",
            "run the agent as a systemd unit with `Delegate=yes`, or as root; in a container mount /sys/fs/cgroup writable",
        );
    }
    let missing: Vec<&str> =
        ["memory", "pids"].into_iter().filter(|controller| hierarchies.enforces(controller).is_none()).collect();
    if missing.is_empty() {
        Check::ok(name, "each attempt gets one of its own; memory_max and pids_max can be enforced")
    } else {
        Check::warn(
            name,
            format!("each attempt gets one of its own, without the controllers {}", missing.join(" and ")),
            "enable them for this cgroup (cgroup.subtree_control, or `Delegate=yes` in the unit), or use limits = \"best-effort\"",
        )
    }
}

/// Files can be watched for changes.
pub(super) fn inotify() -> Check {
    let name = "inotify";
    match inotify::init(CreateFlags::CLOEXEC) {
        Ok(_) => Check::ok(name, "files can be watched for changes"),
        Err(error) => Check::warn(
            name,
            format!("the kernel refuses to watch files: {error}"),
            "sysctl fs.inotify.max_user_instances=1024, or end what holds so many",
        ),
    }
}

/// The clocks by which silence is measured run, and the calendar was set.
pub(super) fn clocks() -> Check {
    let name = "clocks";
    let (monotonic, boottime) = since_boot();
    if boottime < monotonic {
        return Check::warn(
            name,
            "CLOCK_BOOTTIME is behind CLOCK_MONOTONIC: how long the machine slept cannot be told",
            "in a container use the host's time namespace",
        );
    }
    if wall_time().as_millis() < NEVER_BEFORE {
        return Check::fail(
            name,
            format!("the calendar says {}, before latido was made", wall_time()),
            "set the clock, and let it be kept (chrony, systemd-timesyncd): checks are expected by the calendar",
        );
    }
    Check::ok(name, "silence is measured by CLOCK_MONOTONIC and CLOCK_BOOTTIME; the calendar is set")
}

/// Whom a job is protected from.
pub(super) fn trust() -> Check {
    let name = "trust";
    let who = if rustix::process::geteuid().is_root() { "root" } else { "this user" };
    Check::ok(
        name,
        format!(
            "jobs that run as {who} can reach one another as any programs of one user can; only a job with a `user` of its \
             own (launch.user, where root launches) is protected from the others"
        ),
    )
}
