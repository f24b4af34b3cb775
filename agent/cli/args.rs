//! What can be typed: every command with its options. The texts are the help and the man pages.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use latido::jobs::output::Tail;
use latido::settings::parse_limit;
use latido_protocol::{Limit, Span, SubjectName};

pub(crate) mod alerts;
mod beat;
mod budget;
mod launch;
mod plugin;
pub(crate) mod plugin_file;
mod registry;
mod resume;
mod run;
mod values;

pub(crate) use beat::BeatArgs;
pub(crate) use plugin::{
    PluginArgs, PluginBenchArgs, PluginBuildArgs, PluginChaosArgs, PluginCommand, PluginKind, PluginLanguage,
    PluginListArgs, PluginNewArgs, PluginReloadArgs, PluginRunArgs, PluginTestArgs, TestFormat,
};
pub(crate) use registry::{
    AssignArgs, ClaimArgs, DrainArgs, GroupArgs, GroupCommand, GroupOpenArgs, ReleaseArgs, WorkerArgs, WorkerCommand,
    WorkerListArgs, WorkerRegisterArgs,
};
pub(crate) use resume::ResumeArgs;
pub(crate) use run::RunArgs;
use values::attempt_number;

/// Launches and watches long-running work, and resumes what died, never two copies.
///
/// latido answers two questions about work that nobody is watching: is it still alive, and if it died, can it go on
/// where it left off? `latido run` starts a job under a small supervisor of its own; `status`, `why` and `logs` look at
/// it, `stop` and `resume` say what is wanted. All of these work without an agent. `latido agent` is the daemon that
/// judges, resumes by itself, and feeds the plugins.
#[derive(Debug, Parser)]
#[command(
    name = "latido",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_long_help = "Exit status:\n  \
    0    yes, done\n  \
    1    no: a true answer, such as a job that is not well\n  \
    2    wrong use, or a config that does not check out\n  \
    3    the agent, or the attempt, cannot be reached\n  \
    4    refused\n  \
    125  latido itself failed (a file, a disk, a process)\n\n\
    Durations are written 30s, 5m or 1h30m; a bare number is refused; `none` is no limit."
)]
pub(crate) struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Read this config file
    ///
    /// Without it: $XDG_CONFIG_HOME/latido/latido.toml (~/.config/latido/latido.toml) if that exists, else the defaults.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LATIDO_CONFIG",
        hide_env_values = true,
        help_heading = "Options of every command"
    )]
    pub(crate) config: Option<PathBuf>,
    /// Keep jobs and records in this directory
    ///
    /// Without it: `agent.state_dir` of the config, else $XDG_STATE_HOME/latido (~/.local/state/latido).
    #[arg(long, global = true, value_name = "DIR", help_heading = "Options of every command")]
    pub(crate) state_dir: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a job, and watch it or leave it running
    ///
    /// In the foreground the output is streamed and the exit status is the job's own: 128 + n for signal n, 125 where
    /// latido itself failed. Ctrl-C stops the job, a second Ctrl-C kills it. With --detach the command returns as soon
    /// as the job has started (or could not) and prints its name.
    Run(Box<RunArgs>),
    /// Wait until jobs have ended
    ///
    /// Ends with 0 when all completed, and with 1 when one ended otherwise or the time was over.
    Wait(WaitArgs),
    /// Show what is watched, and how it is
    ///
    /// Ends with 1 if anything is other than waiting, alive, late, paused, completed or stopped.
    Status(StatusArgs),
    /// Explain a verdict: the facts it came from, what comes next and when
    Why(WhyArgs),
    /// Show the output of a job
    Logs(LogsArgs),
    /// Stop a job: terminate, wait for the grace, kill, look that nothing is left
    ///
    /// A stopped job stays stopped until `latido resume`.
    Stop(StopArgs),
    /// Run a job again from its last checkpoint, although it ended, is held or is stuck
    Resume(ResumeArgs),
    /// Suspend the judging of a subject, for a time or until `latido unpause`
    ///
    /// What it tells is taken in meanwhile; its verdict stands, no alert comes of it, and the time does not count.
    Pause(PauseArgs),
    /// Judge a paused subject again
    Unpause(UnpauseArgs),
    /// Remove an ended job and its records, and free its name
    Remove(RemoveArgs),
    /// Send one heartbeat, or the signal of a check
    ///
    /// A check is told of each run: `latido beat CHECK` when it succeeded, --fail or --exit-status when it may not have,
    /// --start when it begins. A job that says --fail is failing until it sends --start or another state. Inside an
    /// attempt the subject is known from the environment. Ends with 2 for wrong arguments, else with 0, also
    /// when the beat could not be delivered (a warning on stderr): a beat never fails the job. With --answer it ends
    /// with 0 go-on, 10 drain, 11 stop, 12 superseded, or 3 when nobody could answer.
    Beat(BeatArgs),
    /// Ask whether this attempt still holds its epoch
    ///
    /// Ends with 0 if it does, 12 if another attempt has taken over, 3 when nobody could answer. A job asks before it
    /// writes what must not be written twice.
    Fence(FenceArgs),
    /// Register a worker, list all workers, or say that one ends
    Worker(WorkerArgs),
    /// Begin a new life of a group's executor
    Group(GroupArgs),
    /// Claim a target for a worker
    ///
    /// Prints the epoch of the claim. Ends with 0 if the worker has it, also when it asks again for the same event; with 1
    /// if it is claimed already, by whom and with which epoch is printed; with 4 if there is no room for one more claim.
    Claim(ClaimArgs),
    /// Find a worker for a target, and claim it for that one
    ///
    /// Prints the worker and the epoch. A target that is held stays where it is. Ends with 4 if no worker has room.
    Assign(AssignArgs),
    /// Give a target back
    ///
    /// Ends with 1 if nobody holds it, and with 4 if it was claimed again since, with another epoch.
    Release(ReleaseArgs),
    /// Let a worker take nothing more, finish what it holds, and end
    ///
    /// It hears that with its next beat.
    Drain(DrainArgs),
    /// List how attempts ended, one line each, with the reason
    Ledger(LedgerArgs),
    /// Show the journal: changes of verdict, endings, alerts, sampled beats
    Events(EventsArgs),
    /// Show what fires; silence, acknowledge or test alerts
    Alerts(alerts::AlertsArgs),
    /// Find live processes of attempts whose supervisor is gone
    ///
    /// Ends with 1 if there are any left.
    Orphans(OrphansArgs),
    /// Print the figures of the agent, its subjects and its plugins for Prometheus
    ///
    /// The text form of OpenMetrics, for a collector that runs commands or reads files, such as node_exporter's textfile
    /// collector. Without an agent the files answer, and `latido_agent_up` is 0.
    Metrics,
    /// Look after the agent's plugins; make, build, test, inspect, pack and install your own
    Plugin(PluginArgs),
    /// Run the agent: the daemon that judges, resumes and feeds the plugins
    Agent(AgentArgs),
    /// Decide again what an agent decided that was recorded, with its settings or with others
    ///
    /// An agent is recorded where its config says `[agent.recording] enabled = true`, into recording.jsonl of its state
    /// directory. Without --config the recorded settings decide again: ends with 0 if they decide what was recorded, and
    /// with 1 if this latido decides otherwise. With --config FILE that config decides too, and every decision that
    /// differs is shown with what the recording tells of it afterwards: ends with 0 if none differs, else with 1.
    Replay(ReplayArgs),
    /// Check, show or describe the config
    Config(ConfigArgs),
    /// Look for what would keep latido from working on this host
    ///
    /// Each check says what to do about what it found. Ends with 1 if one failed; warnings alone end with 0.
    Doctor(DoctorArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the man page, or write the pages of all commands into a folder
    Man(ManArgs),
}

/// `latido wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Jobs to wait for
    #[arg(required = true, value_name = "JOB")]
    pub(crate) jobs: Vec<SubjectName>,
    /// Wait no longer than this, or `none`
    #[arg(long = "for", value_name = "D", allow_hyphen_values = true, default_value = "none")]
    pub(crate) wait_for: Limit,
}

/// `latido status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Subjects to show [default: all]
    #[arg(value_name = "SUBJECT")]
    pub(crate) subjects: Vec<SubjectName>,
    /// Print the status document as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again whenever something changes, until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
}

/// `latido why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The subject to explain
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: SubjectName,
}

/// `latido logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The job whose output is shown
    #[arg(value_name = "JOB")]
    pub(crate) job: SubjectName,
    /// Go on with what is written from now on, across attempts, until the job has ended
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Show this attempt [default: the latest]
    #[arg(long, value_name = "N", value_parser = attempt_number)]
    pub(crate) attempt: Option<NonZeroU32>,
    /// Begin with the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<u64>,
    /// Begin with the last N bytes
    #[arg(short = 'c', long, value_name = "N", conflicts_with = "lines")]
    pub(crate) bytes: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

impl LogsArgs {
    /// Where the output begins that is shown.
    pub(crate) fn tail(&self) -> Option<Tail> {
        self.lines.map(Tail::Lines).or(self.bytes.map(Tail::Bytes))
    }
}

/// `latido stop`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The job to stop, or the worker
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: SubjectName,
    /// Wait this long between SIGTERM and SIGKILL [default: the job's own grace]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) grace: Option<Span>,
    /// Send SIGKILL at once
    #[arg(long, conflicts_with = "grace")]
    pub(crate) force: bool,
}

/// `latido pause`.
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// What is not to be judged
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: SubjectName,
    /// Judge it again after this time, or `none` [default: none]
    #[arg(long = "for", value_name = "D", allow_hyphen_values = true, value_parser = parse_limit)]
    pub(crate) pause_for: Option<Limit>,
}

/// `latido unpause`.
#[derive(Debug, Args)]
pub(crate) struct UnpauseArgs {
    /// What is to be judged again
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: SubjectName,
}

/// `latido remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The job to remove
    #[arg(value_name = "JOB")]
    pub(crate) job: SubjectName,
}

/// `latido fence`.
#[derive(Debug, Args)]
pub(crate) struct FenceArgs {}

/// `latido ledger`.
#[derive(Debug, Args)]
pub(crate) struct LedgerArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with entries as they come, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido orphans`.
#[derive(Debug, Args)]
pub(crate) struct OrphansArgs {
    /// End them: terminate, wait for the grace, kill, look again
    #[arg(long)]
    pub(crate) kill: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido agent`.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Decide once what identity, lock and measured silence prove, carry it out, and end
    #[arg(long)]
    pub(crate) once: bool,
}

/// `latido replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    /// What is to be done with it.
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// The commands of `latido config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a config file; ends with 0 if it is fine, with 2 and every fault found if not
    Check(ConfigCheckArgs),
    /// Print the settings in force as TOML, and where each part came from
    Show,
    /// Print the JSON schema of the config file
    Schema,
}

/// `latido config check`.
#[derive(Debug, Args)]
pub(crate) struct ConfigCheckArgs {
    /// The file to check [default: the one that would be read]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `latido doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `latido man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the page of every command into this folder, which is made if need be
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
