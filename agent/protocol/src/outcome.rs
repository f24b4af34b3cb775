use std::fmt;

use serde::{Deserialize, Serialize};

/// What happened at the end of an attempt, and what it means for the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// what happened
    pub kind: OutcomeKind,
    /// the exit status, for `exited`
    #[serde(default)]
    pub code: Option<i32>,
    /// the signal, for `signaled`
    #[serde(default)]
    pub signal: Option<i32>,
    /// what it means
    pub class: Class,
    /// the reason in words
    pub detail: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// It ended by itself, with an exit status.
    Exited,
    /// A signal ended it.
    Signaled,
    /// Nobody saw the end: the supervisor died, the machine was restarted, the lease ran out.
    Lost,
    /// It never ran: not found, not executable, no such directory.
    LaunchFailed,
    /// The kernel ended it for want of memory.
    OutOfMemory,
    /// A limit of its own ended it.
    LimitReached,
}

impl OutcomeKind {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::Lost => "lost",
            Self::LaunchFailed => "launch-failed",
            Self::OutOfMemory => "out-of-memory",
            Self::LimitReached => "limit-reached",
        }
    }
}

/// What an ending means for what follows (DESIGN: only `lost` resumes by default).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Exit status 0.
    Completed,
    /// Its own fault: exit status other than 0, a crash, a failed launch, out of memory.
    Failed,
    /// Somebody else's fault: killed from outside, supervisor or machine gone.
    Lost,
    /// By latido's own order.
    Stopped,
    /// A time, budget or memory limit of the job.
    Limit,
}

/// SIGHUP, SIGINT, SIGKILL and SIGTERM: the signals by which somebody outside ends a process.
const OUTSIDE: [i32; 4] = [1, 2, 9, 15];

impl Outcome {
    /// Ended by itself with this status.
    pub fn exited(code: i32) -> Self {
        Self {
            kind: OutcomeKind::Exited,
            code: Some(code),
            signal: None,
            class: if code == 0 { Class::Completed } else { Class::Failed },
            detail: if code == 0 { "completed".to_owned() } else { format!("exit status {code}") },
        }
    }

    /// Ended by this signal, not sent by latido. A signal of the outside makes it `lost`, a crash makes it `failed`.
    pub fn signaled(signal: i32, name: &str) -> Self {
        let outside = OUTSIDE.contains(&signal);
        Self {
            kind: OutcomeKind::Signaled,
            code: None,
            signal: Some(signal),
            class: if outside { Class::Lost } else { Class::Failed },
            detail: if outside { format!("{name} from outside") } else { format!("crashed with {name}") },
        }
    }

    /// Nobody saw the end.
    pub fn lost(detail: impl Into<String>) -> Self {
        Self { kind: OutcomeKind::Lost, code: None, signal: None, class: Class::Lost, detail: detail.into() }
    }

    /// It never ran.
    pub fn launch_failed(detail: impl Into<String>) -> Self {
        Self { kind: OutcomeKind::LaunchFailed, code: None, signal: None, class: Class::Failed, detail: detail.into() }
    }

    /// The same ending, brought about by latido's order.
    #[must_use]
    pub fn by_order(mut self, detail: impl Into<String>) -> Self {
        self.class = Class::Stopped;
        self.detail = detail.into();
        self
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Stopped => "stopped",
            Self::Limit => "limit",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field case C163: exit status 137, signal 9 and a killed child of a wrapper are three different things.
    #[test]
    fn c163_exit_status_137_is_not_a_signal() {
        assert_eq!(Outcome::exited(137).class, Class::Failed);
        assert_eq!(Outcome::exited(137).signal, None);
        assert_eq!(Outcome::signaled(9, "SIGKILL").class, Class::Lost);
        assert_eq!(Outcome::signaled(11, "SIGSEGV").class, Class::Failed);
        assert_eq!(Outcome::exited(0).class, Class::Completed);
        assert_eq!(Outcome::signaled(15, "SIGTERM").by_order("asked to stop").class, Class::Stopped);
    }
}
