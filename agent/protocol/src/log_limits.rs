use serde::{Deserialize, Serialize};

/// How the output log is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// bytes after which `output.log` is rotated
    pub size_max: u64,
    /// files kept, the current one counted
    pub files_max: u32,
    /// what is kept of a line that was printed over with carriage returns
    #[serde(default)]
    pub carriage_returns: CarriageReturns,
}

/// What the output log keeps of a line that was printed over, as progress bars do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarriageReturns {
    /// its last state, and now and then one in between while it goes on; a carriage return before a line's end is no such
    #[default]
    Last,
    /// every byte
    All,
}
