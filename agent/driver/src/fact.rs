//! What sources tell the driver, with names and whole records; and what a job was found to be.

use std::time::Duration;

use latido_policy::Life;
use latido_protocol::SubjectName;
use latido_protocol::files::{End, JobFile, Spent, Start, Status, Wanted};
use latido_protocol::journal::Severity;
use latido_protocol::registry::Question;
use serde::{Deserialize, Serialize};

use crate::{seconds, words};

/// One attempt, named so that no other can be meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptName {
    /// its job
    pub job: SubjectName,
    /// its number
    pub number: u32,
    /// its fencing number
    pub epoch: u64,
}

/// Something a source has learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// A job's folder was found: new, or at the agent's start.
    JobFound(Box<FoundJob>),
    /// A job's folder is gone.
    JobRemoved {
        /// which
        job: SubjectName,
    },
    /// `wanted.json` says something else.
    WantChanged {
        /// which
        job: SubjectName,
        /// the whole file
        wanted: Box<Wanted>,
    },
    /// An attempt runs.
    AttemptStarted {
        /// its `start.json`
        start: Box<Start>,
    },
    /// A launch that was ordered did not take place.
    LaunchRefused {
        /// the attempt that was ordered
        attempt: AttemptName,
        /// why
        #[serde(with = "words::LaunchFailure")]
        failure: latido_policy::LaunchFailure,
        /// why, in words
        detail: String,
    },
    /// A supervisor told its latest.
    Heard {
        /// the latest
        status: Box<Status>,
    },
    /// The processes of an attempt were looked at from outside: told once for each look.
    ActivitySeen {
        /// its attempt
        attempt: AttemptName,
        /// since their CPU time or I/O last grew
        #[serde(rename = "idle_s", with = "seconds")]
        idle: Duration,
        /// what its first process waits in, in words that go on a sentence: `its first process sleeps in pipe_read`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doing: Option<String>,
    },
    /// A supervisor is gone and left no ending.
    SupervisorGone {
        /// its attempt
        attempt: AttemptName,
        /// the job's own processes
        #[serde(with = "words::Life")]
        process: Life,
    },
    /// An attempt's ending is on the disk.
    AttemptEnded {
        /// its `start.json`, where the attempt has not been told of yet
        start: Option<Box<Start>>,
        /// the whole file
        end: Box<End>,
    },
    /// An orphan's processes were told to end.
    OrphanEnded {
        /// its attempt
        attempt: AttemptName,
        /// pids of those that could not be ended
        survivors: Vec<u32>,
    },
    /// A strategy answered.
    StrategyAnswered {
        /// the attempt it was asked about
        attempt: AttemptName,
        /// what it proposes
        #[serde(with = "words::Proposal")]
        proposal: latido_policy::Proposal,
        /// its reason, or its fault
        detail: String,
        /// the command it proposes, where that differs; it may hold secrets, and decides nothing
        #[serde(skip)]
        command: Option<Vec<String>>,
    },
    /// A look at an attempt failed; nothing is known.
    LookFailed {
        /// its attempt
        attempt: AttemptName,
        /// why
        detail: String,
    },
    /// A rule answered for these subjects.
    RuleAnswered {
        /// the rule's name in the config
        rule: String,
        /// the subjects it was asked about
        subjects: Vec<SubjectName>,
        /// what holds
        findings: Vec<Finding>,
    },
    /// Somebody asks about workers, groups or claims.
    Asked {
        /// the question's number; its reply carries it
        ticket: u64,
        /// what
        question: Box<Question>,
    },
    /// The lock of a group was looked at.
    GroupLockSeen {
        /// the question that it was looked at for
        ticket: u64,
        /// which
        group: SubjectName,
        /// whether somebody holds it, who can only be the asker
        is_held: bool,
    },
    /// Something about a subject that is only watched.
    Watched(Box<crate::watch_fact::WatchFact>),
    /// A rule could not answer.
    RuleFailed {
        /// the rule's name in the config
        rule: String,
        /// why, in words
        detail: String,
    },
    /// The agent about itself, for the journal.
    Noted {
        /// `started`, `plugin-fault`, `sink-loss` …
        what: String,
        /// in words
        detail: String,
    },
}

/// One finding of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// with rule and subject it makes the alert's fingerprint
    pub key: String,
    /// whose
    pub subject: String,
    /// how bad
    pub severity: Severity,
    /// in words
    pub summary: String,
}

/// What a job's files and processes say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundJob {
    /// `job.json`
    pub job: JobFile,
    /// `wanted.json`
    pub wanted: Wanted,
    /// the highest epoch over all its files
    pub epoch: u64,
    /// endings of class `lost` since the last order to resume
    pub pickups: u32,
    /// attempts before the latest whose endings are on the disk, the oldest first: the journal is told of those that
    /// ended while nobody watched
    pub earlier: Vec<(Start, End)>,
    /// what the attempts before these used up
    pub spent_before: Spent,
    /// its latest attempt
    pub attempt: Option<FoundAttempt>,
}

/// A job's latest attempt as it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundAttempt {
    /// `start.json`
    pub start: Start,
    /// the latest beat, asked of the supervisor or read from `status.json`
    pub status: Option<Status>,
    /// what is the case
    pub state: FoundState,
}

/// How an attempt was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FoundState {
    /// Its starter lives and has not finished.
    Launching,
    /// Its supervisor lives.
    Running,
    /// Its supervisor is gone and there is no ending.
    Unattended(#[serde(with = "words::Life")] Life),
    /// Its ending is on the disk.
    Ended(Box<End>),
}

/// Something to do; the daemon's actions carry it out and tell the outcome as a [`Fact`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start this attempt.
    Launch {
        /// the new attempt
        attempt: AttemptName,
        /// why, for `start.json`
        because: String,
        /// a person asked for it
        by_hand: bool,
        /// the strategy's command, where it differs from the job's; it may hold secrets
        #[serde(skip)]
        command: Option<Vec<String>>,
    },
    /// Ask the job's strategy.
    AskStrategy {
        /// the attempt that ended
        attempt: AttemptName,
        /// the strategy's name
        strategy: String,
        /// a person asks for another attempt, whatever the last ending means
        by_hand: bool,
        /// why
        because: String,
    },
    /// Tell a supervisor to end its job.
    EndAttempt {
        /// its attempt
        attempt: AttemptName,
        /// between SIGTERM and SIGKILL
        #[serde(rename = "grace_s", with = "seconds")]
        grace: Duration,
        /// what it rests on, for want of beats or progress: its supervisor looks whether it is so
        ground: Option<latido_protocol::attempt::Ground>,
        /// decides the class of the ending
        reason: latido_protocol::attempt::StopReason,
        /// why, in words
        because: String,
    },
    /// End every process of an orphan.
    EndOrphan {
        /// its attempt
        attempt: AttemptName,
        /// between SIGTERM and SIGKILL
        #[serde(rename = "grace_s", with = "seconds")]
        grace: Duration,
        /// why, in words
        because: String,
    },
    /// Look whether the group's lock is held, and tell `GroupLockSeen`.
    CheckGroupLock {
        /// the question
        ticket: u64,
        /// which
        group: SubjectName,
    },
    /// Record that an attempt is lost.
    RecordLost {
        /// its attempt
        attempt: AttemptName,
        /// why, in words
        because: String,
    },
}
