//! The nouns of alerts.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::{Fingerprint, Moment, SubjectId, WorkerId};

/// Names one alert over its whole life. The order is what the policy asks by: all that one rule says of one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    /// who found it
    pub rule: RuleName,
    /// whom it is about
    pub about: About,
    /// what is wrong
    pub condition: Condition,
}

/// Who finds things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleName {
    /// The agent about itself and its hosts.
    Agent,
    /// The rule that has a fixed minimum behind it.
    Liveness,
    /// Any other, by its name in the config.
    Other(Fingerprint),
}

/// Whom an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// The agent itself.
    Agent,
    /// A rule of the config.
    Rule(RuleName),
    /// A sink or a strategy, by its name in the config.
    Plugin(Fingerprint),
    /// A host, by its name.
    Host(Fingerprint),
    /// A job, a check or a process.
    Subject(SubjectId),
    /// A worker.
    Worker(WorkerId),
    /// All the subjects of which one rule says the same: the alert that stands for a mass event.
    Group,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// no first beat in time
    Missing,
    /// a beat is overdue
    Late,
    /// the lease ran out
    Stale,
    /// there, and its progress stands still
    Hung,
    /// it says itself that it fails
    Failing,
    /// the supervisor is gone, the job lives
    Orphaned,
    /// proven gone
    Dead,
    /// cannot be told
    Unknown,
    /// stopped until death is proven or a person acts
    Held,
    /// given up at a limit
    Stuck,
    /// the host does not answer
    HostDown,
    /// the agent itself could not hear
    Blackout,
    /// the store takes no records
    StoreAway,
    /// a rule cannot answer
    RuleBroken,
    /// what the rule calls by a word of its own
    Other(Fingerprint),
}

impl Condition {
    /// The first in order.
    pub(crate) const FIRST: Self = Self::Missing;

    /// The conditions that have a word here.
    const NAMED: [Self; 14] = [
        Self::Missing,
        Self::Late,
        Self::Stale,
        Self::Hung,
        Self::Failing,
        Self::Orphaned,
        Self::Dead,
        Self::Unknown,
        Self::Held,
        Self::Stuck,
        Self::HostDown,
        Self::Blackout,
        Self::StoreAway,
        Self::RuleBroken,
    ];

    /// The word for it, as rules use it; `None` for a rule's own.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        Some(match self {
            Self::Missing => "missing",
            Self::Late => "late",
            Self::Stale => "stale",
            Self::Hung => "hung",
            Self::Failing => "failing",
            Self::Orphaned => "orphaned",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
            Self::Held => "held",
            Self::Stuck => "stuck",
            Self::HostDown => "host-down",
            Self::Blackout => "blackout",
            Self::StoreAway => "store-away",
            Self::RuleBroken => "rule-broken",
            Self::Other(_) => return None,
        })
    }

    /// The condition of this word; `None` for a word that is a rule's own.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|condition| condition.word() == Some(word))
    }

    /// Tells whether it comes from something that was not heard, so that an agent that cannot hear proves nothing by it.
    pub(crate) const fn is_silence(self) -> bool {
        match self {
            Self::Missing | Self::Late | Self::Stale | Self::Hung | Self::Unknown => true,
            Self::Failing
            | Self::Orphaned
            | Self::Dead
            | Self::Held
            | Self::Stuck
            | Self::HostDown
            | Self::Blackout
            | Self::StoreAway
            | Self::RuleBroken
            | Self::Other(_) => false,
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// good to know
    Info,
    /// somebody may want to look
    Warning,
    /// somebody has to act
    Critical,
}

/// What has to be the case before an alert is one. Both have to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// calls in a row that found it
    pub sweeps: NonZeroU32,
    /// how long it has held
    pub held_for: Duration,
}

impl Confirm {
    /// The first call that finds it is enough.
    pub const AT_ONCE: Self = Self { sweeps: NonZeroU32::MIN, held_for: Duration::ZERO };
}

/// How alerts are told. `Default` is what the config says when it says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertSettings {
    /// what every rule's findings need that has no setting of its own
    pub confirm: Confirm,
    /// what is confirmed waits this long for others of its kind, so that a mass event is told as one
    pub group_for: Duration,
    /// so many subjects at once, of which one rule says the same, are told as one
    pub group_min: NonZeroU32,
    /// a mass event that grows is told again after this long at the earliest
    pub group_every: Duration,
    /// an ending is told when it has lasted this long
    pub resolve_after: Duration,
    /// comings that follow each other within this time are one series; also how long a series has to be over
    pub flap_for: Duration,
    /// a series of so many comings is told once, as flapping
    pub flap_min: NonZeroU32,
    /// what fires is told again this often; `None` is never
    pub remind_every: Option<Duration>,
    /// silence of the rule `liveness` after which the fixed minimum answers for it; `None` where the config has no such
    /// rule
    pub liveness_after: Option<Duration>,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            confirm: Confirm::AT_ONCE,
            group_for: Duration::from_secs(2),
            group_min: NonZeroU32::new(5).unwrap_or(NonZeroU32::MIN),
            group_every: Duration::from_secs(5 * 60),
            resolve_after: Duration::from_secs(30),
            flap_for: Duration::from_secs(10 * 60),
            flap_min: NonZeroU32::new(3).unwrap_or(NonZeroU32::MIN),
            remind_every: Some(Duration::from_secs(4 * 3600)),
            liveness_after: None,
        }
    }
}

/// Names a silence; the driver gives the numbers and keeps who asked for it and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SilenceId(pub u32);

/// What a silence keeps quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SilenceScope {
    /// Everything about one subject, plugin or host.
    About(About),
    /// Everything one rule finds.
    Rule(RuleName),
    /// One alert.
    Alert(AlertKey),
}

impl SilenceScope {
    pub(crate) fn covers(self, alert: AlertKey) -> bool {
        match self {
            Self::About(about) => about == alert.about,
            Self::Rule(rule) => rule == alert.rule,
            Self::Alert(key) => key == alert,
        }
    }

    /// Whom it needs to be watched.
    pub(crate) const fn about(self) -> Option<About> {
        match self {
            Self::About(about) | Self::Alert(AlertKey { about, .. }) => Some(about),
            Self::Rule(_) => None,
        }
    }
}

/// Keeps alerts from being told. It always has an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// its name
    pub id: SilenceId,
    /// what it keeps quiet
    pub scope: SilenceScope,
    /// its end at the latest
    pub until: Moment,
    /// it ends as soon as what it covers has fired and is over
    pub until_resolved: bool,
}

/// Where an alert stands, as far as it has to outlive the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It holds, and is kept from being told.
    Muted,
    /// It was told that it fires.
    Firing,
    /// It was told as part of a group.
    Grouped,
    /// It was told that it fires, it has ended, and that is not told yet.
    Ending,
    /// It was told that it comes and goes.
    Flapping,
}

impl Standing {
    const ALL: [Self; 5] = [Self::Muted, Self::Firing, Self::Grouped, Self::Ending, Self::Flapping];

    /// The standing of this word, as `Display` writes it.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.word() == word)
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Muted => "muted",
            Self::Firing => "firing",
            Self::Grouped => "grouped",
            Self::Ending => "ending",
            Self::Flapping => "flapping",
        }
    }
}

/// What is kept of an alert over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertRecord {
    /// where it stands
    pub standing: Standing,
    /// how bad it is
    pub severity: Severity,
    /// the worst that was told of it
    pub told: Severity,
    /// somebody said that it is known, when it was this bad
    pub acknowledged: Option<Severity>,
    /// how often it came in this series
    pub comings: u32,
    /// subjects that were told, for a group; 1 for any other
    pub subjects: u32,
}

/// What keeps an alert from being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mute {
    /// A silence.
    Silenced(SilenceId),
    /// Another alert that explains it.
    Inhibited(AlertKey),
}

/// What the policy answers when it is asked about its alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertView {
    /// which
    pub alert: AlertKey,
    /// where it stands, as far as that outlives the agent; `None` before it is confirmed and has waited for others
    pub record: Option<AlertRecord>,
    /// how bad it is
    pub severity: Severity,
    /// how long it has held
    pub held_for: Duration,
    /// what keeps it from being told
    pub mute: Option<Mute>,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_word_leads_back_to_its_condition() {
        for condition in Condition::NAMED {
            assert_eq!(condition.word().and_then(Condition::of), Some(condition));
        }
        assert_eq!(Condition::of("disk full"), None);
        for standing in Standing::ALL {
            assert_eq!(Standing::of(&standing.to_string()), Some(standing));
        }
    }
}
