//! What SIGKILL does not end: named, held, and never doubled.

use std::fs;
use std::path::PathBuf;

use latido_protocol::status::Phase;

use crate::agent::BARE;
use crate::support::{Agent, World, wait_until};

/// Where the freezer of version 1 is: a process that is frozen there does not die before it is thawed.
const FREEZER: &str = "/sys/fs/cgroup/freezer";

/// A frozen process; thawed when it is dropped.
struct Frozen(PathBuf);

impl Frozen {
    /// `None`: this host has no such freezer, or this user may not use it.
    fn new(pid: u32) -> Option<Self> {
        let folder = PathBuf::from(FREEZER).join(format!("latido-test-{pid}"));
        fs::create_dir(&folder).ok()?;
        fs::write(folder.join("cgroup.procs"), pid.to_string()).ok()?;
        fs::write(folder.join("freezer.state"), "FROZEN").ok()?;
        wait_until("the frost", || {
            fs::read_to_string(folder.join("freezer.state")).is_ok_and(|state| state.trim() == "FROZEN")
        });
        Some(Self(folder))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _thawed = fs::write(self.0.join("freezer.state"), "THAWED");
        // It is empty a moment after its process has ended; what stays is an empty folder.
        let _gone = fs::remove_dir(&self.0);
    }
}

/// Field case C136 (systemd/systemd#13288): a stop that the kernel does not carry out is told, and nothing is started beside it.
#[test]
fn c136_what_cannot_be_killed_is_named_and_held_and_nothing_is_started_beside_it() {
    for with_agent in [false, true] {
        let world = World::new();
        let agent = with_agent.then(|| Agent::start(&world, BARE));
        world.detach("a", &[], "echo $$ >> runs; exec sleep 1000");
        wait_until("the job", || !world.read("runs").is_empty());
        let pid = world.start("a", 1).process.unwrap().pid;
        let Some(frozen) = Frozen::new(pid) else {
            eprintln!("NOT TESTED: no process can be frozen here");
            return;
        };
        let stop = world.latido(&["stop", "a", "--grace", "100ms"]).ends_with(1);
        assert!(stop.stderr.contains("cannot kill") && stop.stderr.contains(&format!("pid {pid}")), "{stop:?}");
        let status = world.status("a");
        assert_eq!(status.phase, Phase::Held, "{status:?}");
        assert!(status.trouble.unwrap().contains(&format!("kill not confirmed: SIGKILL has not ended pid {pid}")));
        let resume = world.latido(&["resume", "a"]).ends_with(4);
        assert!(resume.stderr.contains(&pid.to_string()), "{resume:?}");
        assert_eq!((world.attempts("a"), world.read("runs").lines().count()), (vec![1], 1));
        drop(frozen);
        assert_eq!(world.end("a", 1).outcome.class, latido_protocol::Class::Stopped);
        drop(agent);
    }
}
