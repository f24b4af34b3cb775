//! Workers, groups and claims: what is asked of the registry, and what it answers.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::attempt::Advice;
use crate::status::Verdict;
use crate::{Line, LineError, Span, SubjectName, WallTime};

/// What is claimed, such as a repository and a pull request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetName(Line);

impl TargetName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for TargetName {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, LineError> {
        text.parse().map(Self)
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is asked of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Question {
    /// A life of the group's executor begins; whoever asks holds the group's lock.
    OpenGroup {
        /// which
        group: SubjectName,
    },
    /// A worker says that it is there.
    Register(Registration),
    /// A worker beats.
    Beat(WorkerBeat),
    /// A worker asks for a target.
    Claim {
        /// what
        target: TargetName,
        /// what it is claimed for
        event: Line,
        /// who asks
        worker: SubjectName,
        /// its registration's epoch; `None` trusts the name
        #[serde(default)]
        epoch: Option<u64>,
    },
    /// Which worker of the group takes the target?
    Assign {
        /// what
        target: TargetName,
        /// whose workers
        group: SubjectName,
    },
    /// The holder gives the target back.
    Release {
        /// what
        target: TargetName,
        /// its claim's epoch
        epoch: u64,
    },
    /// A target that has no holder is to be given out again, with no pickups: a person has looked into it.
    Revive {
        /// what
        target: TargetName,
    },
    /// The worker is to take nothing more, and to end when it has finished.
    Drain {
        /// which
        worker: SubjectName,
    },
    /// The worker is to end at once.
    Stop {
        /// which
        worker: SubjectName,
    },
    /// The worker ends.
    Leave {
        /// which
        worker: SubjectName,
        /// its registration's epoch; `None` trusts the name
        #[serde(default)]
        epoch: Option<u64>,
    },
}

/// A worker's registration. What it does not say of its lease is the group's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// its name; one that is known is taken over from the process that had it
    pub worker: SubjectName,
    /// its group
    pub group: SubjectName,
    /// the instance that started it; `None` is the group's own
    #[serde(default)]
    pub instance: Option<u64>,
    /// how often it beats
    #[serde(default)]
    pub interval_s: Option<Span>,
    /// silence after which it is dead
    #[serde(default)]
    pub ttl_s: Option<Span>,
    /// intervals without a beat after which it is dead, where no ttl is given
    #[serde(default)]
    pub missed: Option<NonZeroU32>,
    /// time for its first beat
    #[serde(default)]
    pub start_within_s: Option<Span>,
    /// the host it is on
    #[serde(default)]
    pub host: Option<String>,
    /// its pid there
    #[serde(default)]
    pub pid: Option<u32>,
}

/// A beat of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerBeat {
    /// who
    pub worker: SubjectName,
    /// its registration's epoch; `None` trusts the name
    #[serde(default)]
    pub epoch: Option<u64>,
    /// the beat's number since the registration, where the worker counts
    #[serde(default)]
    pub sequence: Option<u64>,
    /// its loop state
    #[serde(default)]
    pub state: Option<Line>,
    /// what it works on
    #[serde(default)]
    pub active_job: Option<Line>,
    /// errors it has counted
    #[serde(default)]
    pub errors: u64,
}

/// What the registry answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The group is open.
    Opened {
        /// the life that begins
        instance: u64,
    },
    /// The worker is registered.
    Registered {
        /// the registration's fencing number
        epoch: u64,
        /// its instance
        instance: u64,
    },
    /// What the worker is told with its beat.
    Advised {
        /// in one word
        advice: Advice,
    },
    /// The target is this worker's.
    Claimed {
        /// who holds it
        holder: SubjectName,
        /// the claim's fencing number
        epoch: u64,
    },
    /// Somebody holds the target already.
    AlreadyClaimed {
        /// who
        holder: SubjectName,
        /// the claim's fencing number
        epoch: u64,
    },
    /// There is no room for one more claim.
    CapacityRejected {
        /// which limit, in words
        because: String,
    },
    /// It is done.
    Done,
    /// A true no: nobody holds the target.
    NotClaimed,
    /// No worker of that name is registered.
    UnknownWorker,
    /// It is refused.
    Refused {
        /// why, in words
        because: String,
    },
}

/// A worker as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// its name
    pub name: SubjectName,
    /// its group
    pub group: SubjectName,
    /// the life of the executor that it belongs to
    pub instance: u64,
    /// its registration's fencing number
    pub epoch: u64,
    /// where it stands
    pub status: WorkerStanding,
    /// the judgement
    pub verdict: Verdict,
    /// why, in words
    pub reason: String,
    /// the host it says it is on
    pub host: Option<String>,
    /// its pid there
    pub pid: Option<u32>,
    /// when it registered
    pub registered: WallTime,
    /// when it last beat
    pub last_beat: Option<WallTime>,
    /// listening time since then, or since it registered
    pub silence_s: Span,
    /// its own word for its state
    pub state: Option<String>,
    /// what it works on
    pub active_job: Option<String>,
    /// errors it has counted
    pub errors: u64,
    /// targets it holds
    pub targets: Vec<TargetName>,
    /// how long until it is judged again, if it stays silent
    pub next_s: Option<Span>,
}

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerStanding {
    /// It may claim.
    Active,
    /// It takes nothing more.
    Draining,
    /// It is over.
    Dead,
}

impl fmt::Display for WorkerStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Dead => "dead",
        })
    }
}

/// A target as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetStatus {
    /// its name
    pub target: TargetName,
    /// who holds it; `None` after its holder was lost
    pub holder: Option<SubjectName>,
    /// the claim's fencing number; without a holder the one that was fenced off
    pub epoch: u64,
    /// what it was claimed for
    pub event: Option<String>,
    /// holders that it lost
    pub pickups: u32,
}

/// All workers and targets at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegistryStatus {
    /// by name
    pub workers: Vec<WorkerStatus>,
    /// by name
    pub targets: Vec<TargetStatus>,
}
