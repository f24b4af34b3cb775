//! What sources and the config tell the driver of what is only watched.

use std::time::Duration;

use latido_policy::{Absence, Exit, Naming, Signal};
use latido_protocol::files::Identity;
use latido_protocol::{Span, SubjectName, WallTime};
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use crate::{seconds, words};

/// Something a source has learned of what is only watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchFact {
    /// The config defines a check.
    CheckDefined(Box<CheckDefinition>),
    /// The config defines a process to watch.
    ProcessDefined(ProcessDefinition),
    /// A check signalled.
    Signaled(Signaled),
    /// Somebody looked at a process.
    Looked {
        /// which
        process: SubjectName,
        /// what was found
        look: Look,
    },
    /// It is not to be judged until an end.
    PauseWanted {
        /// which
        subject: SubjectName,
        /// when it ends; `None` is until it is told otherwise
        until: Option<WallTime>,
    },
    /// It is to be judged again.
    UnpauseWanted {
        /// which
        subject: SubjectName,
    },
}

/// What a check signalled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signaled {
    /// which
    pub check: SubjectName,
    /// what
    #[serde(with = "words::Signal")]
    pub signal: Signal,
    /// the id of the run it is about
    pub run_id: Option<String>,
    /// the work's own word
    pub state: Option<String>,
    /// it came while no agent ran
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// How a signal was kept until an agent ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// names it among all that were ever kept
    pub id: String,
    /// when it came
    pub at: WallTime,
}

/// A check as the config defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckDefinition {
    /// its name
    pub name: SubjectName,
    /// when it is expected
    pub timing: Timing,
    /// how much later than expected a sign of it may come
    #[serde(rename = "grace_s", with = "seconds")]
    pub grace: Duration,
    /// longest time of one run; `None` is no limit
    #[serde(rename = "run_for_s", with = "seconds::optional")]
    pub run_for: Option<Duration>,
}

/// When a check is expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// So long after its last sign, in listening time.
    #[serde(rename = "every_s", with = "seconds")]
    Every(Duration),
    /// At these moments of the calendar.
    Calendar(Schedule),
}

impl Timing {
    /// In one line, which tells this definition from another.
    pub fn definition(&self) -> String {
        match self {
            Self::Every(length) => format!("every {}", Span(*length)),
            Self::Calendar(schedule) => schedule.definition(),
        }
    }
}

/// A process as the config defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDefinition {
    /// its name
    pub name: SubjectName,
    /// what names the process, in one line, which tells this definition from another
    pub definition: String,
    /// time for it to be seen the first time
    #[serde(rename = "start_within_s", with = "seconds")]
    pub start_within: Duration,
}

/// What a look at a process found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// One that lives.
    Seen {
        /// who
        identity: Identity,
        /// how long it has run
        #[serde(rename = "age_s", with = "seconds")]
        age: Duration,
        /// what names it
        #[serde(with = "words::Naming")]
        naming: Naming,
    },
    /// None.
    Absent(#[serde(with = "words::Absence")] Absence),
    /// One that was seen before has ended.
    Ended {
        /// who
        identity: Identity,
        /// how, where the system tells
        #[serde(with = "words::exit")]
        exit: Option<Exit>,
    },
    /// Nothing: the look failed.
    Failed {
        /// why
        detail: String,
    },
}
