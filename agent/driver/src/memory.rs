//! What the store keeps of checks and processes beyond its columns. Moments are kept as listening time before they were
//! written, so that the time in which no agent ran counts for nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_policy::{CheckMemory, Expectation, Fingerprint, LastRun, Moment, OpenRun, Runs};
use latido_protocol::WallTime;
use latido_protocol::files::Identity;
use serde::{Deserialize, Serialize};

use crate::translate;
use crate::watched::{CheckLatest, Paused, ProcessLatest};

/// The rest of a row as JSON.
pub(crate) fn text(row: &impl Serialize) -> String {
    // Texts and numbers of our own: this cannot fail, and an empty object would show if it did.
    serde_json::to_string(row).unwrap_or_else(|_| "{}".to_owned())
}

/// What is kept of a check.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckRow {
    /// a check of another definition inherits nothing of this
    pub(crate) definition: String,
    pause: Option<Pause>,
    last: Last,
    sign_ms: Option<u64>,
    open: Vec<Open>,
    ended: Vec<String>,
    /// the moment of the calendar that was waited for
    pending: Option<WallTime>,
    next: Option<Expected>,
    is_next_met: bool,
    due_mark: Option<u64>,
    owed: Option<Expected>,
    pub(crate) last_signal: Option<WallTime>,
    pub(crate) signals: u64,
    pub(crate) state: Option<String>,
    #[serde(default)]
    pub(crate) last_kept: Option<String>,
}

/// What is kept of a watched process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessRow {
    /// a process of another definition inherits nothing of this
    pub(crate) definition: String,
    pause: Option<Pause>,
    pub(crate) identity: Option<Identity>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pause {
    until: Option<WallTime>,
    /// listening time since it began
    #[serde(default)]
    lasted_ms: u64,
}

impl Pause {
    fn of(pause: Paused, now: Moment) -> Self {
        Self { until: pause.until, lasted_ms: millis(now.since(pause.since)) }
    }

    fn recall(self, now: Moment) -> Paused {
        Paused { until: self.until, since: before(now, self.lasted_ms) }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Last {
    Unheard,
    Begun,
    Succeeded { ago_ms: u64 },
    Failed { ago_ms: u64, status: Option<u8> },
    Unended { ago_ms: u64 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Open {
    id: Option<String>,
    ago_ms: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Expected {
    mark: u64,
    /// how long ago it was
    ago_ms: u64,
    /// how far ahead it is
    in_ms: u64,
    spacing_ms: u64,
    in_gap: bool,
}

impl Expected {
    fn of(expectation: Expectation, now: Moment) -> Self {
        Self {
            mark: expectation.mark,
            ago_ms: millis(now.since(expectation.moment)),
            in_ms: millis(expectation.moment.since(now)),
            spacing_ms: millis(expectation.spacing),
            in_gap: expectation.in_gap,
        }
    }

    fn recall(self, now: Moment) -> Expectation {
        Expectation {
            mark: self.mark,
            moment: before(now, self.ago_ms).after(Duration::from_millis(self.in_ms)),
            spacing: Duration::from_millis(self.spacing_ms),
            in_gap: self.in_gap,
        }
    }
}

impl CheckRow {
    pub(crate) fn of(
        latest: &CheckLatest,
        pause: Option<Paused>,
        memory: &CheckMemory,
        pending: Option<WallTime>,
        now: Moment,
    ) -> Self {
        let ago_ms = |moment| millis(now.since(moment));
        let id = |run: Fingerprint| latest.run_ids.get(&run).cloned();
        Self {
            definition: latest.timing.definition(),
            pause: pause.map(|pause| Pause::of(pause, now)),
            last: match memory.last {
                LastRun::Unheard => Last::Unheard,
                LastRun::Begun => Last::Begun,
                LastRun::Succeeded { at } => Last::Succeeded { ago_ms: ago_ms(at) },
                LastRun::Failed { at, status } => Last::Failed { ago_ms: ago_ms(at), status },
                LastRun::Unended { began } => Last::Unended { ago_ms: ago_ms(began) },
            },
            sign_ms: memory.sign_at.map(ago_ms),
            open: memory.runs.open().map(|run| Open { id: run.id.and_then(id), ago_ms: ago_ms(run.began) }).collect(),
            ended: memory.runs.ended().filter_map(id).collect(),
            pending,
            next: memory.next.map(|next| Expected::of(next, now)),
            is_next_met: memory.is_next_met,
            due_mark: memory.due_mark,
            owed: memory.owed.map(|owed| Expected::of(owed, now)),
            last_signal: latest.last_signal,
            signals: latest.signals,
            state: latest.state.clone(),
            last_kept: latest.last_kept.clone(),
        }
    }

    pub(crate) fn pause(&self, now: Moment) -> Option<Paused> {
        self.pause.map(|pause| pause.recall(now))
    }

    pub(crate) fn pending(&self) -> Option<WallTime> {
        self.pending
    }

    pub(crate) fn run_ids(&self) -> BTreeMap<Fingerprint, String> {
        let open = self.open.iter().filter_map(|run| run.id.clone());
        open.chain(self.ended.iter().cloned()).map(|id| (translate::fingerprint(&id), id)).collect()
    }

    /// What the policy is told of it. Nothing has come nearer since it was written.
    pub(crate) fn recall(&self, now: Moment) -> CheckMemory {
        let open = self
            .open
            .iter()
            .map(|run| OpenRun { id: run.id.as_ref().map(translate::fingerprint), began: before(now, run.ago_ms) });
        CheckMemory {
            last: match self.last {
                Last::Unheard => LastRun::Unheard,
                Last::Begun => LastRun::Begun,
                Last::Succeeded { ago_ms } => LastRun::Succeeded { at: before(now, ago_ms) },
                Last::Failed { ago_ms, status } => LastRun::Failed { at: before(now, ago_ms), status },
                Last::Unended { ago_ms } => LastRun::Unended { began: before(now, ago_ms) },
            },
            sign_at: self.sign_ms.map(|ago_ms| before(now, ago_ms)),
            runs: Runs::remembered(open, self.ended.iter().map(translate::fingerprint)),
            next: self.next.map(|next| next.recall(now)),
            is_next_met: self.is_next_met,
            due_mark: self.due_mark,
            owed: self.owed.map(|owed| owed.recall(now)),
        }
    }
}

impl ProcessRow {
    pub(crate) fn of(latest: &ProcessLatest, pause: Option<Paused>, now: Moment) -> Self {
        Self {
            definition: latest.definition.clone(),
            pause: pause.map(|pause| Pause::of(pause, now)),
            identity: latest.identity.clone(),
        }
    }

    pub(crate) fn pause(&self, now: Moment) -> Option<Paused> {
        self.pause.map(|pause| pause.recall(now))
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn before(now: Moment, ago_ms: u64) -> Moment {
    now.before(Duration::from_millis(ago_ms))
}
