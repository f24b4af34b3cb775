//! What the kernel counts for the processes of attempts: one pass over `/proc` for all of them.
//!
//! Activity tells work that is silent from work that hangs. It is sampled for every attempt every few seconds, so a pass opens
//! `/proc/PID/stat` of each process of the machine once and anything more of an attempt's own processes only. These are
//! found by descent from the first process or the supervisor (to which orphans are reparented) and by POSIX session; no
//! environment is read for a mark, which would cost more than all the rest. So after a supervisor's death, what left the
//! session is not counted.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

use latido_protocol::files::Identity;
use rustix::fs::{Mode, OFlags};

use crate::identity;
use crate::proc::{self, Stat};

/// Bytes of a file of `/proc` that are read: `io`, `schedstat`, `wchan` and `syscall` are much shorter.
const FILE_MAX: usize = 2048;

/// What `/proc` counts CPU time in, on every Linux (`USER_HZ` is 100).
const TICK: Duration = Duration::from_millis(10);

/// An attempt whose activity is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    /// the job's first process
    pub process: &'a Identity,
    /// its supervisor, where it lives
    pub supervisor: Option<&'a Identity>,
}

/// What was counted for one attempt. Counts are of what lives: they fall when a process ends whose parent does not
/// collect it. What may be compared is whether they are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// processes that live
    pub processes_count: u32,
    /// CPU time of these, and of their children that were collected
    pub cpu: Duration,
    /// bytes read, from disks and otherwise
    pub read_chars: u64,
    /// bytes written, to disks and otherwise
    pub written_chars: u64,
    /// bytes that came from disks
    pub read_bytes: u64,
    /// bytes that went to disks
    pub written_bytes: u64,
    /// how often their first threads were given a CPU
    pub switches_count: u64,
    /// processes whose counts of bytes could not be read: another user's
    pub unreadable_count: u32,
    /// what the first process is doing; `None`: it is gone
    pub first: Option<Doing>,
}

/// What a process is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doing {
    /// the state letter of `/proc/PID/stat`: `R`, `S`, `D`, `T` …
    pub state: char,
    /// the function of the kernel that it waits in, where that can be read
    pub wchan: Option<String>,
    /// the number of the system call that it waits in, where that can be read
    pub syscall: Option<u32>,
}

impl Activity {
    /// True where nothing was counted between an earlier sample and this one.
    pub fn is_idle_since(&self, before: &Self) -> bool {
        let counts = |one: &Self| {
            (one.cpu, one.read_chars, one.written_chars, one.read_bytes, one.written_bytes, one.switches_count)
        };
        counts(self) == counts(before) && self.processes_count == before.processes_count
    }
}

/// Takes samples. It keeps its buffers between them.
#[derive(Debug)]
pub struct Sampler {
    proc: OwnedFd,
    rows: Vec<Stat>,
    owners: Vec<Owner>,
    path: Vec<u8>,
    buffer: Vec<u8>,
    opened_count: u64,
}

/// Whose a process is, by the number of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Unknown,
    Nobody,
    Of(usize),
}

/// The pids that attempts are known by.
#[derive(Default)]
struct Known {
    /// first processes, and supervisors with `true`
    pids: BTreeMap<u32, (usize, bool)>,
    /// POSIX sessions
    sessions: BTreeMap<u32, usize>,
}

impl Sampler {
    /// Opens `/proc`.
    ///
    /// # Errors
    /// When it is not there.
    pub fn new() -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc", flags, Mode::empty())?;
        let buffer = vec![0; FILE_MAX];
        Ok(Self { proc, rows: Vec::new(), owners: Vec::new(), path: Vec::new(), buffer, opened_count: 0 })
    }

    /// Samples all attempts in one pass; the answers are in the order of the questions. What is of another host, boot or pid
    /// namespace, or has ended, has nothing.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub fn sample(&mut self, attempts: &[Roots<'_>]) -> io::Result<Vec<Activity>> {
        self.list()?;
        let known = self.known(attempts);
        let mut found = vec![Activity::default(); attempts.len()];
        self.owners.clear();
        self.owners.resize(self.rows.len(), Owner::Unknown);
        for index in 0..self.rows.len() {
            let stat = self.rows[index];
            let supervises = known.pids.get(&stat.pid).is_some_and(|(_, supervises)| *supervises);
            if let Owner::Of(attempt) = self.owner(index, &known)
                && !supervises
                && !stat.has_ended()
            {
                self.add(&stat, &mut found[attempt]);
                if known.pids.contains_key(&stat.pid) {
                    found[attempt].first = Some(self.doing(&stat));
                }
            }
        }
        Ok(found)
    }

    /// How many files were opened so far.
    pub fn opened_count(&self) -> u64 {
        self.opened_count
    }

    fn list(&mut self) -> io::Result<()> {
        self.rows.clear();
        for pid in proc::pids()? {
            if let Some(stat) = self.read(pid, "stat").and_then(|length| proc::parse_stat(&self.buffer[..length])) {
                self.rows.push(stat);
            }
        }
        self.rows.sort_unstable_by_key(|stat| stat.pid);
        Ok(())
    }

    fn known(&self, attempts: &[Roots<'_>]) -> Known {
        let mut known = Known::default();
        for (attempt, roots) in attempts.iter().enumerate() {
            let is_it = |of: &Identity| self.row(of.pid).is_some_and(|stat| stat.start_time == of.start_time);
            let process = roots.process;
            if !identity::is_here(process) {
                continue;
            }
            if is_it(process) {
                known.pids.insert(process.pid, (attempt, false));
            }
            // Another process of that pid has a session of its own, or none.
            if is_it(process) || self.row(process.pid).is_none() {
                known.sessions.insert(process.pid, attempt);
            }
            if let Some(supervisor) = roots.supervisor.filter(|supervisor| is_it(supervisor)) {
                known.pids.insert(supervisor.pid, (attempt, true));
            }
        }
        known
    }

    fn row(&self, pid: u32) -> Option<&Stat> {
        self.rows.binary_search_by_key(&pid, |stat| stat.pid).ok().map(|index| &self.rows[index])
    }

    /// Climbs to the nearest ancestor that is known, and remembers the answer for all on the way.
    fn owner(&mut self, index: usize, known: &Known) -> Owner {
        let mut way = vec![index];
        let owner = loop {
            let at = way[way.len() - 1];
            if self.owners[at] != Owner::Unknown {
                break self.owners[at];
            }
            let stat = &self.rows[at];
            if let Some((attempt, _)) = known.pids.get(&stat.pid) {
                break Owner::Of(*attempt);
            }
            if let Some(attempt) = known.sessions.get(&stat.session) {
                break Owner::Of(*attempt);
            }
            match self.rows.binary_search_by_key(&stat.parent, |row| row.pid) {
                // A pass is no snapshot: parents that were read at different times can form a ring.
                Ok(parent) if !way.contains(&parent) => way.push(parent),
                Ok(_) | Err(_) => break Owner::Nobody,
            }
        };
        for at in way {
            self.owners[at] = owner;
        }
        owner
    }

    fn add(&mut self, stat: &Stat, to: &mut Activity) {
        to.processes_count += 1;
        to.cpu = to.cpu.saturating_add(TICK.saturating_mul(u32::try_from(stat.ticks).unwrap_or(u32::MAX)));
        match self.text(stat.pid, "io") {
            Some(text) => {
                let add =
                    |sum: &mut u64, name: &str| *sum = sum.saturating_add(proc::number_behind(text, name).unwrap_or(0));
                add(&mut to.read_chars, "rchar:");
                add(&mut to.written_chars, "wchar:");
                add(&mut to.read_bytes, "read_bytes:");
                add(&mut to.written_bytes, "write_bytes:");
            }
            None => to.unreadable_count += 1,
        }
        let text = self.text(stat.pid, "schedstat");
        let slices = text.and_then(|text| text.split_ascii_whitespace().nth(2)?.parse().ok());
        to.switches_count = to.switches_count.saturating_add(slices.unwrap_or(0_u64));
    }

    fn doing(&mut self, stat: &Stat) -> Doing {
        // A 0 stands for nothing, and for what this user may not know.
        let wchan = self.text(stat.pid, "wchan").filter(|name| !name.is_empty() && *name != "0").map(str::to_owned);
        let syscall =
            self.text(stat.pid, "syscall").and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
        Doing { state: stat.state, wchan, syscall }
    }

    fn text(&mut self, pid: u32, file: &str) -> Option<&str> {
        let length = self.read(pid, file)?;
        std::str::from_utf8(&self.buffer[..length]).ok()
    }

    /// Reads a file of a process into the buffer. `None`: it is gone or not to be read.
    fn read(&mut self, pid: u32, file: &str) -> Option<usize> {
        self.path.clear();
        // Writing to memory does not fail.
        let _ = write!(self.path, "{pid}/{file}");
        self.opened_count += 1;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.proc, self.path.as_slice(), flags, Mode::empty()).ok()?;
        // One read gives a file of `/proc` whole, if it fits.
        rustix::io::retry_on_intr(|| rustix::io::read(&fd, &mut self.buffer[..])).ok()
    }
}
