//! The machine: its clocks, its boots, its processes.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_driver::Reading;
use latido_protocol::WallTime;
use latido_protocol::files::Identity;

/// A process as the world knows it; unlike a pid it is never given twice.
pub(crate) type Process = u64;

/// Where the calendar stands at the beginning.
const WALL_START: Duration = Duration::from_secs(1_700_000_000);

/// A boot begins with some time on its clocks.
const UPTIME: Duration = Duration::from_secs(100);

/// Clock ticks in a second, in which start times are counted.
const TICK: u128 = 10;

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Agent,
    /// A command line.
    Command,
    Supervisor {
        attempt: usize,
    },
    Work {
        attempt: usize,
    },
    Stranger,
}

#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) role: Role,
    pub(crate) identity: Identity,
    /// how many have stopped it
    pub(crate) stops: u32,
}

/// One machine. Time is time awake: it does not pass while the machine sleeps.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) now: Duration,
    booted_at: Duration,
    boot: u32,
    slept: Duration,
    slept_before_boot: Duration,
    stepped_ms: i64,
    /// the monotonic clock runs on while the machine sleeps
    counts_sleep: bool,
    pids: u32,
    last_pid: u32,
    next: Process,
    running: BTreeMap<Process, Running>,
    by_pid: BTreeMap<u32, Process>,
}

impl Host {
    pub(crate) fn new(counts_sleep: bool, pids: u32) -> Self {
        Self {
            now: Duration::ZERO,
            booted_at: Duration::ZERO,
            boot: 1,
            slept: Duration::ZERO,
            slept_before_boot: Duration::ZERO,
            stepped_ms: 0,
            counts_sleep,
            pids,
            last_pid: 0,
            next: 1,
            running: BTreeMap::new(),
            by_pid: BTreeMap::new(),
        }
    }

    pub(crate) fn wall(&self) -> WallTime {
        let millis = (WALL_START + self.now + self.slept).as_millis();
        let millis = i64::try_from(millis).unwrap_or(i64::MAX).saturating_add(self.stepped_ms);
        WallTime::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    pub(crate) fn reading(&self) -> Reading {
        let awake = self.now.saturating_sub(self.booted_at) + UPTIME;
        let slept = self.slept.saturating_sub(self.slept_before_boot);
        let monotonic = if self.counts_sleep { awake + slept } else { awake };
        Reading { monotonic, boottime: awake + slept, wall: self.wall() }
    }

    pub(crate) fn sleep(&mut self, length: Duration) {
        self.slept += length;
    }

    pub(crate) fn step_wall(&mut self, forward: bool, length: Duration) {
        let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        self.stepped_ms = self.stepped_ms.saturating_add(if forward { millis } else { -millis });
    }

    /// Ends every process and begins another boot; answers who was there.
    pub(crate) fn reboot(&mut self) -> Vec<(Process, Role)> {
        self.boot += 1;
        self.booted_at = self.now;
        self.slept_before_boot = self.slept;
        self.last_pid = 0;
        self.by_pid.clear();
        std::mem::take(&mut self.running).into_iter().map(|(process, running)| (process, running.role)).collect()
    }

    /// Starts a process under the next free pid; pids come round.
    pub(crate) fn start(&mut self, role: Role) -> Process {
        while self.by_pid.len() as u64 >= u64::from(self.pids) {
            self.pids += 1;
        }
        loop {
            self.last_pid = self.last_pid % self.pids + 1;
            if !self.by_pid.contains_key(&self.last_pid) {
                break;
            }
        }
        let process = self.next;
        self.next += 1;
        let since_boot = self.now.saturating_sub(self.booted_at) + UPTIME;
        let identity = Identity {
            machine_id: "machine".to_owned(),
            boot_id: format!("boot-{}", self.boot),
            pid_namespace: 1,
            pid: self.last_pid,
            start_time: u64::try_from(since_boot.as_millis() / TICK).unwrap_or(u64::MAX),
        };
        self.by_pid.insert(self.last_pid, process);
        self.running.insert(process, Running { role, identity, stops: 0 });
        process
    }

    pub(crate) fn end(&mut self, process: Process) -> Option<Running> {
        let running = self.running.remove(&process)?;
        self.by_pid.remove(&running.identity.pid);
        Some(running)
    }

    pub(crate) fn running(&self, process: Process) -> Option<&Running> {
        self.running.get(&process)
    }

    pub(crate) fn lives(&self, process: Process) -> bool {
        self.running.contains_key(&process)
    }

    pub(crate) fn is_stopped(&self, process: Process) -> bool {
        self.running.get(&process).is_some_and(|running| running.stops > 0)
    }

    /// Stops or continues a process; answers whether that changed it.
    pub(crate) fn stop(&mut self, process: Process, stop: bool) -> bool {
        let Some(running) = self.running.get_mut(&process) else { return false };
        let before = running.stops;
        running.stops = if stop { before + 1 } else { before.saturating_sub(1) };
        (before > 0) != (running.stops > 0)
    }

    /// Who a recorded identity is, if it lives: never another process under its pid.
    pub(crate) fn find(&self, identity: &Identity) -> Option<Process> {
        let process = *self.by_pid.get(&identity.pid)?;
        self.running.get(&process).filter(|running| running.identity == *identity).map(|_| process)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (Process, Role)> + '_ {
        self.running.iter().map(|(process, running)| (*process, running.role))
    }
}
