//! What a supervisor has trouble with.

use serde::{Deserialize, Serialize};

use crate::files::Status;
use crate::{FORMAT_VERSION, Outcome};

/// What a supervisor has trouble with while it does its other work. Nothing of it is a beat, and none of it ends a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trouble {
    /// writes of `status.json` that failed in this attempt
    pub unwritten: u64,
    /// why the last one failed; `null` once one has succeeded
    pub unwritten_because: Option<String>,
    /// datagrams of other users, from outside the attempt, that were passed over
    pub strangers: u64,
    /// the job has ended, and the ending is not on the disk yet
    pub unrecorded: Option<Unrecorded>,
}

/// An ending that could not be recorded yet. It is tried again until the disk takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unrecorded {
    /// how the job ended
    pub outcome: Outcome,
    /// why that is not on the disk, in words
    pub because: String,
}

impl Trouble {
    /// Answers whether there is and was none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// What somebody has to look at, in words; `None` where that is nothing. Strangers were turned away, which is no trouble
    /// of the attempt's own.
    pub fn words(&self) -> Option<String> {
        let unrecorded = self.unrecorded.as_ref().map(Unrecorded::to_string);
        let unwritten = self.unwritten_because.as_ref().map(|because| {
            format!("its supervisor cannot write status.json ({} times so far): {because}", self.unwritten)
        });
        let words: Vec<String> = [unrecorded, unwritten].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

impl Status {
    /// What somebody has to look at, in words: what SIGKILL has not ended, and what its supervisor has trouble with.
    pub fn trouble_words(&self) -> Option<String> {
        let words: Vec<String> = self.unkilled().into_iter().chain(self.trouble.words()).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Why nothing can be told of the work by this, although its supervisor speaks, in words: a later latido says it, and what
    /// it means is not known; or the work has ended, and that is not recorded yet.
    pub fn doubt(&self) -> Option<String> {
        let Self { version, .. } = self;
        let is_later = *version > FORMAT_VERSION;
        let later =
            || format!("its supervisor speaks version {version}, and this latido knows {FORMAT_VERSION} at most");
        is_later.then(later).or_else(|| self.trouble.unrecorded.as_ref().map(ToString::to_string))
    }

    /// What SIGKILL has not ended, in words: the stop is not over, and no other attempt may begin.
    pub fn unkilled(&self) -> Option<String> {
        let pids: Vec<String> = self.survivors.iter().map(|process| process.pid.to_string()).collect();
        (!pids.is_empty()).then(|| format!("kill not confirmed: SIGKILL has not ended pid {}", pids.join(", ")))
    }
}

impl std::fmt::Display for Unrecorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it has ended ({}), and that is not recorded yet: {}", self.outcome.detail, self.because)
    }
}
