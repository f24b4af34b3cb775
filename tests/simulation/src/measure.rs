//! What a supervisor measures of its work.

use std::time::Duration;

/// How an attempt stands, by the line of its supervisor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measure {
    pub(crate) silence: Duration,
    pub(crate) still: Duration,
    pub(crate) age: Duration,
    pub(crate) broken: bool,
    /// beats without new progress
    pub(crate) repeated: u64,
}

impl Measure {
    pub(crate) fn later(self, length: Duration) -> Self {
        Self { silence: self.silence + length, still: self.still + length, age: self.age + length, ..self }
    }
}
