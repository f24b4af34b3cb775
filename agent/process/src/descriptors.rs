//! How many descriptors a process may hold.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit};

/// The variable that tells a supervisor the soft limit from before its starter raised its own: so many its job gets.
pub(crate) const LIMIT: &str = "LATIDO_DESCRIPTORS";

/// The soft limit that this process was started with, once it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit to the hard one: the usual soft limit is kept low for programs that use `select`, and whoever
/// watches many jobs does not. What is started from here gets the limit from before. Returns what holds from here on;
/// `None` is no limit.
pub fn raise() -> Option<u64> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let Some(before) = limit.current.filter(|_| limit.current != limit.maximum) else { return limit.current };
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match rustix::process::setrlimit(Resource::Nofile, raised) {
        Ok(()) => {
            let _first = BEFORE.set(before);
            limit.maximum
        }
        // A sandbox forbids it: then the old limit holds.
        Err(_) => limit.current,
    }
}

/// The limit that a program gets which is started from here, where it is another than this process's own.
pub(crate) fn of_children() -> Option<String> {
    BEFORE.get().map(u64::to_string)
}

/// Takes the limit that the starter had before it raised its own. For a supervisor, before it starts anything.
pub(crate) fn take_over() {
    let told = std::env::var(LIMIT).ok().and_then(|text| text.parse::<u64>().ok());
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if let Some(before) = told.filter(|before| limit.maximum.is_none_or(|maximum| *before <= maximum)) {
        // Lowering a soft limit is allowed to everybody.
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: Some(before), maximum: limit.maximum });
    }
}
