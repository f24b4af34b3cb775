//! Delivers entries to a sink as the agent does: what is not acknowledged comes again, what can never be stored is set aside,
//! and who fails again and again is left alone for a while. Its waits take no time here.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_plugin_host::{CallError, Delivery, Entries, Next, Sink};
use serde::Serialize;

use crate::told;

/// Rounds after which a sink is given up that takes nothing and does not say why.
const ROUNDS: usize = 2_000;

/// How often somebody comes and lets a delivery go on that stands.
const RELEASES: usize = 3;

/// Failures in a row after which a sink is given up: a search for one entry among a thousand takes fewer.
const FAILURES: usize = 30;

/// Words of a plugin that are kept.
const WORDS: usize = 20;

/// What became of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delivered {
    /// those that the sink says are durable
    pub acknowledged: BTreeSet<u64>,
    /// those that can never be stored
    pub aside: BTreeSet<u64>,
    /// those that it never took
    pub undelivered: BTreeSet<u64>,
    /// calls of `write`
    pub writes: u64,
    /// faults and errors, in words
    pub failures: Vec<String>,
    /// how often the delivery stood until somebody acted
    pub stops: usize,
}

/// Delivers entries with the numbers from 1 to `count`, made by `batch` from the first number and how many.
pub(crate) async fn deliver(
    sink: &mut Sink,
    count: usize,
    batch_max: usize,
    batch: &(dyn Fn(usize, usize) -> Entries + Sync),
) -> Delivered {
    let mut delivery = Delivery::new(batch_max);
    let mut told = Delivered::default();
    let (mut now, mut cursor, mut releases, mut in_a_row) = (Duration::ZERO, 0, 0, 0);
    for _ in 0..ROUNDS {
        let (skip, size) = match delivery.next(now, count - cursor) {
            Next::Idle => break,
            Next::Wait(until) => {
                now = until;
                continue;
            }
            Next::Stopped(_) if releases < RELEASES => {
                releases += 1;
                delivery.release();
                continue;
            }
            Next::Stopped(_) => break,
            Next::Send { skip, count } => (skip, count),
        };
        let entries = batch(cursor + skip, size);
        let sequences = entries.sequences().to_vec();
        told.writes += 1;
        let progress = match sink.write(&entries).await {
            Ok(said) => {
                in_a_row = 0;
                let durable = sequences.iter().take_while(|sequence| **sequence <= said.durable).count();
                let refused: BTreeSet<u64> = said.refused.iter().map(|refusal| refusal.sequence).collect();
                told.acknowledged.extend(sequences.iter().take(durable).filter(|it| !refused.contains(it)));
                told.aside.extend(refused);
                delivery.succeeded(now, durable)
            }
            Err(error) => {
                told.fails(&error);
                in_a_row += 1;
                if in_a_row > FAILURES {
                    break;
                }
                delivery.failed(now, &error)
            }
        };
        told.aside.extend(batch(cursor, progress.aside).sequences());
        cursor += progress.advance;
    }
    told.stops = releases;
    told.undelivered = batch(cursor, count - cursor).sequences().iter().copied().collect();
    told
}

impl Delivered {
    fn fails(&mut self, error: &CallError) {
        if self.failures.len() < WORDS {
            self.failures.push(match error {
                CallError::Plugin { answer, .. } => format!("it answered the error {}", told::error(answer)),
                CallError::Fault(fault) => fault.to_string(),
            });
        }
    }
}
