//! How entries reach a sink that may fail: what is sent next, what comes again, what is set aside, when to leave it alone.
//!
//! Pure state: `now` is given, and nothing here sends anything. Positions count from the sink's cursor, the first entry
//! that it has not acknowledged.
//!
//! A fault brings the same batch again, to a new instance. The second fault on the same batch starts a search: the batch is
//! halved until one entry is left. That entry is only a *suspect* until an entry after it is accepted; then it is poison
//! and set aside. Where the entries after it fail too, it is not the entries: the circuit opens and nothing is set aside.

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::{CallError, PluginError};

/// Faults within [`FAULT_WINDOW`] that open the circuit. Faults of a search are its method and do not count.
const FAULTS: usize = 3;

/// How long a fault counts.
const FAULT_WINDOW: Duration = Duration::from_secs(60);

/// The first wait of an open circuit, and of a sink that asks to be called again; each further one is twice as long.
const BACKOFF: Duration = Duration::from_millis(200);

/// The longest of these waits.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// The bounds of what a sink may ask for with `retry-after`.
const RETRY_AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// How long to leave a sink alone that takes entries without acknowledging any: it gathers more before it writes.
const GATHERING: Duration = Duration::from_secs(1);

/// Neighbouring entries that may all be poison. More than these failing one by one is the plugin's own fault.
const SUSPECTS: usize = 3;

/// Openings of the circuit without [`WORKING`] between them after which the plugin is quarantined.
const OPENINGS: u32 = 5;

/// Failed probes of one opening after which the plugin is quarantined: about five minutes of failing.
const PROBES: u32 = 12;

/// How long a plugin has to work until its openings are forgotten.
const WORKING: Duration = Duration::from_secs(600);

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send `count` entries, leaving out the first `skip` after the cursor.
    Send {
        /// entries after the cursor that are not sent: suspects
        skip: usize,
        /// entries to send, in one batch
        count: usize,
    },
    /// Nothing before this moment.
    Wait(Duration),
    /// Nothing until there are more entries.
    Idle,
    /// Nothing until somebody acts: why, in words.
    Stopped(String),
}

/// What an answer means for the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries by which the cursor moves on.
    pub advance: usize,
    /// How many of these, the first ones, were not delivered: poison, to be set aside visibly.
    pub aside: usize,
    /// Whether this answer opened the circuit or stopped the delivery, which is worth an alert.
    pub opened: bool,
}

/// Where the delivery to one sink stands.
#[derive(Clone, Debug)]
pub struct Delivery {
    batch_max: usize,
    /// entries of the batch under way
    sent: usize,
    stage: Stage,
    /// entries at the cursor that failed alone
    suspects: usize,
    /// whether the sink has accepted anything since it was loaded
    proven: bool,
    faults: VecDeque<Duration>,
    wait_until: Option<Duration>,
    /// answers in a row that asked for another call
    refusals: u32,
    circuit: Circuit,
    openings: u32,
    working_since: Option<Duration>,
    stopped: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// As many entries as fit.
    Whole,
    /// The same number once more, after a fault.
    Again(usize),
    /// At most so many, of so many that hold a poison entry.
    Search { limit: usize, left: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Circuit {
    Closed,
    /// With the number of probes that failed.
    Open(u32),
}

impl Delivery {
    /// A delivery in batches of at most so many entries; at least one.
    pub fn new(batch_max: usize) -> Self {
        Self {
            batch_max: batch_max.max(1),
            sent: 0,
            stage: Stage::Whole,
            suspects: 0,
            proven: false,
            faults: VecDeque::new(),
            wait_until: None,
            refusals: 0,
            circuit: Circuit::Closed,
            openings: 0,
            working_since: None,
            stopped: None,
        }
    }

    /// Says what to do, where `pending` entries lie after the cursor. `now` counts from any fixed moment.
    pub fn next(&mut self, now: Duration, pending: usize) -> Next {
        if let Some(why) = &self.stopped {
            return Next::Stopped(why.clone());
        }
        if let Some(until) = self.wait_until {
            if now < until {
                return Next::Wait(until);
            }
            self.wait_until = None;
        }
        let available = pending.saturating_sub(self.suspects);
        if available == 0 {
            return Next::Idle;
        }
        let limit = match self.stage {
            _ if self.suspects > 0 => 1,
            Stage::Whole => self.batch_max,
            Stage::Again(count) => count,
            Stage::Search { limit, .. } => limit,
        };
        self.sent = limit.min(available);
        Next::Send { skip: self.suspects, count: self.sent }
    }

    /// Takes in that the batch was accepted, and that its first `acknowledged` entries are durable.
    pub fn succeeded(&mut self, now: Duration, acknowledged: usize) -> Progress {
        let acknowledged = acknowledged.min(self.sent);
        let aside = self.suspects;
        (self.suspects, self.refusals, self.proven) = (0, 0, true);
        if let Circuit::Open(_) = self.circuit {
            self.circuit = Circuit::Closed;
            self.faults.clear();
        }
        let since = *self.working_since.get_or_insert(now);
        if now.saturating_sub(since) >= WORKING {
            self.openings = 0;
        }
        let gone = aside + acknowledged;
        self.stage = match self.stage {
            Stage::Search { limit, left } if left > gone => {
                // A sink that gathers gets more at a time, or it would never write what it was given.
                let limit = if gone == 0 { (limit * 2).min(self.batch_max) } else { limit };
                Stage::Search { limit, left: left - gone }
            }
            Stage::Search { .. } | Stage::Whole | Stage::Again(_) => Stage::Whole,
        };
        if acknowledged == 0 {
            self.wait_until = Some(now + GATHERING);
        }
        Progress { advance: gone, aside, opened: false }
    }

    /// Takes in that the batch was not accepted.
    pub fn failed(&mut self, now: Duration, error: &CallError) -> Progress {
        match error {
            CallError::Fault(_) => self.faulted(now),
            CallError::Plugin { answer, .. } => match answer {
                PluginError::RetryAfter(ms) => {
                    let asked = Duration::from_millis(*ms).clamp(RETRY_AFTER.0, RETRY_AFTER.1);
                    self.refused(now, asked)
                }
                PluginError::Retry(_) | PluginError::Other(_) => self.refused(now, backoff(self.refusals)),
                PluginError::Permanent(_) => self.permanent(now),
                PluginError::InvalidConfig(_) | PluginError::Denied(_) => self.stop(error.to_string()),
            },
        }
    }

    /// Begins anew: the operator asked for it, or the plugin or its settings are others.
    pub fn release(&mut self) {
        *self = Self::new(self.batch_max);
    }

    /// Whether the circuit is open: the plugin is left alone for a while.
    pub fn is_open(&self) -> bool {
        self.circuit != Circuit::Closed
    }

    /// Why the delivery stands until somebody acts, if it does.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    fn refused(&mut self, now: Duration, wait: Duration) -> Progress {
        self.refusals = self.refusals.saturating_add(1);
        self.wait_until = Some(now + wait);
        Progress::default()
    }

    fn faulted(&mut self, now: Duration) -> Progress {
        self.working_since = None;
        if let Circuit::Open(probes) = self.circuit {
            return self.reopen(now, probes + 1);
        }
        match self.stage {
            Stage::Search { left, .. } => return self.narrow(now, left),
            Stage::Whole => self.stage = Stage::Again(self.sent),
            Stage::Again(_) => self.stage = Stage::Search { limit: self.sent, left: self.sent },
        }
        self.faults.retain(|at| now.saturating_sub(*at) < FAULT_WINDOW);
        self.faults.push_back(now);
        if self.faults.len() >= FAULTS {
            return self.open(now);
        }
        match self.stage {
            Stage::Search { left, .. } => self.narrow(now, left),
            Stage::Whole | Stage::Again(_) => Progress::default(),
        }
    }

    /// The batch can never be accepted: its poison entry is searched for at once. Alone, an entry is poison by the word of
    /// a sink that has accepted others.
    fn permanent(&mut self, now: Duration) -> Progress {
        let left = match self.stage {
            Stage::Search { left, .. } => left,
            Stage::Whole | Stage::Again(_) => self.sent,
        };
        if self.sent == 1 && self.suspects == 0 && self.proven {
            self.stage = if left > 1 { Stage::Search { limit: 1, left: left - 1 } } else { Stage::Whole };
            return Progress { advance: 1, aside: 1, opened: false };
        }
        self.narrow(now, left)
    }

    /// Halves the batch, or suspects the one entry that is left.
    fn narrow(&mut self, now: Duration, left: usize) -> Progress {
        if self.sent > 1 {
            self.stage = Stage::Search { limit: self.sent / 2, left };
            return Progress::default();
        }
        self.suspects += 1;
        self.stage = Stage::Search { limit: 1, left };
        if self.suspects > SUSPECTS { self.open(now) } else { Progress::default() }
    }

    fn open(&mut self, now: Duration) -> Progress {
        self.openings += 1;
        if self.openings >= OPENINGS {
            return self.stop(format!("quarantined: it failed again and again, {} times in all", self.openings));
        }
        self.suspects = 0;
        self.stage = Stage::Whole;
        self.circuit = Circuit::Open(0);
        self.wait_until = Some(now + backoff(self.openings - 1));
        Progress { opened: true, ..Progress::default() }
    }

    fn reopen(&mut self, now: Duration, probes: u32) -> Progress {
        if probes >= PROBES {
            return self.stop(format!("quarantined: it failed at {probes} probes in a row"));
        }
        self.circuit = Circuit::Open(probes);
        self.wait_until = Some(now + backoff(self.openings - 1 + probes));
        Progress::default()
    }

    fn stop(&mut self, why: String) -> Progress {
        self.stopped = Some(why);
        Progress { opened: true, ..Progress::default() }
    }
}

/// The wait after so many failures before it.
fn backoff(failures: u32) -> Duration {
    BACKOFF.saturating_mul(2_u32.saturating_pow(failures)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Fault, FaultKind};

    fn fault() -> CallError {
        let kind = FaultKind::Trap("unreachable".to_owned());
        CallError::Fault(Fault { plugin: "p".to_owned(), function: "write", kind })
    }

    fn answer(answer: PluginError) -> CallError {
        CallError::Plugin { plugin: "p".to_owned(), answer }
    }

    /// What a sink did in the end: delivered, set aside, calls that failed.
    #[derive(Debug, Default, PartialEq)]
    struct Told {
        delivered: Vec<u32>,
        aside: Vec<u32>,
        failures: u32,
        stopped: bool,
    }

    /// Delivers entries to a sink that fails as `fails` says, moving time on as it is asked to.
    fn deliver(entries: &[u32], batch_max: usize, fails: impl Fn(&[u32], Duration) -> Option<CallError>) -> Told {
        let mut delivery = Delivery::new(batch_max);
        let mut told = Told::default();
        let (mut now, mut cursor) = (Duration::ZERO, 0);
        for _ in 0..1000 {
            match delivery.next(now, entries.len() - cursor) {
                Next::Idle => return told,
                Next::Stopped(_) => {
                    told.stopped = true;
                    return told;
                }
                Next::Wait(until) => now = until,
                Next::Send { skip, count } => {
                    let batch = &entries[cursor + skip..cursor + skip + count];
                    let progress = match fails(batch, now) {
                        None => delivery.succeeded(now, count),
                        Some(error) => {
                            told.failures += 1;
                            delivery.failed(now, &error)
                        }
                    };
                    told.aside.extend(&entries[cursor..cursor + progress.aside]);
                    told.delivered.extend(&entries[cursor + progress.aside..cursor + progress.advance]);
                    cursor += progress.advance;
                }
            }
        }
        panic!("it never ends: {delivery:?}");
    }

    // Field case C253 (bytecodealliance/wasmtime#11086): a plugin that panics on entry 3 of 10.
    #[test]
    fn c253_a_poison_entry_is_set_aside_once_and_the_others_arrive() {
        let entries: Vec<u32> = (1..=10).collect();
        let told = deliver(&entries, 1000, |batch, _| batch.contains(&3).then(fault));
        assert_eq!(told.aside, [3]);
        assert_eq!(told.delivered, [1, 2, 4, 5, 6, 7, 8, 9, 10]);
        assert!(told.failures <= 6, "{} failures", told.failures);
    }

    #[test]
    fn a_passing_fault_loses_nothing_and_sets_nothing_aside() {
        let entries: Vec<u32> = (1..=10).collect();
        let once = std::cell::Cell::new(true);
        let told = deliver(&entries, 4, |_, _| once.replace(false).then(fault));
        assert_eq!(told.delivered, entries);
        assert_eq!((told.aside.len(), told.failures), (0, 1));
    }

    #[test]
    fn a_broken_plugin_is_quarantined_and_nothing_is_set_aside() {
        let entries: Vec<u32> = (1..=1000).collect();
        let told = deliver(&entries, 1000, |_, _| Some(fault()));
        assert!(told.stopped);
        assert_eq!((told.delivered.len(), told.aside.len()), (0, 0));
    }

    #[test]
    fn a_plugin_that_works_again_gets_everything() {
        let entries: Vec<u32> = (1..=100).collect();
        let told = deliver(&entries, 100, |_, now| (now < Duration::from_secs(30)).then(fault));
        assert_eq!(told.delivered, entries);
        assert_eq!((told.aside.len(), told.stopped), (0, false));
    }

    #[test]
    fn neighbouring_poison_entries_are_set_aside_together() {
        let entries: Vec<u32> = (1..=64).collect();
        let told = deliver(&entries, 64, |batch, _| batch.iter().any(|entry| (20..=22).contains(entry)).then(fault));
        assert_eq!(told.aside, [20, 21, 22]);
        assert_eq!(told.delivered.len(), 61);
    }

    #[test]
    fn a_lone_suspect_waits_for_an_entry_that_proves_it() {
        let told = deliver(&[7], 1000, |_, _| Some(fault()));
        assert_eq!(told, Told { failures: 2, ..Told::default() });
    }

    #[test]
    fn three_faults_in_a_minute_open_the_circuit() {
        let mut delivery = Delivery::new(10);
        let mut now = Duration::ZERO;
        for round in 1..=3_u32 {
            assert_eq!(delivery.next(now, 10), Next::Send { skip: 0, count: 10 });
            let progress = delivery.failed(now, &fault());
            assert_eq!(progress.opened, round == 3);
            if round < 3 {
                // The batch is accepted the second time, so no two faults fall on the same one.
                delivery.next(now, 10);
                delivery.succeeded(now, 10);
            }
            now += Duration::from_secs(10);
        }
        assert!(delivery.is_open());
        assert!(matches!(delivery.next(now - Duration::from_secs(10), 10), Next::Wait(_)));
        assert_eq!(delivery.next(now, 10), Next::Send { skip: 0, count: 10 });
        delivery.succeeded(now, 10);
        assert!(!delivery.is_open());
    }

    #[test]
    fn an_answer_is_no_fault() {
        let mut delivery = Delivery::new(10);
        delivery.next(Duration::ZERO, 10);
        delivery.failed(Duration::ZERO, &answer(PluginError::RetryAfter(1500)));
        assert_eq!(delivery.next(Duration::ZERO, 10), Next::Wait(Duration::from_millis(1500)));
        assert_eq!(delivery.next(Duration::from_millis(1500), 10), Next::Send { skip: 0, count: 10 });
        for _ in 0..20 {
            delivery.failed(Duration::ZERO, &answer(PluginError::Retry("busy".to_owned())));
        }
        assert_eq!(delivery.next(Duration::ZERO, 10), Next::Wait(BACKOFF_MAX));
        assert!(!delivery.is_open());
    }

    #[test]
    fn what_is_refused_for_ever_is_set_aside_by_a_sink_that_accepts_others() {
        let entries: Vec<u32> = (1..=10).collect();
        let never = || answer(PluginError::Permanent("never".to_owned()));
        let told = deliver(&entries, 4, |batch, _| batch.contains(&6).then(never));
        assert_eq!(told.aside, [6]);
        assert_eq!(told.delivered, [1, 2, 3, 4, 5, 7, 8, 9, 10]);
        let told = deliver(&entries, 4, |_, _| Some(never()));
        assert!(told.stopped);
        assert_eq!(told.aside.len(), 0);
    }

    #[test]
    fn wrong_settings_stop_until_released() {
        let mut delivery = Delivery::new(10);
        delivery.next(Duration::ZERO, 1);
        assert!(delivery.failed(Duration::ZERO, &answer(PluginError::InvalidConfig("no".to_owned()))).opened);
        assert!(matches!(delivery.next(Duration::from_secs(9999), 1), Next::Stopped(_)));
        delivery.release();
        assert_eq!(delivery.next(Duration::ZERO, 1), Next::Send { skip: 0, count: 1 });
    }

    #[test]
    fn a_sink_that_gathers_is_left_alone_and_given_more() {
        let mut delivery = Delivery::new(10);
        assert_eq!(delivery.next(Duration::ZERO, 4), Next::Send { skip: 0, count: 4 });
        assert_eq!(delivery.succeeded(Duration::ZERO, 0), Progress::default());
        assert_eq!(delivery.next(Duration::ZERO, 8), Next::Wait(GATHERING));
        assert_eq!(delivery.next(GATHERING, 8), Next::Send { skip: 0, count: 8 });
        assert_eq!(delivery.succeeded(GATHERING, 8).advance, 8);
    }
}
