//! How a job is resumed.

use serde::{Deserialize, Serialize};

use crate::files::Budget;
use crate::{CountLimit, Limit, Span};

/// What makes a job run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResumeOn {
    /// killed from outside, supervisor or machine gone
    Lost,
    /// its own fault
    Failed,
    /// alive, and its lease ran out: it is ended first
    Stale,
    /// alive, and without new progress: it is ended first
    Hung,
    /// a limit of its own
    Limit,
    /// a good end of what is to run on
    Completed,
}

/// Delays between attempts: the first, and the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// delay before the second attempt; doubled for each after it
    pub first: Span,
    /// no delay is longer
    pub longest: Span,
}

/// How a job is resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// what resumes it
    pub on: Vec<ResumeOn>,
    /// attempts in all, the first one counted
    pub max_attempts: CountLimit,
    /// lost attempts after which the job is stuck
    pub max_pickups: u32,
    /// delays between attempts
    pub backoff: Backoff,
    /// attempts in a row without a new best checkpoint after which the job is stuck
    #[serde(default)]
    pub max_attempts_without_progress: CountLimit,
    /// identical quick endings in a row without progress after which the job is stuck
    #[serde(default = "identical_deaths")]
    pub max_identical_deaths: CountLimit,
    /// time of all attempts together, since the last resume by hand
    #[serde(default)]
    pub wall_time_max: Limit,
    /// a hung attempt whose output, CPU time or I/O still grows is told of and not ended
    #[serde(default = "spares_busy")]
    pub spare_busy: bool,
    /// what all attempts may use up together
    #[serde(default)]
    pub budget: Budget,
}

/// What was too many before it could be said otherwise.
fn identical_deaths() -> CountLimit {
    CountLimit::At(3)
}

/// Whoever wrote a job before this could be said ended nothing that lives.
fn spares_busy() -> bool {
    true
}
