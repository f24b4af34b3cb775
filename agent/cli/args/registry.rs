//! What can be typed about workers, groups and claims.

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use latido_protocol::registry::TargetName;
use latido_protocol::{Line, Span, SubjectName};

/// `latido worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) command: WorkerCommand,
}

/// What can be done with workers.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// Say that a worker is there; prints the epoch of its registration
    ///
    /// From then on it has to beat (`latido beat NAME --epoch N`). A name that is known is taken over: what the process
    /// before held is released, and its beats are answered with superseded.
    Register(WorkerRegisterArgs),
    /// List all workers, of one moment
    List(WorkerListArgs),
    /// Say that a worker ends
    Leave(WorkerLeaveArgs),
}

/// `latido worker register`.
#[derive(Debug, Args)]
pub(crate) struct WorkerRegisterArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) worker: SubjectName,
    /// The group it belongs to
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) group: SubjectName,
    /// The instance of the group that it was started by; refused if another has begun
    #[arg(long, value_name = "N")]
    pub(crate) instance: Option<u64>,
    /// How often it beats [default: that of its group]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) interval: Option<Span>,
    /// Silence after which it is dead [default: that of its group]
    #[arg(long, value_name = "D", allow_hyphen_values = true, conflicts_with = "missed")]
    pub(crate) ttl: Option<Span>,
    /// Intervals without a beat after which it is dead
    #[arg(long, value_name = "N")]
    pub(crate) missed: Option<NonZeroU32>,
    /// Time for its first beat [default: that of its group]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) start_within: Option<Span>,
    /// Its pid, for whoever looks; nobody is judged by it
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Its host, for whoever looks [default: this one]
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido worker list`.
#[derive(Debug, Args)]
pub(crate) struct WorkerListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido worker leave`.
#[derive(Debug, Args)]
pub(crate) struct WorkerLeaveArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) worker: SubjectName,
    /// The epoch that its registration printed; without it the name is trusted
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u64>,
}

/// `latido group`.
#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// What is to be done.
    #[command(subcommand)]
    pub(crate) command: GroupCommand,
}

/// What can be done with groups.
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    /// Take the group's lock, begin a new instance, and print its number
    ///
    /// Rows of workers of older instances are removed once the lock is taken, and what they held is released. With --hold
    /// the lock stays with this command until its standard input ends: an executor starts it and keeps the other end open
    /// for as long as it lives, and no second executor can open the group meanwhile.
    Open(GroupOpenArgs),
}

/// `latido group open`.
#[derive(Debug, Args)]
pub(crate) struct GroupOpenArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    pub(crate) group: SubjectName,
    /// Keep the lock until standard input ends
    #[arg(long)]
    pub(crate) hold: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido claim`.
#[derive(Debug, Args)]
pub(crate) struct ClaimArgs {
    /// What is claimed, such as acme/shop#42
    #[arg(value_name = "TARGET")]
    pub(crate) target: TargetName,
    /// What it is claimed for: the same event again is the same claim
    #[arg(long, value_name = "E")]
    pub(crate) event: Line,
    /// Who claims it
    #[arg(long, value_name = "W")]
    pub(crate) worker: SubjectName,
    /// The epoch that the worker's registration printed; without it the name is trusted
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido assign`.
#[derive(Debug, Args)]
pub(crate) struct AssignArgs {
    /// What is assigned
    #[arg(value_name = "TARGET")]
    pub(crate) target: TargetName,
    /// Whose workers may get it
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) group: SubjectName,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `latido release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// What is given back
    #[arg(value_name = "TARGET")]
    pub(crate) target: TargetName,
    /// The epoch that the claim printed
    #[arg(long, value_name = "N", required_unless_present = "stuck", conflicts_with = "stuck")]
    pub(crate) epoch: Option<u64>,
    /// Nobody holds it: it lost too many holders, and is to be given out again
    #[arg(long)]
    pub(crate) stuck: bool,
}

/// `latido drain`.
#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Which worker
    #[arg(value_name = "WORKER")]
    pub(crate) subject: SubjectName,
}
