//! Why something was decided, for logs, the journal and `latido why`.

use core::time::Duration;

use crate::Class;

/// Why. `Display` gives one line for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// no attempt has been started yet
    NotStarted,
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let _unused: (Option<Class>, Option<Duration>) = (None, None);
        f.write_str("no attempt has been started yet")
    }
}
