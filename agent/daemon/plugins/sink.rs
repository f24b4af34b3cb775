//! A sink: fed from the journal, in order, at least once, from one durable cursor.

use std::time::Duration;

use latido_driver::Fact;
use latido_plugin_host::{CallError, Kind, PluginError, Sink};
use latido_store::{EntryRow, Store};
use tokio::sync::watch;

use super::{Ground, Wait, entries};
use crate::heart::Ended;
use crate::journal;
use crate::settings::SinkSettings;

/// After a passing fault the same batch comes again: first at once to a new instance, then after this long, doubled
/// each time up to [`AGAIN_LONGEST`].
const AGAIN_FIRST: Duration = Duration::from_millis(200);

/// The longest wait between two tries.
const AGAIN_LONGEST: Duration = Duration::from_secs(60);

/// Entries come singly and in swarms: what comes within this time goes in one batch.
const GATHER_FOR: Duration = Duration::from_millis(20);

/// Faults on the same batch after which it is halved, until the poison entry stands alone and is set aside.
const FAULTS_PER_BATCH: u32 = 2;

/// Runs a sink until the agent ends.
pub(crate) async fn run(mut ground: Ground, settings: SinkSettings, sequence: watch::Receiver<u64>) {
    let name = settings.plugin.name.clone();
    let load = async |host: &latido_plugin_host::Host, spec| host.load_sink(spec).await;
    let sink = loop {
        if let Some(sink) = ground.load_once(&settings.plugin, Kind::Sink, load).await {
            break sink;
        }
        if matches!(ground.wait(super::LOAD_AGAIN_AFTER).await, Wait::Ends) {
            return;
        }
    };
    let attached = {
        let name = name.clone();
        ground.heart.ask(move |driver| driver.store().attach_sink(&name)).await
    };
    let cursor = match attached {
        Ok(Ok(cursor)) => cursor.sequence,
        // The store is away: the cursor is read again with each batch.
        Ok(Err(_)) => 0,
        Err(Ended) => return,
    };
    let batch_max = usize::try_from(settings.plugin.limits.batch_max.get()).unwrap_or(usize::MAX);
    let kinds = settings.entries.iter().map(|kind| kind.as_str().to_owned()).collect();
    let journal = ground.heart.ask(|driver| driver.store().journal_id().to_owned()).await;
    let Ok(journal) = journal else { return };
    let feed = Feed { name, kinds, journal, batch_max, size: batch_max, faults: 0, tries: 0, cursor };
    feed.run(ground, sink, sequence).await;
}

/// Where a sink is in the journal, and how it fares.
struct Feed {
    name: String,
    kinds: Vec<String>,
    journal: String,
    batch_max: usize,
    /// entries in the next batch: halved while one of them is poison
    size: usize,
    /// faults on the batch at hand
    faults: u32,
    /// tries in a row that brought nothing
    tries: u32,
    cursor: u64,
}

/// What became of a batch.
enum Outcome {
    /// Durable up to this sequence.
    Durable(u64),
    /// To be given again after this long.
    Again(Duration),
    /// The sink can never take it.
    Refused(String),
    /// The sink broke over it.
    Broke(String),
}

impl Feed {
    async fn run(mut self, mut ground: Ground, mut sink: Sink, mut sequence: watch::Receiver<u64>) {
        loop {
            sequence.mark_unchanged();
            let wait = match self.turn(&ground, &mut sink).await {
                Ok(Some(wait)) => wait,
                Ok(None) => {
                    // Everything is delivered; the next entry wakes it.
                    tokio::select! {
                        changed = sequence.changed() => if changed.is_err() { return },
                        _ = ground.ends.wait_for(|ends| *ends) => return,
                    }
                    GATHER_FOR
                }
                Err(Ended) => return,
            };
            if matches!(ground.wait(wait).await, Wait::Ends) {
                return;
            }
        }
    }

    /// Delivers one batch. Returns how long to wait, or `None` when nothing is left.
    async fn turn(&mut self, ground: &Ground, sink: &mut Sink) -> Result<Option<Duration>, Ended> {
        let (kinds, after, size) = (self.kinds.clone(), self.cursor, self.size);
        let read = ground
            .heart
            .ask(move |driver| {
                // Read before the entries: what comes later is not skipped.
                let last = driver.store().last_sequence()?;
                Ok::<_, latido_store::StoreError>((last, driver.store().entries_after(after, &kinds, size)?))
            })
            .await?;
        let (last, rows) = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(sink = self.name, %error, "cannot read the journal; tried again");
                return Ok(Some(self.again()));
            }
        };
        if rows.is_empty() {
            if last > self.cursor {
                self.advance(ground, last).await?;
            }
            return Ok(None);
        }
        let complete = rows.len() < size;
        match self.give(ground, sink, &rows).await {
            Outcome::Durable(sequence) => {
                let newest = rows.last().map_or(sequence, |row| row.sequence);
                let all = sequence >= newest;
                // Entries of kinds that the sink does not want lie between; they need no second look.
                let reached = if all && complete { last.max(sequence) } else { sequence };
                let moved = reached > self.cursor;
                if moved {
                    self.advance(ground, reached).await?;
                    self.recovered();
                }
                if all && complete {
                    return Ok(None);
                }
                Ok(Some(if moved { Duration::ZERO } else { self.again() }))
            }
            Outcome::Again(wait) => Ok(Some(wait)),
            Outcome::Refused(why) => self.halve_or_set_aside(ground, &rows, why, true).await.map(Some),
            Outcome::Broke(why) => self.halve_or_set_aside(ground, &rows, why, false).await.map(Some),
        }
    }

    async fn give(&mut self, ground: &Ground, sink: &mut Sink, rows: &[EntryRow]) -> Outcome {
        let batch: Vec<_> =
            rows.iter().filter_map(|row| journal::entry(row, &self.journal)).map(entries::to_guest).collect();
        match sink.write(&batch).await {
            Ok(sequence) => {
                ground.works(&self.name).await;
                Outcome::Durable(sequence)
            }
            Err(error) => {
                ground.fault(&self.name, &error).await;
                let words = crate::actions::chain(&error);
                match error {
                    CallError::Fault(_) => Outcome::Broke(words),
                    CallError::Plugin { answer: PluginError::Permanent(_), .. } => Outcome::Refused(words),
                    CallError::Plugin { answer: PluginError::RetryAfter(ms), .. } => {
                        Outcome::Again(self.again().max(Duration::from_millis(ms).min(AGAIN_LONGEST)))
                    }
                    CallError::Plugin { .. } => Outcome::Again(self.again()),
                }
            }
        }
    }

    /// Closes in on the entry that the sink cannot take: halves the batch until it stands alone, then sets it aside.
    async fn halve_or_set_aside(
        &mut self,
        ground: &Ground,
        rows: &[EntryRow],
        why: String,
        refused: bool,
    ) -> Result<Duration, Ended> {
        self.faults += 1;
        if !refused && self.faults < FAULTS_PER_BATCH {
            return Ok(Duration::ZERO);
        }
        if rows.len() > 1 {
            self.size = rows.len().div_ceil(2);
            self.faults = 0;
            return Ok(self.again());
        }
        let Some(poison) = rows.first().map(|row| row.sequence) else { return Ok(Duration::ZERO) };
        let (name, reason) = (self.name.clone(), why.clone());
        let kept = ground.heart.ask(move |driver| driver.store().set_aside(&name, poison, &reason)).await?;
        if let Err(error) = kept {
            tracing::warn!(sink = self.name, %error, "cannot set an entry aside; tried again");
            return Ok(self.again());
        }
        let detail = format!("sink {} could not take entry {poison}, which is set aside: {why}", self.name);
        ground.statuses.update(&self.name, |status| status.set_aside += 1);
        ground.heart.tell(Fact::Noted { what: "entry-set-aside".to_owned(), detail }).await?;
        self.advance(ground, poison).await?;
        self.recovered();
        Ok(Duration::ZERO)
    }

    async fn advance(&mut self, ground: &Ground, to: u64) -> Result<(), Ended> {
        let name = self.name.clone();
        let moved = ground.heart.ask(move |driver| driver.store().advance(&name, to)).await?;
        match moved {
            // A cursor that could not be kept is behind what the sink has: it gets those entries again after a restart.
            Ok(()) => ground.statuses.update(&self.name, |status| status.cursor = Some(to)),
            Err(error) => tracing::warn!(sink = self.name, %error, "cannot keep the cursor"),
        }
        self.cursor = to;
        Ok(())
    }

    fn recovered(&mut self) {
        self.faults = 0;
        self.tries = 0;
        self.size = (self.size.saturating_mul(2)).min(self.batch_max);
    }

    fn again(&mut self) -> Duration {
        let wait = AGAIN_FIRST.saturating_mul(1 << self.tries.min(16)).min(AGAIN_LONGEST);
        self.tries = self.tries.saturating_add(1);
        wait
    }
}
