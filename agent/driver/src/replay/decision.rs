//! A decision: what an order or an entry of the journal says that the policy decided.

use std::fmt;
use std::time::Duration;

use latido_protocol::WallTime;
use latido_protocol::attempt::StopReason;
use latido_protocol::journal::{Body, Telling};
use latido_protocol::status::{Phase, Verdict};
use serde::{Deserialize, Serialize};

use crate::fact::{AttemptName, Order};

/// Whom a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct About {
    /// the subject's name
    pub subject: String,
    /// the number of its attempt; 0 where it has none
    pub attempt: u32,
    /// the attempt's fencing number; 0 where it has none
    pub epoch: u64,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// The attempt is to be ended.
    End(StopReason),
    /// The orphan is to be ended.
    EndOrphan,
    /// The attempt is lost.
    Lost,
    /// The attempt is to be started.
    Launch,
    /// The strategy is to be asked.
    Ask,
    /// The verdict is another one.
    Verdict(Verdict),
    /// The phase is another one.
    Phase(Phase),
    /// People are told of an alert.
    Alert(Telling),
    /// The agent doubts itself, or trusts itself again.
    Blackout,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End(reason) => write!(f, "end it ({})", word(*reason)),
            Self::EndOrphan => f.write_str("end the orphan"),
            Self::Lost => f.write_str("record it as lost"),
            Self::Launch => f.write_str("launch"),
            Self::Ask => f.write_str("ask the strategy"),
            Self::Verdict(verdict) => write!(f, "verdict {verdict}"),
            Self::Phase(phase) => write!(f, "phase {phase}"),
            Self::Alert(telling) => write!(f, "alert {telling}"),
            Self::Blackout => f.write_str("doubt itself"),
        }
    }
}

fn word(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Commanded => "by order",
        StopReason::Stale => "stale",
        StopReason::Hung => "hung",
        StopReason::Limit => "limit",
        StopReason::Superseded => "superseded",
    }
}

/// One decision, with when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// when, by the calendar of that time
    pub at: WallTime,
    /// when, in listening time since the recording began
    #[serde(rename = "listened_s", with = "crate::seconds")]
    pub listened: Duration,
    /// whom it is about
    #[serde(flatten)]
    pub about: About,
    /// what
    pub what: What,
    /// why, in words
    pub because: String,
}

/// What these orders and entries decide. Entries that tell a fact again decide nothing.
pub(crate) fn of(orders: &[Order], entries: &[Body], at: WallTime, listened: Duration) -> Vec<Decided> {
    let orders = orders.iter().filter_map(by_order);
    let entries = entries.iter().filter_map(by_entry);
    let decided = |(about, what, because)| Decided { at, listened, about, what, because };
    entries.chain(orders).map(decided).collect()
}

fn by_order(order: &Order) -> Option<(About, What, String)> {
    let (attempt, what, because) = match order {
        Order::Launch { attempt, because, .. } => (attempt, What::Launch, because),
        Order::AskStrategy { attempt, because, .. } => (attempt, What::Ask, because),
        Order::EndAttempt { attempt, reason, because, .. } => (attempt, What::End(*reason), because),
        Order::EndOrphan { attempt, because, .. } => (attempt, What::EndOrphan, because),
        Order::RecordLost { attempt, because } => (attempt, What::Lost, because),
        Order::CheckGroupLock { .. } => return None,
    };
    let AttemptName { job, number, epoch } = attempt;
    Some((About { subject: job.to_string(), attempt: *number, epoch: *epoch }, what, because.clone()))
}

fn by_entry(entry: &Body) -> Option<(About, What, String)> {
    match entry {
        Body::Transition { subject, kind, attempt, epoch, current, reason, .. } => {
            let epoch = super::epoch_of(*kind, *epoch);
            let about = About { subject: subject.to_string(), attempt: *attempt, epoch };
            Some((about, What::Verdict(*current), reason.clone()))
        }
        Body::Phase { subject, attempt, epoch, phase, reason } => {
            let about = About { subject: subject.to_string(), attempt: *attempt, epoch: *epoch };
            Some((about, What::Phase(*phase), reason.clone()))
        }
        Body::Alert(told) => {
            let about = About { subject: told.fingerprint.clone(), attempt: 0, epoch: 0 };
            Some((about, What::Alert(told.telling), told.summary.clone()))
        }
        Body::Agent { what, detail } if what.starts_with("blackout") => {
            let about = About { subject: "agent".to_owned(), attempt: 0, epoch: 0 };
            Some((about, What::Blackout, detail.clone()))
        }
        Body::Agent { .. }
        | Body::Beat { .. }
        | Body::AttemptStarted { .. }
        | Body::AttemptEnded { .. }
        | Body::LeaseExpired { .. } => None,
    }
}
