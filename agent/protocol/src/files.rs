//! The files of a job and of its attempts, as they stand on the disk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::attempt::StopReason;
pub use crate::budget::{Budget, Money, MoneyError, Spent};
pub use crate::excuse::Excuse;
pub use crate::launching::{
    Bound, Cgroup, CgroupFolder, CgroupPlace, Enforcement, EnvironmentFrom, GitLocks, LaunchSettings, OnEnd,
    OnEndRecord, Rlimit, Sigpipe,
};
pub use crate::log_limits::{CarriageReturns, LogLimits};
pub use crate::resume::{Backoff, Resume, ResumeOn};
pub use crate::wanted::{Want, Wanted};
use crate::{Class, CountLimit, Limit, Outcome, Progress, Span, SubjectName, Trouble, WallTime};

/// A process that cannot be mistaken for another: a pid means something only inside its machine, boot, pid namespace
/// and time of start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// `/etc/machine-id`, or the host's name where there is none
    pub machine_id: String,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot_id: String,
    /// inode of `/proc/self/ns/pid`
    pub pid_namespace: u64,
    /// the pid inside that namespace
    pub pid: u32,
    /// field 22 of `/proc/PID/stat`: clock ticks since boot
    pub start_time: u64,
}

/// Which beats the work's lease is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Beats {
    /// Presence until the first own beat, own beats from then on.
    #[default]
    Auto,
    /// Own beats from the start.
    Own,
    /// Presence alone.
    Presence,
}

/// What a job had that was written before this could be said.
fn linger() -> Span {
    Span(std::time::Duration::from_secs(5))
}

/// What happens to a live process whose supervisor is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Orphans {
    /// It is ended before a resume.
    #[default]
    End,
    /// The job is held until a person acts.
    Hold,
}

/// Everything that was decided for a job when it was made; a later change of the config does not reach it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSettings {
    /// name of the policy that these came from
    pub policy: String,
    /// name of the strategy
    pub strategy: String,
    /// which beats count
    pub beats: Beats,
    /// how often beats are expected
    pub interval: Span,
    /// silence after which the lease has run out
    pub ttl: Span,
    /// time for the first own beat
    pub start_within: Span,
    /// time without new progress after which it is hung
    pub hung_after: Limit,
    /// longest time of one attempt
    pub run_for: Limit,
    /// beats in a row that say nothing new of its progress after which it is hung
    #[serde(default)]
    pub looping_after: CountLimit,
    /// longest time until the first byte of output
    #[serde(default)]
    pub first_output_within: Limit,
    /// no announced silence lasts longer, renewals counted
    #[serde(default)]
    pub excuse_max: Span,
    /// named limits of how many run at once that it counts against
    #[serde(default)]
    pub slots: Vec<String>,
    /// how it is resumed
    pub resume: Resume,
    /// what happens to an orphan
    pub orphans: Orphans,
    /// between SIGTERM and SIGKILL
    pub grace: Span,
    /// the same for what an attempt leaves running when its first process ends
    #[serde(default = "linger")]
    pub linger: Span,
    /// bound of the output log
    pub log: LogLimits,
    /// how often a beat is kept in `heartbeats.jsonl`
    pub history_every: Span,
    /// how often `status.json` is written although nothing is new
    pub presence_every: Span,
    /// how its process is made
    #[serde(default)]
    pub launch: LaunchSettings,
    /// what is run after an ending was recorded
    #[serde(default)]
    pub on_end: Option<OnEnd>,
}

/// `job.json`: what was asked for. Written once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the job's name
    pub name: SubjectName,
    /// when it was asked for
    pub created_at: WallTime,
    /// the program and its arguments
    pub command: Vec<String>,
    /// where it runs
    pub directory: PathBuf,
    /// variables set for every attempt: those given, and those of the caller that hold no secret (`PATH`, `HOME`, …)
    pub environment: BTreeMap<String, String>,
    /// what was decided for it
    pub settings: JobSettings,
}

/// `busy.json`: exists while an attempt runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the attempt's number
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
    /// its supervisor
    pub supervisor: Identity,
}

/// `start.json`: who runs the attempt. Written by the starter before anything runs, completed by the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the job's name
    pub job: SubjectName,
    /// counted from 1
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
    /// the host's name, for people
    pub host: String,
    /// when the starter wrote this down
    pub launched_at: WallTime,
    /// who launched it
    pub starter: Identity,
    /// why: `first attempt`, `resume: SIGKILL from outside` …
    pub because: String,
    /// a person asked for it: the limits on attempts begin anew with it
    #[serde(default)]
    pub by_hand: bool,
    /// the command of this attempt
    pub command: Vec<String>,
    /// where it runs
    pub directory: PathBuf,
    /// the last checkpoint of the attempts before; empty on the first
    pub checkpoint: String,
    /// folder of the attempt's sockets: `control` (stream) and `notify` (datagram)
    pub sockets: PathBuf,
    /// the supervisor, once it runs
    pub supervisor: Option<Identity>,
    /// the job's first process, once it runs
    pub process: Option<Identity>,
    /// when it ran
    pub started_at: Option<WallTime>,
    /// the cgroup of its own, where one was made
    #[serde(default)]
    pub cgroup: Option<Cgroup>,
    /// what it was asked for and does not have, in words
    #[serde(default)]
    pub notes: Vec<String>,
}

/// `status.json`: the latest beat. Replaced whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the job's name
    pub job: SubjectName,
    /// counted from 1
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
    /// when this was written
    pub at: WallTime,
    /// grows with each own beat of this attempt
    pub sequence: u64,
    /// when the work's last own beat arrived
    pub last_beat: Option<WallTime>,
    /// when its progress last changed
    pub progress_changed: Option<WallTime>,
    /// how far it is
    pub progress: Option<Progress>,
    /// the work's own word for its state
    pub state: Option<String>,
    /// errors the work has counted
    pub errors: u64,
    /// `READY=1` was said
    pub ready: bool,
    /// it says of itself that it is broken (`WATCHDOG=trigger`)
    pub broken: bool,
    /// silence since the last own beat (or the start), as the supervisor listened
    pub silence_s: Span,
    /// time since the progress last changed (or the start), as the supervisor listened
    pub still_s: Span,
    /// time since the start, as the supervisor listened
    #[serde(default)]
    pub running_s: Span,
    /// bytes of output so far
    pub output_bytes: u64,
    /// time since its output last grew (or the start), as the supervisor listened; `None` where nobody measures it
    #[serde(default)]
    pub idle_s: Option<Span>,
    /// the silence that it announced
    #[serde(default)]
    pub excuse: Option<Excuse>,
    /// what it used up so far
    #[serde(default)]
    pub spent: Spent,
    /// a stop has begun
    pub stopping: bool,
    /// its first process is suspended (SIGSTOP, SIGTSTP …) since then: it lives, and nothing in it moves
    #[serde(default)]
    pub suspended_since: Option<WallTime>,
    /// what SIGKILL has not ended within its time: the stop is not over, and the supervisor keeps the lock and waits
    #[serde(default)]
    pub survivors: Vec<Identity>,
    /// what its supervisor has trouble with
    #[serde(default, skip_serializing_if = "Trouble::is_none")]
    pub trouble: Trouble,
}

/// One line of `heartbeats.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// when
    pub at: WallTime,
    /// the beat's number in its attempt
    pub sequence: u64,
    /// how far the work was
    pub progress: Option<Progress>,
    /// the work's own word for its state
    pub state: Option<String>,
    /// errors the work has counted
    pub errors: u64,
    /// what its attempt used up so far
    #[serde(default)]
    pub spent: Spent,
}

/// What the kernel counted for an attempt's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rusage {
    /// CPU time in user mode
    pub user_s: Span,
    /// CPU time in the kernel
    pub system_s: Span,
    /// largest resident set, in KiB
    pub max_rss_kib: u64,
}

/// `end.json`: how the attempt ended. Written once; what has ended never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the job's name
    pub job: SubjectName,
    /// counted from 1
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
    /// when the process ran, where it did
    pub started_at: Option<WallTime>,
    /// when the end was recorded
    pub ended_at: WallTime,
    /// what happened
    pub outcome: Outcome,
    /// what the kernel counted, where somebody could collect it
    pub rusage: Option<Rusage>,
    /// the last progress
    pub progress: Option<Progress>,
    /// who recorded it: `supervisor`, or who proved the death afterwards
    pub recorded_by: String,
    /// how the death was proven
    pub proof: String,
    /// why latido ended it, where it did: the agent that decided it may be gone
    #[serde(default)]
    pub stopped_for: Option<StopReason>,
    /// what it used up
    #[serde(default)]
    pub spent: Spent,
    /// how long it ran, as its supervisor measured it: no time in which the machine slept, whatever the calendar did; where
    /// it recorded no ending, until its last word. `null` where nobody measured it
    #[serde(default)]
    pub ran_s: Option<Span>,
}

/// One line of `ledger.jsonl`, once for each (job, attempt, epoch).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// the job's name
    pub job: SubjectName,
    /// counted from 1
    pub attempt: u32,
    /// its fencing number
    pub epoch: u64,
    /// when the process ran, where it did
    pub started_at: Option<WallTime>,
    /// when the end was recorded
    pub ended_at: WallTime,
    /// what it means
    pub class: Class,
    /// what happened
    pub outcome: Outcome,
    /// why the attempt was launched
    pub because: String,
    /// the last checkpoint
    pub checkpoint: Option<String>,
}

impl LedgerLine {
    /// The line of an attempt that was launched for this reason and ended so.
    pub fn of(end: &End, because: String) -> Self {
        Self {
            job: end.job.clone(),
            attempt: end.attempt,
            epoch: end.epoch,
            started_at: end.started_at,
            ended_at: end.ended_at,
            class: end.outcome.class,
            outcome: end.outcome.clone(),
            because,
            checkpoint: end.progress.as_ref().and_then(|progress| progress.checkpoint.clone()),
        }
    }
}
