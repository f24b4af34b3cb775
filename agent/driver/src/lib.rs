//! One step of the agent: what sources learned goes in, what is to be done comes out, and in between the policy
//! decided and the store wrote it down.
//!
//! The driver is synchronous and owns no clock, no process, no socket and no thread: it is given facts and clock
//! readings, and answers with orders. So the simulator runs the very same code as the daemon. It decides nothing:
//! every order is an action of the policy with names put in.
//!
//! An order is given out only after the records that came before it are durable. While the store is away, verdicts
//! still change in memory; records and orders wait, in bounded memory, and go out by themselves afterwards.

mod alert_requests;
mod alert_texts;
mod alerts;
mod apply;
mod book;
mod calendar;
mod carry;
mod document;
mod doing;
mod fact;
mod found;
mod limits;
mod listening;
mod memory;
mod record;
pub mod recording;
pub mod registry;
pub mod replay;
mod schedule;
mod seconds;
mod sweep;
mod translate;
mod watch_fact;
mod watched;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use latido_policy::{Event, GroupSettings, Moment, Policy, SubjectId};
use latido_protocol::SubjectName;
use latido_protocol::registry::Reply;
use latido_store::{Batch, NewEntry, Store, StoreError};

pub use alert_requests::{AlertRefused, recorded_alerts};
pub use book::Latest;
pub use fact::{AttemptName, Fact, Finding, FoundAttempt, FoundJob, FoundState, Order};
pub use limits::AgentLimits;
pub use listening::{LATENESS_MAX, Listening, PASS_EVERY, Passed, Reading};
pub use schedule::{Schedule, ScheduleError};
pub use sweep::{Reaped, Sweep};
pub use translate::{budget_used_up, class, heard, lease, settings, verdict};
pub use watch_fact::{CheckDefinition, Kept, Look, ProcessDefinition, Signaled, Timing, WatchFact};

use alert_texts::AlertBook;
use book::Book;
use calendar::Calendar;
use limits::SlotBook;
use record::RowState;
use recording::Recording;
use registry::{Carried, Registrar};

/// Entries that wait in memory while the store is away. Beyond it sampled beats are dropped first and everything
/// else is kept: transitions and endings are few.
const PENDING_BEATS_MAX: usize = 10_000;

/// A step's result.
#[derive(Debug)]
pub struct Output {
    /// what to do, in order
    pub orders: Vec<Order>,
    /// what questions are answered, each by its number. While the store is away only beats are, which were heard; the
    /// others wait until their records are durable.
    pub replies: Vec<(u64, Reply)>,
    /// subjects that were found, or whose verdict or phase changed: rules want to be asked about them
    pub changed: Vec<SubjectName>,
    /// what was written into the journal since the step before
    pub entries: Vec<NewEntry>,
    /// the journal's newest entry; grows when sinks have something to read
    pub last_sequence: u64,
    /// what the step gave up: one report, with counts and who
    pub sweep: Sweep,
    /// how long until the driver wants to be called again, with or without facts
    pub wake_in: Duration,
    /// why the store did not take the records, where it did not: orders wait. After [`StoreError::TakenOver`] they wait for
    /// ever, and whoever runs the driver has to end it.
    pub store_error: Option<StoreError>,
}

/// Puts policy, store and names together.
pub struct Driver<S> {
    policy: Policy,
    store: S,
    book: Book,
    alerts: AlertBook,
    slots: SlotBook,
    sweep: Sweep,
    listening: Listening,
    calendar: Calendar,
    /// when the listening time of checks was last written down
    checks_saved_at: Option<Moment>,
    history_every: Duration,
    pending: Batch,
    /// subjects whose rows are written with the next commit
    touched: BTreeSet<SubjectId>,
    /// what was written into the journal since the last step
    written: Vec<NewEntry>,
    /// where the driver is recorded, if it is
    recording: Option<Recording>,
    orders: Vec<Order>,
    changed: BTreeSet<SubjectName>,
    last_sequence: u64,
    stored: BTreeMap<SubjectName, StoredRow>,
    /// the last place in line that was given
    line: u64,
    registrar: Registrar,
    carried: Carried,
    replies: Vec<(u64, Reply)>,
    /// beats that the store kept and could not read, in words, until the journal is told
    beats_lost: Option<String>,
}

/// What the store remembered of a subject from before the agent's start.
struct StoredRow {
    kind: String,
    /// the rest, as its kind keeps it
    text: String,
    state: RowState,
    pickups: u32,
    epoch: u64,
    recorded: Option<latido_policy::Recorded>,
}

impl<S: Store> Driver<S> {
    /// Takes the store over, with what it remembers: a driver that took it before is refused with its next write.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn new(mut store: S, history_every: Duration) -> Result<Self, StoreError> {
        if let Err(error) = store.take() {
            tracing::warn!(%error, "the store is taken over with the first write that it takes");
        }
        let stored: BTreeMap<SubjectName, StoredRow> = store
            .subjects()?
            .into_iter()
            .filter_map(|row| {
                let name = row.name.parse().ok()?;
                let state = serde_json::from_str(&row.state).unwrap_or_default();
                let recorded = translate::recorded(&row.verdict, &row.phase);
                let (pickups, epoch) = (row.pickups, row.epoch);
                Some((name, StoredRow { kind: row.kind, text: row.state, state, pickups, epoch, recorded }))
            })
            .collect();
        let listening = Listening::default();
        let (mut policy, mut registrar) = (Policy::default(), Registrar::new(listening.now()));
        policy.handle_event(Event::RecoveryBegan, listening.now());
        let rows = store.registry()?;
        let beats_lost = rows.beats_lost.clone();
        let now = listening.now();
        registrar.restore(rows, now, |event| policy.handle_event(Event::Registry(event), now));
        policy.handle_event(Event::BaselineRemembered { moment: registrar.written_baseline() }, now);
        Ok(Self {
            policy,
            alerts: AlertBook { remembered: Some((store.alerts()?, store.silences()?)), ..AlertBook::default() },
            last_sequence: store.last_sequence()?,
            store,
            book: Book::default(),
            listening,
            registrar,
            carried: Carried::default(),
            replies: Vec::new(),
            beats_lost,
            slots: SlotBook::default(),
            sweep: Sweep::default(),
            calendar: Calendar::default(),
            checks_saved_at: None,
            history_every,
            pending: Batch::default(),
            touched: BTreeSet::new(),
            written: Vec::new(),
            recording: None,
            orders: Vec::new(),
            changed: BTreeSet::new(),
            line: stored.values().filter_map(|stored| stored.state.line).max().unwrap_or(0),
            stored,
        })
    }

    /// Applies everything that was learned, then judges what is due, writes down what was decided and says what is to
    /// be done. Facts that wait must be in `facts`: beats are applied before anything is judged.
    pub fn step(&mut self, facts: Vec<Fact>, reading: Reading) -> Output {
        let passed = self.listening.advance(reading);
        self.step_recorded(facts, passed)
    }

    /// Makes a step that was recorded, as its clocks were read then.
    pub fn step_again(&mut self, facts: Vec<Fact>, passed: Passed) -> Output {
        self.listening.follow(passed);
        self.step_recorded(facts, passed)
    }

    fn step_recorded(&mut self, facts: Vec<Fact>, passed: Passed) -> Output {
        let recorded = self.to_record(&facts);
        let output = self.step_on(facts, passed);
        if let Some(facts) = recorded {
            self.record_step(facts, passed, &output);
        }
        output
    }

    fn step_on(&mut self, facts: Vec<Fact>, Passed { gap, wall, .. }: Passed) -> Output {
        let now = self.listening.now();
        if let Some(length) = gap {
            self.policy.handle_event(Event::GapFound { length }, now);
            self.tell_silences(wall);
        }
        self.restore_alerts(wall);
        self.tell_lost_beats(wall);
        for fact in facts {
            self.apply(fact, now, wall);
        }
        self.tell_calendar(now, wall, gap);
        self.policy.handle_timeout(now);
        self.carry_all(wall);
        self.carry_registry(now, wall);
        // What fired for workers that have gone ends with them.
        self.carry_all(wall);
        self.save_checks(now);
        let store_error = self.commit().and_then(|()| self.keep_beats()).err();
        self.tell_store(store_error.is_some());
        let sweep = std::mem::take(&mut self.sweep);
        if !sweep.is_empty() {
            tracing::warn!(ended = sweep.ended.len(), lost = sweep.lost.len(), "sweep: {sweep}");
        }
        let orders = if store_error.is_none() { std::mem::take(&mut self.orders) } else { Vec::new() };
        let replies = self.take_replies(store_error.is_none());
        let next =
            self.policy.poll_timeout().into_iter().chain(self.registrar.write_at(self.policy.registry(), now)).min();
        Output {
            orders,
            replies,
            changed: std::mem::take(&mut self.changed).into_iter().collect(),
            entries: std::mem::take(&mut self.written),
            last_sequence: self.last_sequence,
            sweep,
            wake_in: self.listening.plan(next),
            store_error,
        }
    }

    /// Takes in what was decided for groups of workers. Called once, before the first step.
    pub fn set_groups(&mut self, groups: BTreeMap<SubjectName, GroupSettings>) {
        for event in self.registrar.set_groups(groups) {
            self.policy.handle_event(Event::Registry(event), self.listening.now());
        }
    }

    fn take_replies(&mut self, is_durable: bool) -> Vec<(u64, Reply)> {
        let replies = std::mem::take(&mut self.replies);
        let is_ready = |(_, reply): &(u64, Reply)| is_durable || matches!(reply, Reply::Advised { .. });
        let (ready, waiting) = replies.into_iter().partition(is_ready);
        self.replies = waiting;
        ready
    }

    /// Says when the step before was done. A step that took long heard nothing meanwhile, however soon the next one comes.
    pub fn rest(&mut self, reading: Reading) {
        self.listening.rest(reading);
    }

    /// Whether the store has everything that was decided.
    pub fn is_written(&self) -> bool {
        self.pending == Batch::default() && self.touched.is_empty()
    }

    /// The store, for what the policy has no part in: the sinks' cursors, the plugins' state, trimming.
    pub fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Gives the store back, with everything that was written.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The latest whole records of a job.
    pub fn latest(&self, job: &SubjectName) -> Option<&Latest> {
        self.book.id(job).and_then(|id| self.book.latest(id))
    }

    /// All jobs' names.
    pub fn names(&self) -> Vec<SubjectName> {
        self.book.iter().map(|(name, _, _)| name.clone()).collect()
    }

    /// Events that met a state in which they cannot happen, since the start. Not zero is a fault of latido.
    pub fn unexpected_count(&self) -> u64 {
        self.policy.unexpected_count()
    }

    /// Tells the policy whether the store took what was recorded. What follows is recorded with the next step.
    fn tell_store(&mut self, failed: bool) {
        if self.alerts.store_is_away == failed {
            return;
        }
        let event = if failed { Event::StoreFailed } else { Event::StoreRecovered };
        self.policy.handle_event(event, self.listening.now());
        self.store_answered(failed);
    }

    fn carry_all(&mut self, wall: latido_protocol::WallTime) {
        while let Some(action) = self.policy.poll_action() {
            self.carry(action, wall);
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.put_rows();
        let pending = &mut self.pending;
        if *pending == Batch::default() {
            return Ok(());
        }
        let durable = !pending.entries.iter().all(|entry| entry.kind == "beat")
            || !pending.removed.is_empty()
            || !pending.alerts.is_empty()
            || !pending.alerts_over.is_empty()
            || !pending.silences.is_empty()
            || !pending.silences_over.is_empty()
            || !pending.registry.iter().all(registry::is_passing);
        let result = if durable { self.store.commit(pending) } else { self.store.commit_quick(pending) };
        match result {
            Ok(committed) => {
                self.last_sequence = committed.last_sequence;
                if !committed.refused.is_empty() {
                    tracing::error!(refused = ?committed.refused, "the store holds newer rows: does another agent write to it?");
                }
                self.written.append(&mut std::mem::take(pending).entries);
                self.touched.clear();
                Ok(())
            }
            Err(error) => {
                self.bound_pending();
                Err(error)
            }
        }
    }

    /// Gives the store the beats that are due, after the rows that they belong to.
    fn keep_beats(&mut self) -> Result<(), StoreError> {
        let Some(batch) = self.registrar.beats(self.policy.registry()) else { return Ok(()) };
        let kept = self.store.keep_beats(&batch)?;
        self.registrar.beats_were_kept(kept);
        Ok(())
    }

    /// Says, once, that beats from before the start cannot be read.
    fn tell_lost_beats(&mut self, wall: latido_protocol::WallTime) {
        let Some(lost) = self.beats_lost.take() else { return };
        let detail = format!("beats of workers were lost, and each has a whole ttl from this start on: {lost}");
        tracing::error!("{detail}");
        self.pending.entries.push(record::entry(wall, &record::noted("beats-lost", detail)));
    }

    /// Keeps what waits for the store within bounds: beats up to a number. There is one row for each subject.
    fn bound_pending(&mut self) {
        // How long was listened is written again with the next step.
        self.pending.registry.retain(|write| !registry::is_passing(write));
        let beats = self.pending.entries.iter().filter(|entry| entry.kind == "beat").count();
        let mut excess = beats.saturating_sub(PENDING_BEATS_MAX);
        self.pending.entries.retain(|entry| {
            let drops = excess > 0 && entry.kind == "beat";
            excess -= usize::from(drops);
            !drops
        });
    }

    fn moment_to_wall(&self, moment: Moment) -> latido_protocol::WallTime {
        self.listening.wall(moment)
    }
}
