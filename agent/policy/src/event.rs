//! All the agent can be told.

use core::time::Duration;

use crate::{
    AlertEvent, Attempt, BlackoutSettings, Budget, CheckEvent, Class, Fingerprint, History, JobSettings, Limit, Moment,
    Pacing, Phase, ProcessEvent, ProcessId, RegistryEvent, SlotId, Spent, StopReason, SubjectId, Verdict, Want,
};

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "the policy allocates nothing for an event, and few are in flight")]
pub enum Event {
    /// A job is known from now on: just made, or found when the agent started.
    JobAdded {
        /// which
        subject: SubjectId,
        /// what was decided for it
        settings: JobSettings,
        /// what its files and processes say
        found: Found,
    },
    /// The job's folder is gone.
    JobRemoved {
        /// which
        subject: SubjectId,
    },
    /// Somebody wants something else of it.
    WantChanged {
        /// which
        subject: SubjectId,
        /// what
        want: Want,
    },
    /// An attempt began that this agent did not order, and it may have missed others before; that attempt is told next.
    AttemptsMissed {
        /// which
        subject: SubjectId,
        /// what was missed
        missed: Missed,
    },
    /// A person asked for this attempt, as its record says, whoever launched it: the limits begin anew with it. Its start, or
    /// its ending, is told next.
    SeriesBegan {
        /// which
        subject: SubjectId,
        /// the first attempt of the series
        attempt: Attempt,
    },
    /// A person gave it another budget. What is used up already counts against it.
    BudgetChanged {
        /// which
        subject: SubjectId,
        /// the budget from here on
        budget: Budget,
    },
    /// An attempt runs: launched by this agent, or by the command line.
    AttemptStarted {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// its supervisor
        supervisor: ProcessId,
        /// the job's first process
        process: Option<ProcessId>,
    },
    /// A look found an attempt under its live supervisor, whatever was believed of it.
    AttemptSeen {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// its supervisor
        supervisor: ProcessId,
    },
    /// A look found that an attempt is being started: by somebody else, or by a launch that was given up and goes on.
    LaunchSeen {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
    },
    /// A launch that was ordered did not take place, as far as is known.
    LaunchRefused {
        /// which
        subject: SubjectId,
        /// the attempt that was ordered
        attempt: Attempt,
        /// why
        failure: LaunchFailure,
    },
    /// Its supervisor told its latest.
    Heard {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// what it told
        heard: Heard,
    },
    /// Its processes were looked at from outside, beside what its supervisor tells: what they use up, and nothing of how
    /// the work gets on.
    ActivitySeen {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// since their CPU time or I/O last grew, as the looks before it show
        idle: Duration,
    },
    /// Its supervisor's process is gone and left no ending.
    SupervisorGone {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// the job's own processes
        process: Life,
    },
    /// Its ending is recorded.
    AttemptEnded {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// how
        ending: Ending,
    },
    /// The processes of an orphan were told to end, and what is left was counted.
    OrphanEnded {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// processes that could not be ended
        survivors: u32,
    },
    /// The strategy answered, or could not.
    StrategyAnswered {
        /// which
        subject: SubjectId,
        /// the attempt it was asked about
        attempt: Attempt,
        /// what it proposes
        proposal: Proposal,
    },
    /// A look at its processes failed; nothing is known.
    LookFailed {
        /// which
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
    },
    /// Something about a check.
    Check(CheckEvent),
    /// Something about a watched process.
    Process(ProcessEvent),
    /// The agent could not hear for this long; `now` has already been cut by it.
    GapFound {
        /// how long, on the clock that counts everything
        length: Duration,
    },
    /// Something about workers, groups or targets.
    Registry(RegistryEvent),
    /// The store did not take what was recorded: until it does, the agent's own word is worth nothing after a crash.
    StoreFailed,
    /// The store took what was recorded.
    StoreRecovered,
    /// The agent's own settings are known from now on.
    Configured {
        /// how fast attempts are started that nobody ordered by hand
        pacing: Pacing,
        /// when the agent doubts itself
        blackout: BlackoutSettings,
    },
    /// The limit of a slot is known from now on; a slot that nobody told of has none.
    SlotConfigured {
        /// which
        slot: SlotId,
        /// so many run at once
        running_max: Limit<u32>,
    },
    /// The agent before this one let no silence from before this moment count, for reasons of its own.
    BaselineRemembered {
        /// where that lies on the time line
        moment: Moment,
    },
    /// The agent has started, and has not looked at every job: who holds which slot is not known, and nobody is judged by
    /// silence.
    RecoveryBegan,
    /// Every job there is was told of.
    RecoveryEnded,
    /// Something happened to alerts.
    Alert(AlertEvent),
}

/// Attempts of which an agent was not told, before the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// the latest
    pub attempt: Attempt,
    /// what the endings before it tell
    pub history: History,
    /// how many of those were lost
    pub pickups: u32,
    /// a person asked for one of those that were missed, whatever was wanted before
    pub by_hand: bool,
}

/// What a job's files and processes said when it was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// what is wanted
    pub want: Want,
    /// the highest epoch ever given
    pub epoch: crate::Epoch,
    /// endings of class `lost` so far
    pub pickups: u32,
    /// the endings before its latest attempt, as far as its files still tell of them
    pub history: History,
    /// its latest attempt
    pub attempt: Option<FoundAttempt>,
    /// how long ago that ended, where it did: so much of its backoff is over
    pub ended_ago: Duration,
    /// how long ago its last pause ended, as far as that is known: no silence from before that counts
    pub unpaused_ago: Option<Duration>,
    /// what the store holds of it, so that a restart records nothing twice; `None` where it holds nothing
    pub recorded: Option<Recorded>,
    /// the strategy said of its latest ending that it will never work, and nobody has asked for more since
    pub is_given_up: bool,
}

/// What was last recorded of a job by `RecordVerdict` and `RecordPhase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// its verdict
    pub verdict: Verdict,
    /// its phase
    pub phase: Phase,
}

/// The latest attempt as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundAttempt {
    /// which
    pub attempt: Attempt,
    /// how it was found
    pub state: FoundState,
}

/// How an attempt was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundState {
    /// Its supervisor lives.
    Running {
        /// its supervisor
        supervisor: ProcessId,
        /// the job's first process
        process: Option<ProcessId>,
        /// what its files or its supervisor say
        heard: Heard,
    },
    /// Its supervisor is gone and there is no ending.
    Unattended {
        /// the job's own processes
        process: Life,
    },
    /// Its ending is recorded.
    Ended(Ending),
    /// Its starter lives and has not finished: the launch belongs to somebody else.
    Launching,
}

/// What a supervisor tells of its attempt. Durations are listening time as the supervisor measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// own beats so far
    pub sequence: u64,
    /// since the last own beat, or since the start where there was none
    pub silence: Duration,
    /// since the progress last changed, or since the start
    pub still: Duration,
    /// since the start
    pub running: Duration,
    /// stands for step, counts, fraction and checkpoint together
    pub progress: Option<Fingerprint>,
    /// stands for the checkpoint
    pub checkpoint: Option<Fingerprint>,
    /// it says itself that it fails
    pub failing: bool,
    /// it says itself that it is broken (`WATCHDOG=trigger`)
    pub broken: bool,
    /// it says itself that it waits for a person
    pub needs_person: bool,
    /// a stop has begun
    pub stopping: bool,
    /// why it says that it may be silent
    pub excuse: Option<Excuse>,
    /// since its output, CPU time or I/O last grew, over all its processes; `None` where nobody measures it
    pub idle: Option<Duration>,
    /// there was output
    pub has_output: bool,
    /// what it used up so far
    pub spent: Spent,
}

/// "Quiet until then": silence and standstill that a job announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excuse {
    /// since it was said; a renewal continues the same excuse
    pub since: Duration,
    /// how long it is to last, from its first word on
    pub length: Duration,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// what it means
    pub class: Class,
    /// stands for outcome and code, so that identical deaths are seen
    pub outcome: Fingerprint,
    /// stands for the last checkpoint
    pub checkpoint: Option<Fingerprint>,
    /// it never ran
    pub launch_failed: bool,
    /// how long it ran, in listening time of its supervisor; where that did not see it end, until its last word
    pub ran_for: Duration,
    /// its supervisor saw it end: how it died is known, and how long it ran is exact
    pub is_seen: bool,
    /// why latido ended it, where it did: what was decided outlives the agent that decided it
    pub order: Option<StopReason>,
    /// what it used up
    pub spent: Spent,
}

/// What a look at a process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It lives: this one, or another of the same attempt.
    Alive,
    /// Proven gone, with all of its attempt.
    Gone,
    /// Cannot be told: another host or namespace, or the look failed.
    Unknown,
}

/// What a strategy proposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// Start the next attempt (the driver keeps the command).
    Launch,
    /// Ask again after this long.
    Wait(Duration),
    /// A person is needed.
    Hold,
    /// It will never work.
    GiveUp,
    /// The strategy could not answer: trap, deadline, refused, not there.
    Failed,
}

/// Why a launch did not take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFailure {
    /// Somebody else holds the job's lock: another starter won, or a process of an old attempt lives.
    Locked,
    /// The attempt was started by somebody else with a higher epoch.
    Superseded,
    /// What is wanted has changed meanwhile.
    NotWanted,
    /// The disk or the supervisor's program failed, or it said nothing in time: trying again may help, and it may go on.
    Failed,
    /// The job's files cannot be read.
    Unreadable,
}
