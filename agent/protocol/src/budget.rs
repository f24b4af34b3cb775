use serde::{Deserialize, Serialize};

use crate::CountLimit;

/// What all attempts of a job may use up together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// turns of a conversation
    pub turns: CountLimit,
    /// tokens
    pub tokens: CountLimit,
    /// money, in millionths of its unit
    pub money: CountLimit,
}

/// What an attempt used up so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// turns of a conversation
    pub turns: u64,
    /// tokens
    pub tokens: u64,
    /// money, in millionths of its unit
    pub money: u64,
}
