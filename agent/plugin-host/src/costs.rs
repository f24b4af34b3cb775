//! What a plugin costs.

use std::time::Duration;

/// What a plugin has used since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Calls, those that failed included.
    pub calls: u64,
    /// Instances that were made: one at first, one after each fault, and one in place of each that was worn out.
    pub instances: u64,
    /// Time in calls, what they waited for included.
    pub busy: Duration,
    /// Linear memory of the instance as it is, in bytes; 0 where there is none.
    pub memory: usize,
    /// The most linear memory that an instance of it has had, in bytes.
    pub memory_peak: usize,
    /// Instructions that it ran, where the host is metered; 0 elsewhere. Those of a call that was given up are not in it.
    pub fuel: u64,
}
