//! The shape of the config file. Its doc comments are the descriptions of the JSON schema.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use latido_plugin_kit::{Digest, KeySource};
use latido_protocol::files::{Backoff, Beats, CarriageReturns, Orphans, ResumeOn};
use latido_protocol::{CountLimit, Limit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alerts::AlertsTable;
use super::budget::BudgetTable;
use super::entry_kind::EntryKind;
use super::http::HttpTable;
use super::launch::{LaunchTable, OnEndTable};
use super::model::{Reload, StartMode};
use super::recording::RecordingTable;
use super::source::PluginSource;
use super::text::{Size, Text};
use super::watched::{CheckTable, ProcessTable};

/// The config of latido. What is not said is taken from the defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, title = "latido.toml")]
pub(super) struct Document {
    /// The agent, and what holds for all jobs.
    pub(super) agent: Option<AgentTable>,
    /// How jobs are judged and resumed, by name. What a policy does not say it takes from `default`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) policy: BTreeMap<String, PolicyTable>,
    /// Plugins that the journal is fed to. `sink = []` for none.
    pub(super) sink: Option<Vec<SinkTable>>,
    /// Plugins that are asked for findings.
    pub(super) rule: Option<Vec<PluginTable>>,
    /// Plugins that propose how a job is resumed.
    pub(super) strategy: Option<Vec<PluginTable>>,
    /// Named limits of how many jobs run at once, or `none`; those beyond it wait in line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) slots: BTreeMap<String, Text<CountLimit>>,
    /// When alerts are told, and how often.
    pub(super) alerts: Option<AlertsTable>,
    /// Jobs that the agent knows from the config, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) job: BTreeMap<String, JobTable>,
    /// Groups of workers, by name. One that is not named here has the defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) group: BTreeMap<String, GroupTable>,
    /// Checks, dead man's switches that something signals on a schedule, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) check: BTreeMap<String, CheckTable>,
    /// Processes that are watched from outside, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) process: BTreeMap<String, ProcessTable>,
}

/// `[agent]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct AgentTable {
    /// Where jobs and records are; an absolute path. Without it: $XDG_STATE_HOME/latido, or ~/.local/state/latido.
    pub(super) state_dir: Option<PathBuf>,
    /// How often a beat is kept as history: in heartbeats.jsonl, and as an entry of the journal.
    pub(super) history_every: Option<Text<Span>>,
    /// How often status.json is written although nothing is new.
    pub(super) presence_every: Option<Text<Span>>,
    /// The journal, which sinks are fed from.
    pub(super) journal: Option<JournalTable>,
    /// The output log of each attempt.
    pub(super) log: Option<LogTable>,
    /// So many attempts are started at once that nobody ordered by hand, after an outage or at the agent's start.
    pub(super) resumes_at_once: Option<NonZeroU32>,
    /// And one more each time so much has passed.
    pub(super) resume_every: Option<Text<Span>>,
    /// When the agent doubts itself first.
    pub(super) blackout: Option<BlackoutTable>,
    /// Names whose values are left out of command lines wherever those are shown; `*` stands for anything.
    pub(super) redact: Option<Vec<String>>,
    /// Whether config and plugins are read again when their files were saved (watch), or only by order (command).
    pub(super) reload: Option<Text<Reload>>,
    /// The recording of what the agent is told and decides.
    pub(super) recording: Option<RecordingTable>,
}

/// `[agent.blackout]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct BlackoutTable {
    /// Share of all that are watched, in percent, that falls silent together. 100 is all of them.
    pub(super) share_percent: Option<u8>,
    /// And so many of them at least.
    pub(super) count_min: Option<u32>,
}

/// `[agent.journal]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct JournalTable {
    /// Entries kept. A sink that falls further behind loses the oldest, which is counted and told.
    pub(super) entries_max: Option<u64>,
}

/// `[agent.log]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LogTable {
    /// Size after which output.log is rotated.
    pub(super) size_max: Option<Text<Size>>,
    /// Files kept, the current one counted.
    pub(super) files_max: Option<NonZeroU32>,
    /// What is kept of a line that was printed over with carriage returns: its last state (last), or every byte (all).
    pub(super) carriage_returns: Option<Text<CarriageReturns>>,
}

/// `[policy.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PolicyTable {
    /// Which beats count: presence until the first own beat (auto), own beats from the start (own), or presence alone.
    pub(super) beats: Option<Text<Beats>>,
    /// How often beats are expected. Not given beside a ttl: min(30s, ttl / 3).
    pub(super) interval: Option<Text<Span>>,
    /// Silence after which the lease has run out; longer than the interval, at least three times as long is sound.
    pub(super) ttl: Option<Text<Span>>,
    /// Time for the first own beat.
    pub(super) start_within: Option<Text<Span>>,
    /// Time without new progress after which the job is hung, or `none`.
    pub(super) hung_after: Option<Text<Limit>>,
    /// Longest time of one attempt, or `none`.
    pub(super) run_for: Option<Text<Limit>>,
    /// Beats in a row that say nothing new of its progress after which the job is hung: it moves in a circle; or `none`.
    pub(super) looping_after: Option<Text<CountLimit>>,
    /// Longest time until the first byte of output, or `none`.
    pub(super) first_output_within: Option<Text<Limit>>,
    /// No silence that a job announces (EXTEND_TIMEOUT_USEC) lasts longer, renewals counted. 0s lets none count.
    pub(super) excuse_max: Option<Text<Span>>,
    /// How a job is resumed.
    pub(super) resume: Option<ResumeTable>,
    /// What happens to a live process whose supervisor is gone: it is ended before a resume (end), or the job is held
    /// until a person acts (hold).
    pub(super) orphans: Option<Text<Orphans>>,
    /// Time between SIGTERM and SIGKILL.
    pub(super) grace: Option<Text<Span>>,
    /// Time between SIGTERM and SIGKILL for what an attempt leaves running when its first process ends. 0s kills it at once.
    pub(super) linger: Option<Text<Span>>,
    /// How the process of an attempt is made, and what it may use up.
    pub(super) launch: Option<LaunchTable>,
    /// A command that is run once after each ending was recorded, before the next attempt.
    pub(super) on_end: Option<OnEndTable>,
}

/// `resume = { … }`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ResumeTable {
    /// What resumes it. `stale` and `hung` end a live process first; `completed` is for what is to run on.
    pub(super) on: Option<Vec<Text<ResumeOn>>>,
    /// Attempts in all, the first one counted, or `none`.
    pub(super) max_attempts: Option<Text<CountLimit>>,
    /// Lost attempts after which the job is stuck.
    pub(super) max_pickups: Option<NonZeroU32>,
    /// Delays between attempts: the first, doubled each time, up to the second. A delay begins when the attempt before
    /// is proven dead: while a lease is live, nothing is started again.
    pub(super) backoff: Option<Text<Backoff>>,
    /// Attempts in a row without a new best checkpoint after which the job is stuck, or `none`.
    pub(super) max_attempts_without_progress: Option<Text<CountLimit>>,
    /// Endings in a row, equal and within a second of the start, after which the job is stuck, or `none`.
    pub(super) max_identical_deaths: Option<Text<CountLimit>>,
    /// Time of all attempts together since the last resume by hand, or `none`.
    pub(super) wall_time_max: Option<Text<Limit>>,
    /// A hung job whose output still grows is told of and not ended, whatever `on` says.
    pub(super) spare_busy: Option<bool>,
    /// What all attempts may use up together, as the job itself tells it. An attempt that reaches it is ended, and nothing
    /// is resumed until there is more.
    pub(super) budget: Option<BudgetTable>,
}

/// `[[sink]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct SinkTable {
    /// Its name; no two plugins have the same.
    pub(super) name: String,
    /// `builtin:sqlite`, `builtin:jsonl`, `builtin:webhook`, `installed:NAME` for one that `latido plugin install` put
    /// there, or the path of a component, relative to this file.
    pub(super) source: Text<PluginSource>,
    /// The digest that the component has to have: `sha256:` and 64 hexadecimal digits, as `latido plugin inspect` shows it.
    pub(super) digest: Option<Text<Digest>>,
    /// The public key by which the component has to be signed: in base64, or its file in PEM, relative to this file.
    pub(super) key: Option<Text<KeySource>>,
    /// Kinds of entries it is fed. Without it: all.
    pub(super) entries: Option<Vec<Text<EntryKind>>>,
    /// What it may use. What is not granted is denied.
    pub(super) grant: Option<GrantTable>,
    /// Settings of its own.
    pub(super) settings: Option<serde_json::Map<String, serde_json::Value>>,
    /// What it may cost.
    pub(super) limits: Option<LimitsTable>,
}

/// `[[rule]]` and `[[strategy]]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct PluginTable {
    /// Its name; no two plugins have the same.
    pub(super) name: String,
    /// `builtin:liveness`, `builtin:threshold` or `builtin:anomaly` for a rule, `builtin:script` for a strategy,
    /// `installed:NAME` for one that `latido plugin install` put there, or the path of a component, relative to this file.
    pub(super) source: Text<PluginSource>,
    /// The digest that the component has to have: `sha256:` and 64 hexadecimal digits, as `latido plugin inspect` shows it.
    pub(super) digest: Option<Text<Digest>>,
    /// The public key by which the component has to be signed: in base64, or its file in PEM, relative to this file.
    pub(super) key: Option<Text<KeySource>>,
    /// What it may use. What is not granted is denied.
    pub(super) grant: Option<GrantTable>,
    /// Settings of its own.
    pub(super) settings: Option<serde_json::Map<String, serde_json::Value>>,
    /// What it may cost.
    pub(super) limits: Option<LimitsTable>,
}

/// `grant.… = …`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct GrantTable {
    /// SQLite databases by the name that the plugin uses; a relative path lies in the state directory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sql: BTreeMap<String, PathBuf>,
    /// Files by the name that the plugin uses; a relative path lies in the state directory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) files: BTreeMap<String, PathBuf>,
    /// Requests over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) http: Option<HttpTable>,
    /// Look and read, for strategies: what lies in the directory of the job that is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<WorkspaceTable>,
}

/// `grant.workspace.… = …`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct WorkspaceTable {
    /// Bytes that are read at once, 16MiB at most. Without it: 64KiB.
    pub(super) read_max: Option<Text<Size>>,
}

/// `limits.… = …`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LimitsTable {
    /// Memory of the plugin.
    pub(super) memory_max: Option<Text<Size>>,
    /// Longest time of one call on the CPU.
    pub(super) cpu_for: Option<Text<Span>>,
    /// Longest time of one call on the wall, what it waits for counted.
    pub(super) call_for: Option<Text<Span>>,
    /// Entries in one batch.
    pub(super) batch_max: Option<NonZeroU32>,
}

/// `[job.NAME]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct JobTable {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// Where it runs; a relative path begins at this file's folder. Without it: where the agent runs.
    pub(super) directory: Option<PathBuf>,
    /// Variables set for every attempt.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) environment: BTreeMap<String, String>,
    /// The policy it is judged by. Without it: `default`.
    pub(super) policy: Option<String>,
    /// The strategy that proposes how it is resumed. Without it: `script`.
    pub(super) strategy: Option<String>,
    /// How it is resumed, where that differs from its policy.
    pub(super) resume: Option<ResumeTable>,
    /// Longest time of one attempt, where that differs from its policy.
    pub(super) run_for: Option<Text<Limit>>,
    /// Time for what an attempt leaves running, where that differs from its policy.
    pub(super) linger: Option<Text<Span>>,
    /// How the process of an attempt is made, where that differs from its policy.
    pub(super) launch: Option<LaunchTable>,
    /// What is run after each ending, where that differs from its policy; an empty command is nothing.
    pub(super) on_end: Option<OnEndTable>,
    /// Slots of `[slots]` that it counts against, four at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) slots: Vec<String>,
    /// Whether the agent launches it once by itself when it has no attempt (auto), or only by order (manual).
    pub(super) start: Option<Text<StartMode>>,
}

/// `[group.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct GroupTable {
    /// Claims that its workers may hold together. Without it there is no limit.
    pub(super) capacity: Option<NonZeroU32>,
    /// Claims that one worker may hold. Without it: 1.
    pub(super) claims_per_worker: Option<NonZeroU32>,
    /// Holders that a target may lose before it is stuck and waits for a person. Without it: 5.
    pub(super) max_pickups: Option<NonZeroU32>,
    /// How often beats are expected, where a worker does not say. Without it: 30s.
    pub(super) interval: Option<Text<Span>>,
    /// Intervals without a beat after which a worker is dead; not beside a ttl. Without it: 6.
    pub(super) missed: Option<NonZeroU32>,
    /// Silence after which a worker is dead; not beside missed.
    pub(super) ttl: Option<Text<Span>>,
    /// Time for the first beat. Without it: 1m.
    pub(super) start_within: Option<Text<Span>>,
}
