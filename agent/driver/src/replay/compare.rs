//! Two replays of one recording: where they decide differently, and what the recording tells of it afterwards.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_protocol::WallTime;
use latido_protocol::attempt::StopReason;
use latido_protocol::status::{Phase, Verdict};
use serde::{Deserialize, Serialize};

use super::decision::{About, Decided, What};
use super::sign::{Afterwards, Signs};

/// A decision that is another one under other settings: made by one of the two, or by both at different moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// whom it is about
    #[serde(flatten)]
    pub about: About,
    /// what is decided
    pub what: What,
    /// with the recorded settings; `None`: not at all
    pub then: Option<Side>,
    /// with the others; `None`: not at all
    pub other: Option<Side>,
    /// what the recording tells of it after the earlier of the two
    pub afterwards: Afterwards,
}

/// When and why one side decides it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// when, by the calendar of that time
    pub at: WallTime,
    /// when, in listening time since the recording began
    #[serde(rename = "listened_s", with = "crate::seconds")]
    pub listened: Duration,
    /// why, in words
    pub because: String,
}

impl Difference {
    /// When the earlier side decides it.
    #[must_use]
    pub fn listened(&self) -> Duration {
        self.then.iter().chain(&self.other).map(|side| side.listened).min().unwrap_or_default()
    }

    /// Answers whether the other settings alone decide it, or decide it earlier.
    #[must_use]
    pub fn is_sooner(&self) -> bool {
        match (&self.then, &self.other) {
            (Some(then), Some(other)) => other.listened < then.listened,
            (then, _) => then.is_none(),
        }
    }
}

/// Where the two decide differently, in the order of time. What follows from a difference about an attempt's end is left
/// out: the recording does not tell how that attempt would have gone on, nor what would have been launched for it.
#[must_use]
pub fn compare(then: &[Decided], other: &[Decided], signs: &Signs) -> Vec<Difference> {
    let mut differences = Vec::new();
    let (then, mut other) = (by_kind(then), by_kind(other));
    for (kind, then) in then {
        differences.extend(pair(&then, &other.remove(&kind).unwrap_or_default(), signs));
    }
    for alone in other.values() {
        differences.extend(pair(&[], alone, signs));
    }
    differences.sort_by(|one, two| (one.listened(), &one.about).cmp(&(two.listened(), &two.about)));
    without_consequences(differences)
}

/// Decisions that people act on, by whom they are about and what they are.
fn by_kind(decided: &[Decided]) -> BTreeMap<(About, String), Vec<&Decided>> {
    let mut kinds: BTreeMap<_, Vec<&Decided>> = BTreeMap::new();
    for decision in decided.iter().filter(|decision| counts(decision.what)) {
        kinds.entry((decision.about.clone(), decision.what.to_string())).or_default().push(decision);
    }
    kinds
}

/// Answers whether a decision is compared: what ends, starts or stops something, and what people are told of.
fn counts(what: What) -> bool {
    match what {
        What::End(_) | What::EndOrphan | What::Lost | What::Launch | What::Alert(_) | What::Blackout => true,
        What::Ask => false,
        What::Verdict(verdict) => match verdict {
            Verdict::Missing | Verdict::Stale | Verdict::Hung | Verdict::Failing => true,
            Verdict::Orphaned | Verdict::Dead | Verdict::Unknown => true,
            Verdict::Waiting | Verdict::Alive | Verdict::Late | Verdict::Ended => false,
        },
        What::Phase(phase) => match phase {
            Phase::Held | Phase::Stuck => true,
            Phase::Pending | Phase::Queued | Phase::Launching | Phase::Running | Phase::Draining => false,
            Phase::BackingOff | Phase::Paused | Phase::Ended => false,
        },
    }
}

/// Those of one kind: what both decide at the same moment is no difference. Of what is left, two are one decision at
/// different moments where nothing was heard of the subject between them.
fn pair(then: &[&Decided], other: &[&Decided], signs: &Signs) -> Vec<Difference> {
    let alone = |these: &[&Decided], those: &[&Decided]| -> Vec<Decided> {
        let is_alone = |one: &&&Decided| !those.iter().any(|two| two.listened == one.listened);
        these.iter().filter(is_alone).map(|one| (*one).clone()).collect()
    };
    let (then, other) = (alone(then, other), alone(other, then));
    let (mut then, mut other) = (then.into_iter().peekable(), other.into_iter().peekable());
    let mut differences = Vec::new();
    loop {
        differences.extend(match (then.peek(), other.peek()) {
            (None, None) => return differences,
            (Some(one), Some(two)) if is_one(one, two, signs) => difference(then.next(), other.next(), signs),
            (Some(one), Some(two)) if two.listened < one.listened => difference(None, other.next(), signs),
            (None, Some(_)) => difference(None, other.next(), signs),
            (Some(_), _) => difference(then.next(), None, signs),
        });
    }
}

fn is_one(one: &Decided, two: &Decided, signs: &Signs) -> bool {
    let (sooner, later) = if one.listened < two.listened { (one, two) } else { (two, one) };
    let sign = signs.after(&sooner.about, sooner.listened, stands_still(sooner.what)).after();
    sign.is_none_or(|after| sooner.listened + after > later.listened)
}

/// Answers whether it is decided for want of progress, which beats alone do not disprove.
fn stands_still(what: What) -> bool {
    matches!(what, What::End(StopReason::Hung) | What::Verdict(Verdict::Hung))
}

fn difference(then: Option<Decided>, other: Option<Decided>, signs: &Signs) -> Option<Difference> {
    let Decided { about, what, .. } = then.as_ref().or(other.as_ref())?;
    let (about, what) = (about.clone(), *what);
    let side = |decided: Decided| Side { at: decided.at, listened: decided.listened, because: decided.because };
    let (then, other) = (then.map(side), other.map(side));
    let mut difference = Difference { about, what, then, other, afterwards: Afterwards::Nothing };
    difference.afterwards = signs.after(&difference.about, difference.listened(), stands_still(what));
    Some(difference)
}

fn without_consequences(differences: Vec<Difference>) -> Vec<Difference> {
    // The moment from which on nothing is known of an attempt, by the job and the epoch.
    let mut parted: BTreeMap<(String, u64), Duration> = BTreeMap::new();
    differences
        .into_iter()
        .filter(|difference| {
            let About { subject, epoch, .. } = &difference.about;
            let moment = difference.listened();
            let is_known = |epoch: u64| parted.get(&(subject.clone(), epoch)).is_none_or(|parted| moment <= *parted);
            let follows = match difference.what {
                What::Launch | What::Ask | What::Phase(_) => !is_known(*epoch) || !is_known(epoch.saturating_sub(1)),
                What::End(_) | What::EndOrphan | What::Lost | What::Verdict(_) => !is_known(*epoch),
                What::Alert(_) | What::Blackout => false,
            };
            if !follows && matches!(difference.what, What::End(_) | What::EndOrphan | What::Lost) {
                parted.entry((subject.clone(), *epoch)).or_insert(moment);
            }
            !follows
        })
        .collect()
}
