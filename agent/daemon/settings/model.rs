//! The settings in force: every value decided, nothing optional that has a default.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_plugin_host::WorkspaceGrant;
use latido_plugin_kit::Trust;
use latido_policy::GroupSettings;
use latido_protocol::files::{
    Backoff, Beats, Budget, CarriageReturns, LaunchSettings, LogLimits, OnEnd, Orphans, Resume, ResumeOn,
};
use latido_protocol::{CountLimit, Limit, Redaction, Span, SubjectName};

use super::Problem;
use super::alerts::{AlertsSettings, AlertsTable};
use super::budget::BudgetOverrides;
use super::entry_kind::EntryKind;
use super::http::HttpSettings;
use super::launch::LaunchOverrides;
use super::recording::RecordingSettings;
use super::source::PluginSource;
use super::watched::{ConfiguredCheck, ConfiguredProcess};

/// The settings in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// the config file they came from; `None` where there is none and all are defaults
    pub file: Option<PathBuf>,
    /// the agent's own
    pub agent: AgentSettings,
    /// policies by name; `default` is always there
    pub policies: BTreeMap<String, Policy>,
    /// where the journal goes
    pub sinks: Vec<SinkSettings>,
    /// what asks for findings
    pub rules: Vec<PluginSettings>,
    /// what proposes how a job is resumed
    pub strategies: Vec<PluginSettings>,
    /// how many run at once, by the name of the slot
    pub slots: BTreeMap<String, CountLimit>,
    /// how alerts are told
    pub alerts: AlertsSettings,
    /// jobs of the config
    pub jobs: BTreeMap<SubjectName, ConfiguredJob>,
    /// groups of workers
    pub groups: BTreeMap<SubjectName, GroupSettings>,
    /// checks of the config
    pub checks: BTreeMap<SubjectName, ConfiguredCheck>,
    /// watched processes of the config
    pub processes: BTreeMap<SubjectName, ConfiguredProcess>,
    /// what is allowed, and worth a second look
    pub warnings: Vec<Problem>,
}

/// Settings of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// where jobs and records are; `None`: `$XDG_STATE_HOME/latido`
    pub state_dir: Option<PathBuf>,
    /// how often a beat is kept as history
    pub history_every: Span,
    /// how often presence is written although nothing is new
    pub presence_every: Span,
    /// bound of the journal, in entries; a sink that falls further behind loses the oldest, and that is told
    pub journal_entries_max: u64,
    /// bound of each attempt's output log
    pub log: LogLimits,
    /// so many attempts are started at once that nobody ordered by hand
    pub resumes_at_once: NonZeroU32,
    /// and one more each time so much has passed
    pub resume_every: Span,
    /// share of all that are watched, in percent, that falls silent together when the agent doubts itself first
    pub blackout_share_percent: u8,
    /// and so many of them at least
    pub blackout_count_min: u32,
    /// when config and plugins are read again
    pub reload: Reload,
    /// how the agent is recorded
    pub recording: RecordingSettings,
    /// what command lines are shown without
    pub redaction: Redaction,
}

/// How a job is judged and resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
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
    pub looping_after: CountLimit,
    /// longest time until the first byte of output
    pub first_output_within: Limit,
    /// no announced silence lasts longer
    pub excuse_max: Span,
    /// how it is resumed
    pub resume: Resume,
    /// what happens to an orphan
    pub orphans: Orphans,
    /// between SIGTERM and SIGKILL
    pub grace: Span,
    /// the same for what an attempt leaves running
    pub linger: Span,
    /// how its process is made
    pub launch: LaunchSettings,
    /// what is run after an ending was recorded
    pub on_end: Option<OnEnd>,
}

/// A plugin: a rule, a strategy, or the part of a sink that is the same.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSettings {
    /// its name in latido
    pub name: String,
    /// where its component is
    pub source: PluginSource,
    /// what is demanded of it before it is loaded
    pub trust: Trust,
    /// what it may use
    pub grant: Grant,
    /// its own settings, handed to it as JSON
    pub settings: serde_json::Map<String, serde_json::Value>,
    /// what it may cost
    pub limits: PluginLimits,
}

/// A sink.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkSettings {
    /// what every plugin has
    pub plugin: PluginSettings,
    /// which entries it is fed
    pub entries: Vec<EntryKind>,
}

/// What a plugin may use. What is not granted is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// databases by the name the plugin knows; a relative path lies in the state directory
    pub sql: BTreeMap<String, PathBuf>,
    /// files by the name the plugin knows; a relative path lies in the state directory
    pub files: BTreeMap<String, PathBuf>,
    /// requests over HTTP
    pub http: Option<HttpSettings>,
    /// what lies in the directories of the jobs that a strategy is asked about
    pub workspace: Option<WorkspaceGrant>,
}

/// What a plugin may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginLimits {
    /// bytes of its memory
    pub memory_max: u64,
    /// longest time of one call on the CPU
    pub cpu_for: Span,
    /// longest time of one call on the wall, host calls counted
    pub call_for: Span,
    /// entries in one batch
    pub batch_max: NonZeroU32,
}

/// A job of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredJob {
    /// the program and its arguments
    pub command: Vec<String>,
    /// where it runs; `None`: where the agent runs
    pub directory: Option<PathBuf>,
    /// variables set for every attempt
    pub environment: BTreeMap<String, String>,
    /// name of its policy
    pub policy: String,
    /// what it says in place of its policy
    pub overrides: Overrides,
    /// whether an agent launches it by itself
    pub start: StartMode,
}

/// When the agent reads its config and its plugins' files again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reload {
    /// when they were saved, and by order
    #[default]
    Watch,
    /// by order only: SIGHUP, `latido plugin reload`
    Command,
}

/// Whether an agent launches a configured job by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartMode {
    /// Once, when it has no attempt.
    #[default]
    Auto,
    /// Only by order.
    Manual,
}

/// What a command line or a job says in place of its policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// name of the strategy
    pub strategy: Option<String>,
    /// which beats count
    pub beats: Option<Beats>,
    /// how often beats are expected; implies own beats
    pub interval: Option<Span>,
    /// silence after which the lease has run out; implies own beats
    pub ttl: Option<Span>,
    /// time without new progress after which it is hung
    pub hung_after: Option<Limit>,
    /// time for the first own beat
    pub start_within: Option<Span>,
    /// longest time of one attempt
    pub run_for: Option<Limit>,
    /// attempts in all
    pub max_attempts: Option<CountLimit>,
    /// lost attempts after which the job is stuck
    pub max_pickups: Option<NonZeroU32>,
    /// what resumes it
    pub resume_on: Option<Vec<ResumeOn>>,
    /// delays between attempts
    pub backoff: Option<Backoff>,
    /// beats in a row that say nothing new of its progress after which it is hung
    pub looping_after: Option<CountLimit>,
    /// longest time until the first byte of output
    pub first_output_within: Option<Limit>,
    /// no announced silence lasts longer
    pub excuse_max: Option<Span>,
    /// attempts in a row without a new best checkpoint after which it is stuck
    pub max_attempts_without_progress: Option<CountLimit>,
    /// identical quick endings in a row after which it is stuck
    pub max_identical_deaths: Option<CountLimit>,
    /// time of all attempts together
    pub wall_time_max: Option<Limit>,
    /// a hung attempt that is busy is not ended
    pub spare_busy: Option<bool>,
    /// what all attempts may use up together
    pub budget: BudgetOverrides,
    /// time for what an attempt leaves running
    pub linger: Option<Span>,
    /// how its process is made
    pub launch: LaunchOverrides,
    /// what is run after an ending was recorded; an empty command is nothing
    pub on_end: Option<OnEnd>,
    /// slots that it counts against
    pub slots: Vec<String>,
}

const fn seconds(count: u64) -> Span {
    Span(Duration::from_secs(count))
}

/// The name of the policy that all others begin with.
pub const DEFAULT_POLICY: &str = "default";
/// The strategy of a job that names none: the built-in one that runs the same command again.
pub const DEFAULT_STRATEGY: &str = "script";
/// An interval that is not given is no longer than this.
pub(super) const INTERVAL_MAX: Span = seconds(30);
/// Two beats may be lost on a busy host before the third says that the work lives.
pub(super) const TTL_INTERVALS: u32 = 3;

impl Default for Policy {
    fn default() -> Self {
        Self {
            beats: Beats::Auto,
            interval: INTERVAL_MAX,
            ttl: seconds(180),
            start_within: seconds(60),
            hung_after: Limit::None,
            run_for: Limit::None,
            looping_after: CountLimit::None,
            first_output_within: Limit::None,
            // Longer than any rate limit of the usual providers, and short enough that somebody looks the same day.
            excuse_max: seconds(3600),
            resume: Resume {
                on: vec![ResumeOn::Lost],
                max_attempts: CountLimit::At(5),
                max_pickups: 5,
                backoff: Backoff { first: seconds(5), longest: seconds(300) },
                max_attempts_without_progress: CountLimit::None,
                max_identical_deaths: CountLimit::At(3),
                wall_time_max: Limit::None,
                spare_busy: true,
                budget: Budget::default(),
            },
            orphans: Orphans::End,
            grace: seconds(10),
            // Nobody waits for the work of what was left, and the next attempt waits for its end.
            linger: seconds(5),
            launch: LaunchSettings::default(),
            on_end: None,
        }
    }
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            state_dir: None,
            history_every: seconds(300),
            presence_every: seconds(60),
            // About 50 MB at 500 bytes an entry: days of a busy host, and no disk is filled by a sink that is away.
            journal_entries_max: 100_000,
            log: LogLimits { size_max: 16 * 1024 * 1024, files_max: 4, carriage_returns: CarriageReturns::default() },
            // A few agents' sessions start together without a host feeling it; forty do not.
            resumes_at_once: NonZeroU32::MIN.saturating_add(3),
            resume_every: seconds(2),
            // Half of at least five do not die at the same moment by themselves.
            blackout_share_percent: 50,
            blackout_count_min: 5,
            reload: Reload::default(),
            recording: RecordingSettings::default(),
            redaction: Redaction::default(),
        }
    }
}

impl Default for PluginLimits {
    fn default() -> Self {
        Self {
            // Ten times what the built-in plugins need.
            memory_max: 64 * 1024 * 1024,
            cpu_for: seconds(2),
            // A disk that hangs is told of by then, and the journal still holds what waits.
            call_for: seconds(10),
            batch_max: NonZeroU32::MIN.saturating_add(999),
        }
    }
}

impl PluginSettings {
    /// A plugin from a file, with default limits and no grant.
    pub fn of_file(name: &str, file: &Path) -> Self {
        Self { source: PluginSource::File(file.to_owned()), ..Self::builtin(name, "") }
    }

    /// A built-in plugin with default limits and no grant.
    pub(super) fn builtin(name: &str, source: &str) -> Self {
        Self {
            name: name.to_owned(),
            source: PluginSource::Builtin(source.to_owned()),
            trust: Trust::default(),
            grant: Grant::default(),
            settings: serde_json::Map::new(),
            limits: PluginLimits::default(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        let mut history = PluginSettings::builtin("history", "sqlite");
        history.grant.sql.insert("main".to_owned(), PathBuf::from("history.db"));
        let mut entries = PluginSettings::builtin("entries", "jsonl");
        entries.grant.files.insert("main".to_owned(), PathBuf::from("entries.jsonl"));
        let sink = |plugin| SinkSettings { plugin, entries: EntryKind::ALL.to_vec() };
        Self {
            file: None,
            agent: AgentSettings::default(),
            policies: BTreeMap::from([(DEFAULT_POLICY.to_owned(), Policy::default())]),
            sinks: vec![sink(history), sink(entries)],
            rules: vec![PluginSettings::builtin("liveness", "liveness")],
            strategies: vec![PluginSettings::builtin(DEFAULT_STRATEGY, "script")],
            slots: BTreeMap::new(),
            alerts: AlertsTable::default().decide(&["liveness"]).0,
            jobs: BTreeMap::new(),
            groups: BTreeMap::new(),
            checks: BTreeMap::new(),
            processes: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}
