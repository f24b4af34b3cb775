//! Who has been asked to end, and who is spared because it helps somebody that was.

use std::collections::BTreeMap;

use latido_protocol::files::Identity;
use rustix::process::Signal;

use crate::{proc, tree};

/// The processes of an attempt that had SIGTERM. It is sent to each once: a second one means "at once" to many programs.
///
/// What a process starts after it was told, while it lives, is how it cleans up: it is spared, and has the same grace. What
/// was started before, or outlives who started it, has nobody else who would end it, and is told.
#[derive(Debug)]
pub struct Told {
    /// when each was told, at the earliest, in hundredths of a second since boot
    at: BTreeMap<Key, u64>,
    begun: u64,
}

/// The pid, and the start time that tells it from an earlier owner of the number.
type Key = (u32, u64);

impl Told {
    /// Nobody was told yet. Made before the first signal is sent.
    pub fn from_now() -> Self {
        Self { at: BTreeMap::new(), begun: now() }
    }

    /// Takes down who has had the signal in another way since this was made: as members of a group that it was sent to.
    pub fn note<'a>(&mut self, processes: impl IntoIterator<Item = &'a Identity>) {
        self.at.extend(processes.into_iter().map(|process| (key(process), self.begun)));
    }

    /// Sends SIGTERM to those of what lives that did not have it and are not spared. What is stopped is continued, so that it
    /// hears. Returns how many got it.
    pub fn tell(&mut self, living: &[Identity]) -> u32 {
        let new: Vec<_> = living.iter().filter(|it| !self.at.contains_key(&key(it))).collect();
        if new.is_empty() {
            return 0;
        }
        let ancestry = Ancestry::of(living, &new);
        let told: Vec<_> = new.into_iter().filter(|it| !self.is_spared(it, &ancestry)).cloned().collect();
        let now = now();
        self.at.extend(told.iter().map(|process| (key(process), now)));
        let sent = tree::signal(&told, Signal::TERM);
        tree::signal(&told, Signal::CONT);
        sent
    }

    /// Whether one that was told, or somebody whom it has started since, waits for this one.
    fn is_spared(&self, process: &Identity, ancestry: &Ancestry) -> bool {
        let (mut at, mut left) = (key(process), ancestry.parents.len());
        while let Some(parent) = ancestry.parents.get(&at) {
            if let Some(told) = self.at.get(parent) {
                return at.1 >= *told;
            }
            // Parents that change while they are read must not make it endless.
            let Some(fewer) = left.checked_sub(1) else { return false };
            (at, left) = (*parent, fewer);
        }
        false
    }
}

/// Who started whom, among what lives of an attempt.
struct Ancestry {
    parents: BTreeMap<Key, Key>,
}

impl Ancestry {
    fn of(living: &[Identity], asked: &[&Identity]) -> Self {
        let by_pid: BTreeMap<u32, Key> = living.iter().map(|it| (it.pid, key(it))).collect();
        let parent = |it: &&Identity| {
            let stat = proc::stat(it.pid).ok()?.filter(|stat| stat.start_time == it.start_time)?;
            Some((key(it), *by_pid.get(&stat.parent)?))
        };
        Self { parents: asked.iter().filter_map(parent).collect() }
    }
}

/// Where the machine does not tell, nobody that helps is ended.
fn now() -> u64 {
    proc::uptime().unwrap_or(0)
}

fn key(process: &Identity) -> Key {
    (process.pid, process.start_time)
}
