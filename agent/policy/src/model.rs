//! The nouns.

use core::fmt;
use core::time::Duration;

use crate::{Budget, Limit, SlotSet};

/// Names a subject densely; the driver owns the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectId(pub u32);

/// Fencing number: grows with every attempt and claim; receivers refuse older ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// An attempt's number, counted from 1; 0 before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNumber(pub u32);

/// One attempt, named so that no other can be meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// its number
    pub number: AttemptNumber,
    /// its fencing number
    pub epoch: Epoch,
}

/// Stands for a text that the policy compares and never reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

/// A process that cannot be mistaken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// machine and boot
    pub boot: Fingerprint,
    /// pid namespace
    pub namespace: u64,
    /// the pid inside it
    pub pid: u32,
    /// clock ticks since boot at its start
    pub start_time: u64,
}

/// The judgement of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// a lease runs and no beat has come yet
    Waiting,
    /// no first beat in time
    Missing,
    /// beats come
    Alive,
    /// the next beat is overdue
    Late,
    /// the lease ran out
    Stale,
    /// there, and its progress stands still
    Hung,
    /// it says itself that it fails
    Failing,
    /// the supervisor is gone, the job lives
    Orphaned,
    /// proven gone
    Dead,
    /// cannot be told
    Unknown,
    /// it ended, and that is recorded
    Ended,
}

/// Where a job is in latido's own hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// asked for, no attempt yet
    Pending,
    /// may start, and waits until it is its turn
    Queued,
    /// an attempt is being started
    Launching,
    /// an attempt runs
    Running,
    /// a stop has begun, or an orphan is being ended
    Draining,
    /// waits before the next attempt
    BackingOff,
    /// stopped until death is proven or a person acts
    Held,
    /// given up at a limit
    Stuck,
    /// not judged until an end
    Paused,
    /// over
    Ended,
}

/// Which beats the work's lease is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BeatSource {
    /// Presence until the first own beat, own beats from then on.
    #[default]
    Auto,
    /// Own beats from the start.
    Own,
    /// Presence alone.
    Presence,
}

/// The lease of the work's own beats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// which beats count
    pub beats: BeatSource,
    /// how often they are expected
    pub interval: Duration,
    /// silence after which the lease has run out
    pub ttl: Duration,
    /// time for the first one
    pub start_within: Duration,
    /// time without new progress after which it is hung
    pub hung_after: Limit<Duration>,
    /// beats in a row that say nothing new of its progress after which it is hung: it moves in a circle
    pub looping_after: Limit<u32>,
    /// longest time of one attempt
    pub run_for: Limit<Duration>,
    /// longest time until its first byte of output
    pub first_output_within: Limit<Duration>,
    /// no excuse for silence lasts longer, renewals counted; zero lets none count
    pub excuse_max: Duration,
}

/// What makes a job run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumeOn {
    /// killed from outside, supervisor or machine gone
    pub lost: bool,
    /// its own fault
    pub failed: bool,
    /// alive, and its lease ran out: it is ended first
    pub stale: bool,
    /// alive, and without new progress: it is ended first, unless it is busy and `spare_busy` holds
    pub hung: bool,
    /// a limit of its own
    pub limit: bool,
    /// a good end of what is to run on
    pub completed: bool,
}

/// How a job is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumePolicy {
    /// what resumes it
    pub on: ResumeOn,
    /// attempts in all, the first one counted
    pub max_attempts: Limit<u32>,
    /// lost attempts after which the job is stuck
    pub max_pickups: u32,
    /// attempts in a row without a new best checkpoint after which it is stuck
    pub max_attempts_without_progress: Limit<u32>,
    /// identical quick endings in a row without progress after which it is stuck
    pub max_identical_deaths: Limit<u32>,
    /// time of all attempts together, since the last resume by hand
    pub wall_time_max: Limit<Duration>,
    /// what all attempts may use up together
    pub budget: Budget,
    /// a hung attempt whose output, CPU time or I/O still grows is told of and not ended, whatever `on` says
    pub spare_busy: bool,
    /// delay before the second attempt; doubled for each after it until a new best checkpoint
    pub backoff_first: Duration,
    /// no delay is longer
    pub backoff_longest: Duration,
}

/// What happens to a live process whose supervisor is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orphans {
    /// It is ended before a resume.
    #[default]
    End,
    /// The job is held until a person acts.
    Hold,
}

/// Everything that was decided for a job when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSettings {
    /// the lease of its beats
    pub lease: Lease,
    /// how it is resumed
    pub resume: ResumePolicy,
    /// what happens to an orphan
    pub orphans: Orphans,
    /// between SIGTERM and SIGKILL
    pub grace: Duration,
    /// the named limits of how many run at once that it counts against
    pub slots: SlotSet,
    /// seeds the jitter of its backoff
    pub seed: u64,
}

/// What is wanted of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Want {
    /// It runs, and is resumed by its policy.
    #[default]
    Run,
    /// It is to end, and stays ended.
    Stop,
    /// It is not judged until an end; `None` is until it is told otherwise.
    Pause(Option<Duration>),
    /// It is to run again although it ended, is held or is stuck.
    Resume,
}

/// What an ending means for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// exit status 0
    Completed,
    /// its own fault
    Failed,
    /// somebody else's fault
    Lost,
    /// by latido's own order
    Stopped,
    /// a limit of the job
    Limit,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Missing => "missing",
            Self::Alive => "alive",
            Self::Late => "late",
            Self::Stale => "stale",
            Self::Hung => "hung",
            Self::Failing => "failing",
            Self::Orphaned => "orphaned",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
            Self::Ended => "ended",
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Queued => "queued",
            Self::Launching => "launching",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::BackingOff => "backing-off",
            Self::Held => "held",
            Self::Stuck => "stuck",
            Self::Paused => "paused",
            Self::Ended => "ended",
        })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
            Self::Limit => "limit",
        })
    }
}
