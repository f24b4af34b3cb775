//! What `latido resume` takes.

use clap::Args;
use latido_protocol::SubjectName;

use super::budget::BudgetArgs;

/// `latido resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The job to resume
    #[arg(value_name = "JOB")]
    pub(crate) job: SubjectName,
    /// Take its latest attempt for lost where that cannot be told from here
    ///
    /// For an attempt of another machine or of a container that is gone. You vouch that nothing of it lives: if something
    /// does, two copies of the job run. What can be told counts for more than this: a job of which something is seen to live
    /// is not resumed.
    #[arg(long)]
    pub(crate) presume_lost: bool,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}
