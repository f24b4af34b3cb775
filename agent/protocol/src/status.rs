//! `latido status --json`: one document over all subjects, the same with and without an agent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::files::{Budget, Identity, Spent};
use crate::{Outcome, Progress, Span, SubjectName, WallTime};

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusDocument {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the agent that answered, or `null` where the files did
    pub agent: Option<AgentStatus>,
    /// when it was made
    pub at: WallTime,
    /// all subjects, by name
    pub subjects: Vec<SubjectStatus>,
}

/// The agent about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// the program's version
    pub version: String,
    /// its process
    pub identity: Identity,
    /// when it was started
    pub started_at: WallTime,
    /// when it last looked at everything that was due
    pub swept_at: WallTime,
    /// the journal's own id
    pub journal: String,
    /// sequence of the newest journal entry
    pub sequence: u64,
    /// each plugin
    pub plugins: Vec<PluginStatus>,
    /// why the config as it is cannot be in force; what was read before is
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_refused: Option<String>,
}

/// One plugin as the agent sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PluginStatus {
    /// its name in the config
    pub name: String,
    /// sink, rule or strategy
    pub kind: String,
    /// the version of the WIT package in which it is spoken to; empty until it is loaded
    #[serde(default)]
    pub interface: String,
    /// `loading`, `active`, `faulty`, `backing-off`, `quarantined` or `refused`
    pub state: String,
    /// faults since the agent started
    pub faults: u64,
    /// the last fault in words
    pub detail: Option<String>,
    /// why another file or other settings of it were refused; what was loaded before goes on
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload_refused: Option<String>,
    /// for a sink: the last sequence that is durable there
    pub cursor: Option<u64>,
    /// for a sink: entries set aside because they could not be delivered
    pub set_aside: u64,
    /// faults since the agent started, by kind: `trap`, `cpu-deadline`, `wall-deadline`, `memory`, `exit`, `bad-answer`
    #[serde(default)]
    pub faults_by_kind: BTreeMap<String, u64>,
    /// for a sink: how far its cursor is behind the end of the journal, in entries of any kind
    #[serde(default)]
    pub queue: Option<u64>,
    /// for a sink: entries that it lost because it was too far behind
    #[serde(default)]
    pub lost: u64,
    /// calls since it was loaded
    #[serde(default)]
    pub calls: u64,
    /// instances made since it was loaded: more than one after faults, and when one was worn out
    #[serde(default)]
    pub instances: u64,
    /// time in calls since it was loaded
    #[serde(default)]
    pub busy_s: Span,
    /// memory of its instance, in bytes; 0 where there is none
    #[serde(default)]
    pub memory_bytes: u64,
}

/// What kind of subject it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectKind {
    /// work that latido launches
    Job,
    /// a process that registers itself
    Worker,
    /// a dead man's switch
    Check,
    /// a process watched from outside
    Process,
}

impl SubjectKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Worker => "worker",
            Self::Check => "check",
            Self::Process => "process",
        }
    }
}

/// The judgement of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

impl Verdict {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
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
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where a job is in latido's own hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// asked for, no attempt yet
    Pending,
    /// waits for a slot
    Queued,
    /// an attempt is being started
    Launching,
    /// an attempt runs
    Running,
    /// takes nothing new
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

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
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

/// One subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubjectStatus {
    /// its name
    pub name: SubjectName,
    /// its kind
    pub kind: SubjectKind,
    /// the judgement
    pub verdict: Verdict,
    /// why, in words
    pub reason: String,
    /// when the verdict was reached
    pub since: WallTime,
    /// where it is in latido's hands
    pub phase: Phase,
    /// the host it is on
    pub host: String,
    /// the policy it is judged by
    pub policy: String,
    /// when its last own beat arrived
    pub last_beat: Option<WallTime>,
    /// listening time since then
    pub silence_s: Option<Span>,
    /// how far it is
    pub progress: Option<Progress>,
    /// when its progress last changed
    pub progress_changed: Option<WallTime>,
    /// the number of the latest attempt, 0 before the first
    pub attempt: u32,
    /// the latest fencing number
    pub epoch: u64,
    /// lost attempts
    pub pickups: u32,
    /// pid of the job's first process, while it runs
    pub pid: Option<u32>,
    /// the work's own word for its state
    pub state: Option<String>,
    /// errors the work has counted
    pub errors: u64,
    /// how the latest attempt ended
    pub outcome: Option<Outcome>,
    /// what its supervisor has trouble with, in words: somebody has to look at it, whatever the verdict
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// what comes next, in words, and when
    pub next: Option<Next>,
    /// its place among those that wait for the same as it does, counted from 1, while it is queued
    #[serde(default)]
    pub place: Option<u32>,
    /// the named limits of how many run at once that it counts against
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<String>,
    /// what all its attempts used up together, as far as they told
    #[serde(default, skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
    /// what they may use up together
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
}

/// What comes next for a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// in words
    pub what: String,
    /// how long until then, where it is known
    pub in_s: Option<Span>,
}
