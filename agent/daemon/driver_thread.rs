//! The thread on which the driver lives: facts and questions come in by one bounded queue, orders go out.
//!
//! It waits for nothing but its queue and the store. Whatever is slow (a plugin, a process that will not end, a
//! client that does not read) waits elsewhere and comes back as a fact.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use latido_driver::{Driver, Fact, Order, Output};
use latido_protocol::SubjectName;
use latido_protocol::registry::{self, Reply};
use latido_store::{SqliteStore, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock;

/// Facts and questions that may wait. A supervisor's beats are coalesced, so this holds some hundred jobs' worth; when
/// it is full the senders wait, and the supervisors keep the newest beat for them.
const QUEUE_MAX: usize = 4096;

/// Inputs taken in before anything is judged: all that wait, so that nobody is judged whose beat has come already.
const STEP_MAX: usize = QUEUE_MAX + 1;

type Question = Box<dyn FnOnce(&mut Driver<SqliteStore>) + Send>;

enum Input {
    Fact(Fact),
    Question(Question),
    Registry(Box<registry::Question>, oneshot::Sender<Reply>),
    /// The life is over, whoever still holds a handle.
    End,
}

/// Questions whose answer waits for the store. Beyond it those are forgotten whose asker has gone.
const WAITING_MAX: usize = 4096;

/// A handle to the driver's thread.
#[derive(Clone)]
pub(crate) struct DriverHandle {
    inputs: SyncSender<Input>,
}

/// What comes out of it.
pub(crate) struct Flows {
    /// what is to be done
    pub(crate) orders: mpsc::UnboundedReceiver<Order>,
    /// subjects that rules want to be asked about
    pub(crate) changed: mpsc::UnboundedReceiver<SubjectName>,
    /// the journal's newest entry
    pub(crate) sequence: watch::Receiver<u64>,
    /// ends when it was told to, or every handle is gone, and the last step is done; or with the error that no step can pass,
    /// when the store is another agent's
    pub(crate) thread: JoinHandle<Result<(), StoreError>>,
}

/// Why the driver could not be asked: its thread has ended, which happens when the agent ends.
#[derive(Debug, thiserror::Error)]
#[error("reach the agent's driver: it has ended")]
pub(crate) struct Ended;

impl DriverHandle {
    pub(crate) fn start(driver: Driver<SqliteStore>) -> io::Result<(Self, Flows)> {
        let (inputs, queue) = sync_channel(QUEUE_MAX);
        // Unbounded on purpose: one order a job and one change a decision, each made by the policy, none by a guest.
        let (orders_out, orders) = mpsc::unbounded_channel();
        let (changed_out, changed) = mpsc::unbounded_channel();
        let (sequence_out, sequence) = watch::channel(0);
        let mut thread = Thread {
            driver,
            queue,
            orders: orders_out,
            changed: changed_out,
            sequence: sequence_out,
            waiting: BTreeMap::new(),
            ticket: 0,
        };
        let thread = std::thread::Builder::new().name("driver".to_owned()).spawn(move || thread.run())?;
        Ok((Self { inputs }, Flows { orders, changed, sequence, thread }))
    }

    /// Tells a fact; waits while the queue is full.
    pub(crate) async fn tell(&self, fact: Fact) -> Result<(), Ended> {
        self.send(Input::Fact(fact)).await
    }

    /// Asks the driver something, after all facts that were told before.
    pub(crate) async fn ask<T, F>(&self, question: F) -> Result<T, Ended>
    where
        T: Send + 'static,
        F: FnOnce(&mut Driver<SqliteStore>) -> T + Send + 'static,
    {
        let (answer_out, answer) = oneshot::channel();
        let question: Question = Box::new(move |driver| {
            // Nobody waits any more: the answer is for nobody.
            let _unheard = answer_out.send(question(driver));
        });
        self.send(Input::Question(question)).await?;
        answer.await.map_err(|_| Ended)
    }

    /// Asks the registry, and waits until the answer is as durable as it has to be.
    pub(crate) async fn ask_registry(&self, question: registry::Question) -> Result<Reply, Ended> {
        let (answer_out, answer) = oneshot::channel();
        self.send(Input::Registry(Box::new(question), answer_out)).await?;
        answer.await.map_err(|_| Ended)
    }

    /// Asks like [`DriverHandle::ask`], from a thread that may block.
    pub(crate) fn ask_and_block<T, F>(&self, question: F) -> Result<T, Ended>
    where
        T: Send + 'static,
        F: FnOnce(&mut Driver<SqliteStore>) -> T + Send + 'static,
    {
        let (answer_out, answer) = sync_channel(1);
        let question: Question = Box::new(move |driver| {
            let _unheard = answer_out.send(question(driver));
        });
        self.inputs.send(Input::Question(question)).map_err(|_| Ended)?;
        answer.recv().map_err(|_| Ended)
    }

    /// Lets the thread end when it has taken in what was told and asked before. Whoever asks later is answered that it has
    /// ended: a task that is in the middle of something holds no life up.
    pub(crate) async fn end(&self) {
        let _ended = self.send(Input::End).await;
    }

    async fn send(&self, input: Input) -> Result<(), Ended> {
        match self.inputs.try_send(input) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(_)) => Err(Ended),
            Err(TrySendError::Full(input)) => {
                let inputs = self.inputs.clone();
                let sent = tokio::task::spawn_blocking(move || inputs.send(input)).await;
                if matches!(sent, Ok(Ok(()))) { Ok(()) } else { Err(Ended) }
            }
        }
    }
}

struct Thread {
    driver: Driver<SqliteStore>,
    queue: Receiver<Input>,
    orders: mpsc::UnboundedSender<Order>,
    changed: mpsc::UnboundedSender<SubjectName>,
    sequence: watch::Sender<u64>,
    waiting: BTreeMap<u64, oneshot::Sender<Reply>>,
    ticket: u64,
}

impl Thread {
    fn run(&mut self) -> Result<(), StoreError> {
        let mut store_is_away = false;
        let mut wake_in = std::time::Duration::ZERO;
        loop {
            let first = match self.queue.recv_timeout(wake_in) {
                Ok(input) => Some(input),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let inputs: Vec<Input> = first.into_iter().chain(self.queue.try_iter()).take(STEP_MAX).collect();
            let (mut facts, mut questions, mut ends) = (Vec::new(), Vec::new(), false);
            for input in inputs {
                match input {
                    Input::Fact(fact) => facts.push(fact),
                    Input::Question(question) => questions.push(question),
                    Input::Registry(question, asker) => facts.push(self.asked(question, asker)),
                    Input::End => ends = true,
                }
            }
            let output = self.driver.step(facts, clock::reading());
            wake_in = output.wake_in;
            self.give_out(output, &mut store_is_away)?;
            // A question may change what is due, and what it wrote is given out by the next step.
            if !questions.is_empty() {
                wake_in = std::time::Duration::ZERO;
            }
            for question in questions {
                question(&mut self.driver);
            }
            self.driver.rest(clock::reading());
            if ends {
                break;
            }
        }
        // What was told last is written before the end.
        let output = self.driver.step(Vec::new(), clock::reading());
        self.give_out(output, &mut store_is_away)
    }

    fn asked(&mut self, question: Box<registry::Question>, asker: oneshot::Sender<Reply>) -> Fact {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.retain(|_, asker| !asker.is_closed());
        }
        self.ticket += 1;
        self.waiting.insert(self.ticket, asker);
        Fact::Asked { ticket: self.ticket, question }
    }

    fn give_out(&mut self, output: Output, store_is_away: &mut bool) -> Result<(), StoreError> {
        if let Some(error @ StoreError::TakenOver { .. }) = output.store_error {
            return Err(error);
        }
        match (&output.store_error, *store_is_away) {
            (Some(error), false) => {
                tracing::error!(%error, cause = ?std::error::Error::source(error), "cannot write; records and orders wait in memory");
                *store_is_away = true;
            }
            (None, true) => {
                tracing::warn!("the store takes writes again");
                *store_is_away = false;
            }
            _ => {}
        }
        for (ticket, reply) in output.replies {
            if let Some(asker) = self.waiting.remove(&ticket) {
                // Nobody waits any more: the answer is for nobody, and asked again it is the same.
                let _unheard = asker.send(reply);
            }
        }
        for order in output.orders {
            tracing::info!(?order, "decided");
            let _ended = self.orders.send(order);
        }
        for subject in output.changed {
            let _ended = self.changed.send(subject);
        }
        self.sequence.send_if_modified(|sequence| {
            let grew = *sequence < output.last_sequence;
            *sequence = output.last_sequence.max(*sequence);
            grew
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_life_ends_by_a_word_whoever_still_holds_a_handle() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("latido.db")).unwrap();
        let (driver, flows) = DriverHandle::start(Driver::new(store, Duration::from_secs(300)).unwrap()).unwrap();
        let held = driver.clone();
        driver.tell(Fact::Noted { what: "before".to_owned(), detail: String::new() }).await.unwrap();
        driver.end().await;
        let joined = tokio::task::spawn_blocking(move || flows.thread.join().unwrap().unwrap());
        tokio::time::timeout(Duration::from_secs(60), joined).await.expect("the thread ends").unwrap();
        assert!(held.ask(|_| ()).await.is_err(), "whoever asks later is told so");
        assert_eq!(*flows.sequence.borrow(), 1, "what was told before is written");
    }
}
