//! A sink: fed from the journal, in order, at least once, from one durable cursor.

use std::collections::VecDeque;
use std::time::Duration;

use latido_driver::Fact;
use latido_plugin_host::{
    Acknowledgement, CallError, Delivery, DeliveryProgress, Entries, Host, Kind, LoadError, Next, PluginSpec, Sink,
};
use latido_store::{EntryRow, Store, StoreError};
use tokio::sync::watch;

use super::{Ground, Wait, entries};
use crate::clock;
use crate::driver_thread::Ended;
use crate::journal;
use crate::settings::{PluginSettings, SinkSettings};

/// Entries come singly and in swarms: what comes within this time goes in one batch.
const GATHER_FOR: Duration = Duration::from_millis(20);

/// Between two tries to read a journal that cannot be read.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Entries kept at hand beyond a batch: those that a search for a poison entry leaves out for a while.
const BEYOND_BATCH: usize = 8;

/// Runs a sink until the agent ends.
pub(crate) async fn run(mut ground: Ground, settings: SinkSettings, sequence: watch::Receiver<u64>) {
    let mut sink = ground.load_once(&settings.plugin, Kind::Sink, load).await;
    while sink.is_none() {
        match ground.wait(super::LOAD_AGAIN_AFTER).await {
            Wait::Over => sink = ground.load_once(&settings.plugin, Kind::Sink, load).await,
            Wait::Ends => return,
            Wait::Reload(told) => {
                ground.load_again(&settings.plugin, Kind::Sink, load, &mut sink, told).await;
            }
        }
    }
    let name = settings.plugin.name.clone();
    let attached = ground.loader.driver.ask({
        let name = name.clone();
        move |driver| {
            let store = driver.store();
            let cursor = store.attach_sink(&name).map(|cursor| cursor.sequence);
            (cursor, store.journal_id().to_owned())
        }
    });
    let Ok((cursor, journal)) = attached.await else { return };
    // A store that is away when the sink is attached: it gets what it has already once more, from the oldest entry.
    let cursor = cursor.unwrap_or(0);
    let batch_max = usize::try_from(settings.plugin.limits.batch_max.get()).unwrap_or(usize::MAX);
    let feed = Feed {
        kinds: settings.entries.iter().map(|kind| kind.as_str().to_owned()).collect(),
        delivery: Delivery::new(batch_max),
        window_max: batch_max.saturating_add(BEYOND_BATCH),
        window: VecDeque::new(),
        read_to: cursor,
        name,
        journal,
        cursor,
        plugin: settings.plugin,
    };
    ground.statuses.update(&feed.name, |status| status.cursor = Some(cursor));
    feed.run(ground, sink, sequence).await;
}

pub(super) async fn load(host: &Host, spec: PluginSpec) -> Result<Sink, LoadError> {
    host.load_sink(spec).await
}

/// Where a sink is in the journal.
struct Feed {
    name: String,
    plugin: PluginSettings,
    kinds: Vec<String>,
    journal: String,
    delivery: Delivery,
    /// entries after the cursor, as far as they are read
    window: VecDeque<EntryRow>,
    window_max: usize,
    /// everything up to here is in the window, or is of a kind that the sink does not want
    read_to: u64,
    cursor: u64,
}

impl Feed {
    async fn run(mut self, mut ground: Ground, mut sink: Option<Sink>, mut sequence: watch::Receiver<u64>) {
        loop {
            sequence.mark_unchanged();
            let Some(there_is) = sink.as_mut() else { return };
            let turn = self.turn(&ground, there_is).await;
            ground.costs(&self.name, there_is.costs());
            let wait = match turn {
                Ok(Turn::Again) => ground.wait(Duration::ZERO).await,
                Ok(Turn::Wait(length)) => ground.wait(length).await,
                Ok(Turn::Idle) => {
                    let more = async {
                        match sequence.changed().await {
                            Ok(()) => tokio::time::sleep(GATHER_FOR).await,
                            Err(_) => std::future::pending().await, // the agent is ending, which is heard as well
                        }
                    };
                    ground.wait_for(more).await
                }
                Ok(Turn::Stopped) => ground.wait_for(std::future::pending()).await,
                Err(Ended) => return,
            };
            match wait {
                Wait::Over => {}
                Wait::Ends => return,
                Wait::Reload(told) => {
                    if ground.load_again(&self.plugin, Kind::Sink, load, &mut sink, told).await {
                        self.delivery.release();
                    }
                }
            }
        }
    }

    async fn turn(&mut self, ground: &Ground, sink: &mut Sink) -> Result<Turn, Ended> {
        if let Err(error) = self.read_on(ground).await? {
            tracing::warn!(sink = self.name, %error, "cannot read the journal; tried again");
            return Ok(Turn::Wait(READ_AGAIN_AFTER));
        }
        let now = clock::reading().monotonic;
        let (skip, count) = match self.delivery.next(now, self.window.len()) {
            Next::Send { skip, count } => (skip, count),
            Next::Wait(until) => {
                if self.delivery.is_open() {
                    ground.statuses.update(&self.name, |status| "backing-off".clone_into(&mut status.state));
                }
                return Ok(Turn::Wait(until.saturating_sub(now)));
            }
            Next::Idle => {
                // Entries of kinds that the sink does not want need no second look.
                if self.window.is_empty() && self.read_to > self.cursor {
                    self.advance(ground, self.read_to).await?;
                }
                return Ok(Turn::Idle);
            }
            Next::Stopped(why) => {
                let detail = format!("{why}; `latido plugin reload {}` begins anew", self.name);
                ground.fails(&self.name, "quarantined", &detail).await;
                return Ok(Turn::Stopped);
            }
        };
        let mut batch = Entries::new(self.journal.clone());
        for row in self.window.iter().skip(skip).take(count) {
            if let Some(entry) = journal::entry(row, &self.journal) {
                entries::add(&mut batch, &entry);
            }
        }
        let answer = sink.write(&batch).await;
        if let Some(recorder) = ground.loader.records.of(&self.name) {
            recorder.wrote(&batch, &answer);
        }
        let now = clock::reading().monotonic;
        let progress = match &answer {
            Ok(Acknowledgement { durable, refused }) => {
                ground.works(&self.name).await;
                for refusal in refused {
                    self.set_aside(ground, refusal.sequence, &refusal.why).await?;
                }
                let sent = self.window.iter().skip(skip).take(count);
                let acknowledged = sent.filter(|row| row.sequence <= *durable).count();
                self.delivery.succeeded(now, acknowledged)
            }
            Err(error) => {
                ground.fault(&self.name, error).await;
                self.delivery.failed(now, error)
            }
        };
        self.move_on(ground, progress, answer.err()).await?;
        Ok(Turn::Again)
    }

    /// Fills the window from the journal.
    async fn read_on(&mut self, ground: &Ground) -> Result<Result<(), StoreError>, Ended> {
        let room = self.window_max.saturating_sub(self.window.len());
        if room == 0 {
            return Ok(Ok(()));
        }
        let (kinds, after) = (self.kinds.clone(), self.read_to);
        let read = ground.loader.driver.ask(move |driver| {
            // Read before the entries: what comes later is not skipped.
            let last = driver.store().last_sequence()?;
            Ok::<_, StoreError>((last, driver.store().entries_after(after, &kinds, room)?))
        });
        let (last, rows) = match read.await? {
            Ok(read) => read,
            Err(error) => return Ok(Err(error)),
        };
        let newest = rows.last().map_or(after, |row| row.sequence);
        self.read_to = if rows.len() < room { last.max(newest) } else { newest };
        self.window.extend(rows);
        Ok(Ok(()))
    }

    /// Sets aside what could not be delivered, and moves the cursor.
    async fn move_on(
        &mut self,
        ground: &Ground,
        progress: DeliveryProgress,
        error: Option<CallError>,
    ) -> Result<(), Ended> {
        let why = error.map_or_else(|| "it failed alone, twice".to_owned(), |error| latido_protocol::chain(&error));
        for poison in self.window.iter().take(progress.aside).map(|row| row.sequence).collect::<Vec<_>>() {
            self.set_aside(ground, poison, &why).await?;
        }
        let reached = self.window.drain(..progress.advance.min(self.window.len())).next_back();
        match reached {
            Some(row) => self.advance(ground, row.sequence).await,
            None => Ok(()),
        }
    }

    /// Sets an entry aside, visibly: in the store, the journal and the status.
    async fn set_aside(&self, ground: &Ground, poison: u64, why: &str) -> Result<(), Ended> {
        let (name, reason) = (self.name.clone(), why.to_owned());
        let kept = ground.loader.driver.ask(move |driver| driver.store().set_aside(&name, poison, &reason)).await?;
        if let Err(error) = kept {
            tracing::error!(sink = self.name, poison, %error, "cannot keep what was set aside; the journal's entry tells of it");
        }
        ground.statuses.update(&self.name, |status| status.set_aside += 1);
        let detail = format!("sink {} could not take entry {poison}, which is set aside: {why}", self.name);
        ground.loader.driver.tell(Fact::Noted { what: "entry-set-aside".to_owned(), detail }).await
    }

    async fn advance(&mut self, ground: &Ground, to: u64) -> Result<(), Ended> {
        let name = self.name.clone();
        match ground.loader.driver.ask(move |driver| driver.store().advance(&name, to)).await? {
            Ok(()) => ground.statuses.update(&self.name, |status| status.cursor = Some(to)),
            // A cursor that could not be kept is behind what the sink has: it gets those entries again after a restart.
            Err(error) => tracing::warn!(sink = self.name, %error, "cannot keep the cursor"),
        }
        self.cursor = to;
        Ok(())
    }
}

/// What follows a turn.
enum Turn {
    /// The next one.
    Again,
    /// The next one, after this long.
    Wait(Duration),
    /// Nothing until there are more entries.
    Idle,
    /// Nothing until somebody loads it again.
    Stopped,
}
