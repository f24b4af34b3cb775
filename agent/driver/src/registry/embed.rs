//! The registry as a program embeds it: one trait, with the rows in memory alone or in a store.

use latido_policy::Registry;
use latido_protocol::registry::{Question, RegistryStatus, Reply};
use latido_store::{Store, StoreError};

use super::{Carried, Registrar};
use crate::{Driver, Fact, Listening, Order, Output, Reading};

/// Tracks workers, their groups and who holds which target.
///
/// Every call brings the clocks' reading, and judges what is due before it answers. Whoever opens a group holds its
/// exclusive lock: the registry asks nobody about it.
pub trait WorkerRegistry {
    /// Answers a question. A claim is as durable as the implementation keeps anything, before it is answered.
    ///
    /// # Errors
    /// The rows could not be written; they wait and the same question may be asked again.
    fn ask(&mut self, question: Question, reading: Reading) -> Result<Reply, StoreError>;

    /// Judges what is due, and answers how long to wait before the next call if nobody asks anything meanwhile.
    ///
    /// # Errors
    /// The rows could not be written; they wait.
    fn sweep(&mut self, reading: Reading) -> Result<core::time::Duration, StoreError>;

    /// Answers all workers and targets of one moment, the latest that was told.
    fn status(&self) -> RegistryStatus;
}

/// Keeps everything in memory; it is gone with the value.
#[derive(Debug)]
pub struct MemoryRegistry {
    registry: Registry,
    registrar: Registrar,
    listening: Listening,
    ticket: u64,
}

impl Default for MemoryRegistry {
    fn default() -> Self {
        let listening = Listening::default();
        Self { registry: Registry::default(), registrar: Registrar::new(listening.now()), listening, ticket: 0 }
    }
}

impl MemoryRegistry {
    /// A registry with these groups; one that is not named has the defaults.
    pub fn new(groups: std::collections::BTreeMap<latido_protocol::SubjectName, latido_policy::GroupSettings>) -> Self {
        let mut memory = Self::default();
        let now = memory.listening.now();
        for event in memory.registrar.set_groups(groups) {
            memory.registry.handle_event(event, now);
        }
        memory
    }

    fn carry(&mut self) -> Carried {
        let mut carried = Carried::default();
        while let Some(action) = self.registry.poll_action() {
            self.registrar.carry(action, &self.registry, &mut carried);
        }
        self.registrar.settle(&self.registry);
        carried
    }

    /// Waits are told before anything is judged, as everywhere.
    fn advance(&mut self, reading: Reading) {
        self.listening.advance(reading);
    }

    fn judge(&mut self) -> Carried {
        self.registry.handle_timeout(self.listening.now());
        self.carry()
    }
}

impl WorkerRegistry for MemoryRegistry {
    fn ask(&mut self, question: Question, reading: Reading) -> Result<Reply, StoreError> {
        self.advance(reading);
        self.ticket += 1;
        let (ticket, now) = (self.ticket, self.listening.now());
        match self.registrar.ask(ticket, question, reading.wall) {
            Ok(events) => events.into_iter().for_each(|event| self.registry.handle_event(event, now)),
            Err(reply) => return Ok(reply),
        }
        let mut carried = self.judge();
        for (ticket, group) in std::mem::take(&mut carried.locks) {
            if let Some(event) = self.registrar.lock_seen(ticket, &group, true) {
                self.registry.handle_event(event, now);
            }
            carried.replies.extend(self.carry().replies);
        }
        self.listening.plan(self.registry.poll_timeout());
        Ok(reply(carried.replies, ticket))
    }

    fn sweep(&mut self, reading: Reading) -> Result<core::time::Duration, StoreError> {
        self.advance(reading);
        self.judge();
        Ok(self.listening.plan(self.registry.poll_timeout()))
    }

    fn status(&self) -> RegistryStatus {
        self.registrar.status(&self.registry)
    }
}

/// Keeps everything in a store, through the driver that the agent has.
pub struct StoredRegistry<S> {
    driver: Driver<S>,
    ticket: u64,
}

impl<S: Store> StoredRegistry<S> {
    /// A registry over a driver that is told of no jobs.
    pub fn new(driver: Driver<S>) -> Self {
        Self { driver, ticket: 0 }
    }

    /// Gives the driver back, with everything that was written.
    pub fn into_driver(self) -> Driver<S> {
        self.driver
    }
}

impl<S: Store> WorkerRegistry for StoredRegistry<S> {
    fn ask(&mut self, question: Question, reading: Reading) -> Result<Reply, StoreError> {
        self.ticket += 1;
        let ticket = self.ticket;
        let mut output =
            written(self.driver.step(vec![Fact::Asked { ticket, question: Box::new(question) }], reading))?;
        for order in std::mem::take(&mut output.orders) {
            if let Order::CheckGroupLock { ticket, group } = order {
                let seen = Fact::GroupLockSeen { ticket, group, is_held: true };
                output.replies.extend(written(self.driver.step(vec![seen], reading))?.replies);
            }
        }
        Ok(reply(output.replies, ticket))
    }

    fn sweep(&mut self, reading: Reading) -> Result<core::time::Duration, StoreError> {
        Ok(written(self.driver.step(Vec::new(), reading))?.wake_in)
    }

    fn status(&self) -> RegistryStatus {
        self.driver.workers()
    }
}

fn written(mut output: Output) -> Result<Output, StoreError> {
    match output.store_error.take() {
        Some(error) => Err(error),
        None => Ok(output),
    }
}

/// Every question has one answer in the step that it was told in, or in that of its lock.
fn reply(replies: Vec<(u64, Reply)>, ticket: u64) -> Reply {
    let found = replies.into_iter().find(|(of, _)| *of == ticket);
    found.map_or_else(|| super::refused("the registry gave no answer".to_owned()), |(_, reply)| reply)
}
