//! What can be typed about a beat.

use clap::Args;
use latido_protocol::files::{Money, Spent};
use latido_protocol::{Progress, SubjectName};

/// `latido beat`.
#[derive(Debug, Args)]
pub(crate) struct BeatArgs {
    /// Whose beat it is: a job, or a registered worker [default: the attempt this runs in, $LATIDO_JOB]
    #[arg(value_name = "SUBJECT")]
    pub(crate) subject: Option<SubjectName>,
    /// How far the work is: 0.41 or 41%
    #[arg(long, value_name = "FRACTION", value_parser = Progress::parse_fraction)]
    pub(crate) progress: Option<f64>,
    /// Units finished
    #[arg(long, value_name = "N")]
    pub(crate) done: Option<u64>,
    /// Units in all
    #[arg(long, value_name = "M")]
    pub(crate) total: Option<u64>,
    /// The last step, in your own words
    #[arg(long, value_name = "S")]
    pub(crate) step: Option<String>,
    /// Where the next attempt goes on; it finds this text in $LATIDO_CHECKPOINT
    #[arg(long, value_name = "C")]
    pub(crate) checkpoint: Option<String>,
    /// The state of the work, in your own word
    #[arg(long, value_name = "S")]
    pub(crate) state: Option<String>,
    /// Errors counted so far
    #[arg(long, value_name = "N")]
    pub(crate) errors: Option<u64>,
    /// Turns of a conversation that this attempt had so far
    #[arg(long, value_name = "N")]
    pub(crate) turns: Option<u64>,
    /// Tokens that this attempt used so far
    #[arg(long, value_name = "N")]
    pub(crate) tokens: Option<u64>,
    /// Money that this attempt cost so far, such as 0.25
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) money: Option<Money>,
    /// What a worker works on, in your own words
    #[arg(long, value_name = "JOB")]
    pub(crate) active_job: Option<String>,
    /// The epoch that a worker's registration printed; without it the name is trusted
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u64>,
    /// A run begins
    #[arg(long, conflicts_with_all = ["fail", "exit_status"])]
    pub(crate) start: bool,
    /// The run failed
    #[arg(long, conflicts_with = "exit_status")]
    pub(crate) fail: bool,
    /// The run ended with this exit status; 0 is success
    #[arg(long, value_name = "N")]
    pub(crate) exit_status: Option<u8>,
    /// Which run of a check this is about, where runs overlap; any text, the same for start and end
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// Print what the work should do (go-on, drain, stop, superseded) and end with 0, 10, 11, 12, or 3
    #[arg(long)]
    pub(crate) answer: bool,
}

impl BeatArgs {
    /// What the attempt used up, as far as it is said.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            turns: self.turns.unwrap_or(0),
            tokens: self.tokens.unwrap_or(0),
            money: self.money.map_or(0, |money| money.0),
        }
    }
}
