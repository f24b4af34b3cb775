//! What a check can be told, what it remembers and what it gives out.

use core::fmt;
use core::time::Duration;

use crate::words::Span;
use crate::{Fingerprint, Moment, PauseFound, Recorded, Runs, SubjectId};

/// What was decided for a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckSettings {
    /// when it is expected
    pub schedule: CheckSchedule,
    /// how much later than expected a sign of it may come
    pub grace: Duration,
    /// longest time of one run; `None` is no limit
    pub run_for: Option<Duration>,
}

/// When a check is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckSchedule {
    /// This much listening time after its last sign.
    Every(Duration),
    /// At moments of the calendar, which are handed in one by one.
    Calendar,
}

/// Something that has happened to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "the policy allocates nothing for an event, and few are in flight")]
pub enum CheckEvent {
    /// A check is known from this moment on; known again, its settings replace those it had.
    Added {
        /// which
        subject: SubjectId,
        /// what was decided for it
        settings: CheckSettings,
        /// what is remembered of it
        found: CheckFound,
    },
    /// It is watched no longer.
    Removed {
        /// which
        subject: SubjectId,
    },
    /// It signalled.
    Signaled {
        /// which
        subject: SubjectId,
        /// what
        signal: Signal,
        /// stands for the id of the run it is about, where it has one
        run: Option<Fingerprint>,
    },
    /// The calendar's next moment for it, or the same one again at another place of the time line: the calendar was set, or
    /// time was cut out. A moment that lies in what was cut out is handed in as `now`.
    Expected {
        /// which
        subject: SubjectId,
        /// when
        expectation: Expectation,
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

/// What a check says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// A run began.
    Started,
    /// A run succeeded.
    Succeeded,
    /// A run failed.
    Failed,
    /// A run ended with this exit status; 0 is success.
    Exited(u8),
    /// Something to write down, which says nothing about its life.
    Logged,
}

/// One moment at which a check is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// names the moment on the calendar; 0 for one that lies on the time line alone
    pub mark: u64,
    /// where it lies on the time line
    pub moment: Moment,
    /// how far the moments lie apart
    pub spacing: Duration,
    /// it lies in time that was cut out, so nobody could have heard a sign at that moment
    pub in_gap: bool,
}

/// A check as it was found: just defined, or remembered from before the agent's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckFound {
    /// what is remembered of this very definition; `None` for a fresh one, which inherits nothing from an older one
    pub memory: Option<CheckMemory>,
    /// its pause, where it has one
    pub pause: Option<PauseFound>,
    /// what the store holds of it, so that a restart records nothing twice
    pub recorded: Option<Recorded>,
}

/// What a check has to remember over a restart of the agent. Its moments lie on the time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckMemory {
    /// what was told of its runs last
    pub last: LastRun,
    /// its last sign of life; `None` before the first
    pub sign_at: Option<Moment>,
    /// its open runs
    pub runs: Runs,
    /// what is expected next; `None` after it came due and until the next one is handed in
    pub next: Option<Expectation>,
    /// a sign that came early has met `next` already
    pub is_next_met: bool,
    /// names the moment of the calendar that came due last, so that it comes due once
    pub due_mark: Option<u64>,
    /// the first expectation that came due without a sign
    pub owed: Option<Expectation>,
}

/// What was told of a check's runs last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastRun {
    /// Nothing was ever told.
    Unheard,
    /// Runs began, and none has ended.
    Begun,
    /// The one that ended last succeeded.
    Succeeded {
        /// when that was told
        at: Moment,
    },
    /// The one that ended last failed.
    Failed {
        /// when that was told
        at: Moment,
        /// its exit status, where it was told
        status: Option<u8>,
    },
    /// One began, never told its end, and was succeeded by others.
    Unended {
        /// when it began
        began: Moment,
    },
}

/// What is to be done about a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckAction {
    /// Write into the journal that a run began and never told its end.
    RecordUnended {
        /// whose
        subject: SubjectId,
        /// stands for its id
        run: Option<Fingerprint>,
        /// how long it was open
        open_for: Duration,
    },
}

/// Why a check has its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckReason {
    /// nothing was ever told of it, and that is not overdue
    FirstAwaited {
        /// how long until it is expected; `None` while that is not known
        due_in: Option<Duration>,
    },
    /// nothing was ever told of it, it was expected, and its grace runs
    FirstOverdue {
        /// since it was expected
        overdue: Duration,
        /// its grace
        grace: Duration,
        /// it was expected while nobody listened
        in_gap: bool,
    },
    /// nothing was ever told of it, and its grace is over
    NeverSignaled {
        /// since it was expected
        overdue: Duration,
        /// its grace
        grace: Duration,
        /// it was expected while nobody listened
        in_gap: bool,
    },
    /// a run is under way, and none has ended yet
    RunUnderWay {
        /// since it began
        running: Duration,
    },
    /// it succeeded, and nothing is overdue
    InTime {
        /// since the success was told
        ago: Duration,
    },
    /// it was expected, and its grace runs
    Overdue {
        /// since it was expected
        overdue: Duration,
        /// its grace
        grace: Duration,
        /// it was expected while nobody listened
        in_gap: bool,
    },
    /// it was expected, and its grace is over
    NotSignaled {
        /// since it was expected
        overdue: Duration,
        /// its grace
        grace: Duration,
        /// it was expected while nobody listened
        in_gap: bool,
    },
    /// it says itself that it failed
    SaysFailed {
        /// its exit status, where it was told
        status: Option<u8>,
        /// since that was told
        ago: Duration,
    },
    /// it said that it failed, and then nothing by the end of its grace
    FailedAndOverdue {
        /// its exit status, where it was told
        status: Option<u8>,
        /// since it was expected
        overdue: Duration,
        /// its grace
        grace: Duration,
    },
    /// a run is longer than it may be
    RunTooLong {
        /// since it began
        running: Duration,
        /// longest time of one run
        run_for: Duration,
    },
    /// a run began, never told its end, and another took its place
    RunUnended {
        /// since it began
        ago: Duration,
    },
}

impl fmt::Display for CheckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FirstAwaited { due_in: Some(due_in) } => {
                write!(f, "no signal yet, and the first is expected in {}", Span(due_in))
            }
            Self::FirstAwaited { due_in: None } => f.write_str("no signal yet, and none is expected yet"),
            Self::FirstOverdue { overdue, grace, in_gap } => {
                let late = Late { overdue, in_gap };
                write!(f, "no signal yet; the first was expected {late}, and its grace is {}", Span(grace))
            }
            Self::NeverSignaled { overdue, grace, in_gap } => {
                let late = Late { overdue, in_gap };
                write!(f, "no signal ever; the first was expected {late}, and its grace of {} is over", Span(grace))
            }
            Self::RunUnderWay { running } => write!(f, "a run began {} ago, and none has ended yet", Span(running)),
            Self::InTime { ago } => write!(f, "it succeeded {} ago, and nothing is overdue", Span(ago)),
            Self::Overdue { overdue, grace, in_gap } => {
                write!(f, "a signal was expected {}, and its grace is {}", Late { overdue, in_gap }, Span(grace))
            }
            Self::NotSignaled { overdue, grace, in_gap } => {
                write!(
                    f,
                    "no signal; it was expected {}, and {} of grace are over",
                    Late { overdue, in_gap },
                    Span(grace)
                )
            }
            Self::SaysFailed { status: Some(status), ago } => {
                write!(f, "it told exit status {status}, {} ago", Span(ago))
            }
            Self::SaysFailed { status: None, ago } => write!(f, "it told {} ago that it failed", Span(ago)),
            Self::FailedAndOverdue { status: _, overdue, grace } => write!(
                f,
                "it told that it failed, and then nothing: a signal was expected {} ago, and {} of grace are over",
                Span(overdue),
                Span(grace)
            ),
            Self::RunTooLong { running, run_for } => {
                write!(f, "a run began {} ago and has not ended, and {} is allowed", Span(running), Span(run_for))
            }
            Self::RunUnended { ago } => {
                write!(f, "a run began {} ago and never told its end, and others began since", Span(ago))
            }
        }
    }
}

/// How long ago something was expected.
struct Late {
    overdue: Duration,
    in_gap: bool,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ago", Span(self.overdue))?;
        if self.in_gap { f.write_str(", counted from when the agent could hear again") } else { Ok(()) }
    }
}
