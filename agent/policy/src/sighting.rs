//! What looks at a watched process say, and what the policy makes of them.

use core::fmt;
use core::time::Duration;

use crate::words::Span;
use crate::{PauseFound, ProcessId, Recorded, SubjectId};

/// What was decided for a watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// time for it to be seen the first time
    pub start_within: Duration,
}

/// Something that has happened to a watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// It is watched from this moment on; known again, its settings replace those it had.
    Added {
        /// which
        subject: SubjectId,
        /// what was decided for it
        settings: ProcessSettings,
        /// what is remembered of it
        found: ProcessFound,
    },
    /// It is watched no longer.
    Removed {
        /// which
        subject: SubjectId,
    },
    /// A look found a live process.
    Seen {
        /// which
        subject: SubjectId,
        /// what was found
        sighting: Sighting,
    },
    /// A look found none.
    Absent {
        /// which
        subject: SubjectId,
        /// in what way
        absence: Absence,
    },
    /// A process ended that was seen before.
    Ended {
        /// which
        subject: SubjectId,
        /// the process
        process: ProcessId,
        /// how, where the system tells
        exit: Option<Exit>,
    },
    /// A look failed; nothing is known.
    LookFailed {
        /// which
        subject: SubjectId,
    },
    /// It is not to be judged until an end.
    PauseWanted {
        /// which
        subject: SubjectId,
        /// how long; `None` is until it is told otherwise
        length: Option<Duration>,
    },
    /// It is to be judged again.
    UnpauseWanted {
        /// which
        subject: SubjectId,
    },
}

/// A live process that something names as the one that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// the process
    pub process: ProcessId,
    /// how long it has run
    pub age: Duration,
    /// what names it
    pub naming: Naming,
}

/// What names a process as the one that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// A number alone, which names one process for ever.
    Pid,
    /// A file that the process wrote.
    File {
        /// how long ago it was written
        written_ago: Duration,
    },
    /// What it is called; another one called so may take its place.
    Name,
}

/// In what way there was no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// Nothing names one: no file, no process called so.
    Unnamed,
    /// What is named does not exist, or has exited and was not collected.
    NoProcess,
    /// The number was given to another process.
    Reused,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// With this exit status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// A watched process as it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFound {
    /// the process that was seen last, before the agent's start
    pub seen: Option<ProcessId>,
    /// its pause, where it has one
    pub pause: Option<PauseFound>,
    /// what the store holds of it, so that a restart records nothing twice
    pub recorded: Option<Recorded>,
}

/// What is to be done about a watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    /// Write into the journal that another process took the place of the one that was watched.
    RecordReplaced {
        /// whose
        subject: SubjectId,
        /// the process before
        previous: ProcessId,
        /// the process after
        current: ProcessId,
    },
}

/// Why a watched process has its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessReason {
    /// nobody has looked yet
    NotLooked,
    /// none was seen yet, and there is time
    StartAwaited {
        /// since it is watched
        waited: Duration,
        /// time for it to be seen the first time
        start_within: Duration,
    },
    /// none was seen in time
    NeverSeen {
        /// since it is watched
        waited: Duration,
        /// time for it to be seen the first time
        start_within: Duration,
    },
    /// it lives, by its identity
    Lives {
        /// its number
        pid: u32,
    },
    /// it is gone, by its identity
    Gone {
        /// its number
        pid: u32,
        /// in what way
        absence: Absence,
    },
    /// its ending was seen
    Ended {
        /// its number
        pid: u32,
        /// how, where the system tells
        exit: Option<Exit>,
    },
    /// the last look failed
    LookFailed,
}

impl fmt::Display for ProcessReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotLooked => f.write_str("nobody has looked at its process yet"),
            Self::StartAwaited { waited, start_within } => {
                write!(f, "no process seen after {}, and it has {}", Span(waited), Span(start_within))
            }
            Self::NeverSeen { waited, start_within } => {
                write!(f, "no process ever seen in {}, and it had {}", Span(waited), Span(start_within))
            }
            Self::Lives { pid } => write!(f, "process {pid} lives"),
            Self::Gone { pid, absence: Absence::Unnamed } => {
                write!(f, "process {pid} is gone, and nothing names another")
            }
            Self::Gone { pid, absence: Absence::NoProcess } => write!(f, "process {pid} is gone"),
            Self::Gone { pid, absence: Absence::Reused } => {
                write!(f, "process {pid} is gone: its number belongs to a process with another start time")
            }
            Self::Ended { pid, exit: Some(Exit::Status(status)) } => {
                write!(f, "process {pid} ended with exit status {status}")
            }
            Self::Ended { pid, exit: Some(Exit::Signal(signal)) } => {
                write!(f, "process {pid} was ended by signal {signal}")
            }
            Self::Ended { pid, exit: None } => write!(f, "process {pid} ended"),
            Self::LookFailed => f.write_str("a look at its process failed, so nothing is known"),
        }
    }
}
