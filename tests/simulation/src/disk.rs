//! The state directory: jobs' folders, attempts' files, locks, the ledger.

use std::collections::{BTreeMap, BTreeSet};

use latido_protocol::files::{End, JobFile, Start, Status, Wanted};

use crate::host::Process;

/// One job's folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    pub(crate) job: JobFile,
    pub(crate) wanted: Wanted,
    pub(crate) attempts: BTreeMap<u32, Files>,
    /// who has the lock open; it is free when nobody lives of them
    pub(crate) lock: BTreeSet<Process>,
}

/// One attempt's files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    /// the attempt in the world, which its processes carry in their environment
    pub(crate) attempt: usize,
    pub(crate) start: Start,
    pub(crate) status: Option<Status>,
    pub(crate) end: Option<End>,
}

/// What outlives every process.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) folders: BTreeMap<usize, Folder>,
    /// job, attempt, epoch
    pub(crate) ledger: Vec<(usize, u32, u64)>,
    /// who has the agent's lock
    pub(crate) agent_lock: Option<Process>,
}

impl Folder {
    pub(crate) fn epoch(&self) -> u64 {
        let of_attempts = self.attempts.values().map(|files| files.start.epoch).max().unwrap_or(0);
        self.wanted.epoch.max(of_attempts)
    }

    pub(crate) fn latest(&self) -> u32 {
        self.attempts.last_key_value().map_or(0, |(number, _)| *number)
    }
}

impl Disk {
    pub(crate) fn in_ledger(&self, job: usize, number: u32, epoch: u64) -> bool {
        self.ledger.contains(&(job, number, epoch))
    }

    pub(crate) fn highest_epoch_in_ledger(&self, job: usize) -> u64 {
        self.ledger.iter().filter(|line| line.0 == job).map(|line| line.2).max().unwrap_or(0)
    }
}
