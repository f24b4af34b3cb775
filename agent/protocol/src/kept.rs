use serde::{Deserialize, Serialize};

use crate::control::CheckSignal;
use crate::{SubjectName, WallTime};

/// One line of `signals.jsonl`: the signal of a check that came while no agent ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSignal {
    /// names it among all that were ever kept
    pub id: String,
    /// when it came
    pub at: WallTime,
    /// which check
    pub check: SubjectName,
    /// what
    pub signal: CheckSignal,
    /// the id of the run it is about
    #[serde(default)]
    pub run_id: Option<String>,
    /// the work's own word for its state
    #[serde(default)]
    pub state: Option<String>,
}
