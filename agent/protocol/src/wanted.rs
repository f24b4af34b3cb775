use serde::{Deserialize, Serialize};

use crate::WallTime;
use crate::files::Budget;

/// What is wanted of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Want {
    /// It runs, and is resumed by its policy.
    Run,
    /// It is to end, and stays ended.
    Stop,
    /// It is not judged until an end.
    Pause,
    /// It is to run again although it ended, is held or is stuck.
    Resume,
}

/// `wanted.json`: what is wanted now. Changed only under the job's short lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// what is wanted
    pub want: Want,
    /// the highest epoch ever given to an attempt of this job
    pub epoch: u64,
    /// when it was wanted
    pub at: WallTime,
    /// end of a pause
    #[serde(default)]
    pub until: Option<WallTime>,
    /// who wanted it, in words (`latido stop`, `the agent`)
    pub by: String,
    /// what all attempts may use up together, where a resume by hand gave more than `job.json` says
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}
