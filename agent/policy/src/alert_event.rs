//! What is told about alerts, and what is to be done.

use core::fmt;
use core::time::Duration;

use crate::{
    About, AlertKey, AlertRecord, AlertSettings, Condition, Confirm, Fingerprint, RuleName, Severity, Silence,
    SilenceId,
};

/// Something that has happened to alerts.
///
/// One call of a rule is told as one `Found` for each finding and then one `Swept` for each subject the call contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertEvent {
    /// The config says so. Told again without a change it changes nothing.
    SettingsChanged {
        /// what it says
        settings: AlertSettings,
    },
    /// The config says so of one rule.
    ConfirmChanged {
        /// which
        rule: RuleName,
        /// what its findings need
        confirm: Confirm,
    },
    /// The store remembers it from before the agent's start.
    Restored {
        /// which
        alert: AlertKey,
        /// as it was recorded last
        record: AlertRecord,
        /// since it began, on the calendar
        held_for: Duration,
        /// since it was told last, on the calendar
        told_ago: Duration,
        /// where its subject is
        host: Option<Fingerprint>,
    },
    /// A rule finds that it holds.
    Found {
        /// which
        alert: AlertKey,
        /// how bad it is
        severity: Severity,
        /// where its subject is
        host: Option<Fingerprint>,
    },
    /// A call of a rule that contained this subject is over: what it did not find does not hold.
    Swept {
        /// which rule
        rule: RuleName,
        /// whom it was asked about
        about: About,
    },
    /// The agent looked for something of its own. That ends nothing else of its own, for which it did not look.
    Noted {
        /// for what
        condition: Condition,
        /// what it is about
        about: About,
        /// how bad it is; `None` where it does not hold
        severity: Option<Severity>,
    },
    /// A rule works: it was asked and answered.
    RuleAnswered {
        /// which
        rule: RuleName,
    },
    /// A rule cannot answer.
    RuleFailed {
        /// which
        rule: RuleName,
    },
    /// Whom it is about is watched no longer.
    Removed {
        /// who
        about: About,
    },
    /// Somebody says that it is known: no reminders until it is resolved or its severity rises.
    Acknowledged {
        /// which
        alert: AlertKey,
    },
    /// Somebody wants quiet. Told again it replaces the silence of the same number.
    Silenced {
        /// what, and until when
        silence: Silence,
    },
    /// Somebody ended a silence before its time.
    Unsilenced {
        /// which
        silence: SilenceId,
    },
}

/// Something to do about alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertAction {
    /// Write an entry into the journal, which sinks deliver.
    Tell {
        /// which
        alert: AlertKey,
        /// how bad it is
        severity: Severity,
        /// what
        telling: Telling,
        /// how long it has held, or had
        held_for: Duration,
    },
    /// Keep this over a restart; `None` is to forget it there.
    Record {
        /// which
        alert: AlertKey,
        /// what to keep
        record: Option<AlertRecord>,
    },
    /// It is over in every respect, and its texts may go.
    Forget {
        /// which
        alert: AlertKey,
    },
    /// A silence holds: keep it over a restart.
    KeepSilence {
        /// which
        silence: Silence,
    },
    /// A silence has ended: forget it, and tell the journal.
    EndSilence {
        /// which
        silence: SilenceId,
        /// why
        because: SilenceEnd,
    },
}

/// What is told of an alert. Every series begins with a telling that [opens](Self::opens) and ends with `Resolved`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It holds.
    Began {
        /// calls that found it
        sweeps: u32,
    },
    /// So many subjects have it at once.
    BeganForMany {
        /// how many
        subjects: u32,
    },
    /// Others have it than was told.
    Grew {
        /// how many have it by now
        subjects: u32,
    },
    /// It comes and goes: from here on only its end is told, or that it holds steadily.
    Flaps {
        /// how often it came
        comings: u32,
    },
    /// It came and went and holds steadily.
    Settled {
        /// how often it came
        comings: u32,
    },
    /// It is worse than was told.
    Rose,
    /// It still holds.
    Reminder,
    /// It has ended.
    Resolved {
        /// how often it came
        comings: u32,
        /// how
        because: Resolution,
    },
}

/// How an alert ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// A call that contained its subject did not find it.
    NotFound,
    /// Its subject is watched no longer.
    Removed,
}

/// Why a silence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceEnd {
    /// Its time is over.
    Expired,
    /// What it covered has fired and is over.
    Resolved,
    /// Somebody ended it.
    Lifted,
    /// Its subject is watched no longer.
    Removed,
    /// There are too many already, and it never began.
    TooMany,
}

impl Telling {
    /// Answers whether a series may begin with it.
    #[must_use]
    pub const fn opens(self) -> bool {
        match self {
            Self::Began { .. } | Self::BeganForMany { .. } | Self::Flaps { .. } => true,
            Self::Grew { .. } | Self::Settled { .. } | Self::Rose | Self::Reminder | Self::Resolved { .. } => false,
        }
    }
}

impl fmt::Display for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { sweeps: 1 } => f.write_str("it was found"),
            Self::Began { sweeps } => write!(f, "it was found {sweeps} times in a row"),
            Self::BeganForMany { subjects } => write!(f, "{subjects} subjects have it at once"),
            Self::Grew { subjects: 1 } => f.write_str("1 subject has it by now"),
            Self::Grew { subjects } => write!(f, "{subjects} subjects have it by now"),
            Self::Flaps { comings } => {
                write!(f, "it comes and goes, {comings} times so far; told again when that is over")
            }
            Self::Settled { comings } => write!(f, "it came {comings} times and holds steadily"),
            Self::Rose => f.write_str("it is worse than it was"),
            Self::Reminder => f.write_str("it still holds"),
            Self::Resolved { comings: 0 | 1, because } => because.fmt(f),
            Self::Resolved { comings, because } => write!(f, "{because}, after it came {comings} times"),
        }
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "it is over",
            Self::Removed => "its subject is watched no longer",
        })
    }
}

impl fmt::Display for SilenceEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its time is over",
            Self::Resolved => "what it covered is over",
            Self::Lifted => "somebody ended it",
            Self::Removed => "its subject is watched no longer",
            Self::TooMany => "there are too many silences already",
        })
    }
}
