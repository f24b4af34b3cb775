//! What can be typed about a run.

use std::path::PathBuf;

use clap::Args;
use latido::settings::{parse_count_limit, parse_limit};
use latido_protocol::{CountLimit, Limit, Span, SubjectName};

use super::budget::BudgetArgs;
use super::launch::LaunchArgs;
use super::values::{BackoffArg, BeatsArg, ResumeOnArg, Variable, attempts_max};

/// `latido run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Return as soon as the job has started, and print its name
    #[arg(long)]
    pub(crate) detach: bool,
    /// Name of the job; made from the program if not given, and in use until `latido remove`
    ///
    /// a-z, 0-9, `.`, `_` and `-`, at most 64 characters, the first a letter or a digit.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<SubjectName>,
    /// Let its progress count for the job that runs this command and waits for it
    #[arg(long, conflicts_with = "detach")]
    pub(crate) child: bool,
    /// Judge it by this policy of the config
    #[arg(long, value_name = "P", default_value = "default")]
    pub(crate) policy: String,
    /// Let this strategy propose how it is resumed
    #[arg(long, value_name = "S")]
    pub(crate) strategy: Option<String>,
    /// Judge by its own beats once one came (auto), from the start (own), or by presence alone
    #[arg(long, value_name = "BEATS")]
    pub(crate) beats: Option<BeatsArg>,
    /// Expect a beat this often; implies --beats own [default: 30s, or a third of a shorter ttl]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) interval: Option<Span>,
    /// Call it stale after this silence; implies --beats own
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) ttl: Option<Span>,
    /// Call it hung when its progress is not new for so long, or `none`
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = parse_limit)]
    pub(crate) hung_after: Option<Limit>,
    /// Expect the first beat within this time
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) start_within: Option<Span>,
    /// End an attempt after this time, or `none`
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = parse_limit)]
    pub(crate) run_for: Option<Limit>,
    /// Call it hung when so many beats in a row say nothing new of its progress, or `none`
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count_limit)]
    pub(crate) looping_after: Option<CountLimit>,
    /// End an attempt that has no output by then, or `none`
    #[arg(long, value_name = "D", allow_hyphen_values = true, value_parser = parse_limit)]
    pub(crate) first_output_within: Option<Limit>,
    /// Count against these slots of the config, and wait in line where one is full; an agent starts it
    #[arg(long, value_name = "SLOT,SLOT", value_delimiter = ',')]
    pub(crate) slots: Vec<String>,
    /// Make at most N attempts, the first one counted, or `none`
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = attempts_max)]
    pub(crate) max_attempts: Option<CountLimit>,
    /// Resume it after these endings
    #[arg(
        long,
        value_name = "lost,failed,stale,hung,limit,completed",
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(crate) resume_on: Option<Vec<ResumeOnArg>>,
    /// Wait before the next attempt: from the first duration, doubled each time, up to the second
    #[arg(long, value_name = "D..D", allow_hyphen_values = true)]
    pub(crate) backoff: Option<BackoffArg>,
    /// Leave so much time between SIGTERM and SIGKILL to what an attempt leaves running [default: 5s]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) linger: Option<Span>,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// Run this program once after each ending was recorded, before the next attempt
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) on_end: Option<String>,
    /// Run it in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Set a variable in its environment; may be given again
    #[arg(long, value_name = "K=V")]
    pub(crate) env: Vec<Variable>,
    /// Say what would be run, with every setting, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
