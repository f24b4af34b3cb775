//! What deserves a second look: folders that changed without a word or could not be read, and endings whose recorder may
//! have died before it entered them into the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use latido_driver::{FoundJob, FoundState};
use latido_protocol::SubjectName;
use latido_protocol::layout::{JobDir, StateDir};

use crate::jobs::ledger::{self, LedgerKey};
use crate::jobs::recover;

/// When a job's folder and its attempts' folder changed last: a wish and an attempt each change one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<SystemTime>, Option<SystemTime>);

impl Stamp {
    /// Taken before the look, so that a change during the look shows next time.
    pub(crate) fn of(folder: &JobDir) -> Self {
        let changed_at = |path: &std::path::Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
        Self(changed_at(folder.path()), changed_at(&folder.attempts()))
    }
}

/// What is remembered of the looks so far.
#[derive(Default)]
pub(crate) struct SecondLooks {
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    stamps: BTreeMap<SubjectName, Stamp>,
    ended: BTreeSet<LedgerKey>,
}

impl SecondLooks {
    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look at the job found this.
    pub(crate) fn found(&self, stamp: Stamp, found: &FoundJob) {
        let mut remembered = self.remembered();
        let job = &found.job.name;
        remembered.stamps.insert(job.clone(), stamp);
        if let Some(attempt) = found.attempt.as_ref().filter(|attempt| matches!(attempt.state, FoundState::Ended(_))) {
            remembered.ended.insert(LedgerKey::of(&attempt.start));
        }
    }

    /// An attempt has its ending.
    pub(crate) fn ended(&self, attempt: LedgerKey) {
        self.remembered().ended.insert(attempt);
    }

    /// The job's folder is gone.
    pub(crate) fn removed(&self, job: &SubjectName) {
        self.remembered().stamps.remove(job);
    }

    /// Those among the folders that are to be looked at again. It reads two entries of the disk for each.
    pub(crate) fn due(&self, state: &StateDir, listed: &BTreeSet<SubjectName>) -> Vec<SubjectName> {
        let remembered = self.remembered();
        let is_due =
            |job: &&SubjectName| remembered.stamps.get(*job).is_none_or(|stamp| *stamp != Stamp::of(&state.job(job)));
        listed.iter().filter(is_due).cloned().collect()
    }

    /// Enters into the ledger what should be there and is not. What cannot be entered is tried again.
    pub(crate) fn enter_in_ledger(&self, state: &StateDir, by: &str) {
        let ended = std::mem::take(&mut self.remembered().ended);
        if ended.is_empty() {
            return;
        }
        let missing = ledger::missing(state, &ended).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the ledger");
            ended
        });
        for attempt in missing {
            // A job that is gone has nothing left to be entered from.
            if !state.job(&attempt.job).path().is_dir() {
                continue;
            }
            let settled = recover::record_lost(state, &attempt.job, attempt.attempt, by, crate::clock::wall());
            if let Err(error) = settled {
                tracing::warn!(error = latido_protocol::chain(&error), "an ending is not in the ledger yet");
                self.ended(attempt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_due_until_it_was_looked_at_and_after_a_change_of_its_wish_or_its_attempts() {
        let root = tempfile::tempdir().unwrap();
        let state = StateDir::new(root.path());
        let job: SubjectName = "a".parse().unwrap();
        let folder = state.job(&job);
        std::fs::create_dir_all(folder.attempts()).unwrap();
        let looks = SecondLooks::default();
        let listed = BTreeSet::from([job.clone()]);
        let see = || looks.remembered().stamps.insert(job.clone(), Stamp::of(&folder));
        let all = std::slice::from_ref(&job);
        assert_eq!(looks.due(&state, &listed), all, "never looked at");
        see();
        assert_eq!(looks.due(&state, &listed), []);
        let earlier = SystemTime::UNIX_EPOCH;
        for changed in [folder.path().to_owned(), folder.attempts()] {
            see();
            std::fs::File::open(changed).unwrap().set_modified(earlier).unwrap();
            assert_eq!(looks.due(&state, &listed), all);
        }
        see();
        looks.removed(&job);
        assert_eq!(looks.due(&state, &listed), all, "made anew it was never looked at");
    }
}
