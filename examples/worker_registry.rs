//! The registry of workers inside a program of one's own: no agent, no store, no runtime, and a clock of one's own.
//!
//! `cargo run -p latido-driver --example worker_registry`
#![expect(clippy::print_stdout, reason = "an example tells what it does")]

use std::error::Error;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_driver::Reading;
use latido_driver::registry::{MemoryRegistry, WorkerRegistry};
use latido_protocol::registry::{Question, Registration, Reply, TargetName, WorkerBeat};
use latido_protocol::{Span, SubjectName, WallTime};

/// A dispatcher is given its registry and does not care which one it is: a test gives it one in memory.
struct Dispatcher<'a> {
    registry: &'a mut dyn WorkerRegistry,
    /// What a real program reads from its clocks.
    now: Duration,
}

impl Dispatcher<'_> {
    fn reading(&self) -> Reading {
        let wall = WallTime::from_millis(u64::try_from(self.now.as_millis()).unwrap_or(u64::MAX));
        Reading { monotonic: self.now, boottime: self.now, wall }
    }

    fn ask(&mut self, question: Question) -> Result<Reply, Box<dyn Error>> {
        let reading = self.reading();
        Ok(self.registry.ask(question, reading)?)
    }

    /// Sleeps as the registry wants it, here by moving the clock.
    fn pass(&mut self, length: Duration) -> Result<(), Box<dyn Error>> {
        let end = self.now + length;
        while self.now < end {
            let wake_in = self.registry.sweep(self.reading())?;
            self.now = end.min(self.now + wake_in.max(Duration::from_millis(1)));
        }
        self.registry.sweep(self.reading())?;
        Ok(())
    }

    fn register(&mut self, worker: &SubjectName) -> Result<Reply, Box<dyn Error>> {
        self.ask(Question::Register(Registration {
            worker: worker.clone(),
            group: "containers".parse()?,
            instance: None,
            interval_s: Some(Span(Duration::from_secs(5))),
            ttl_s: None,
            missed: NonZeroU32::new(3),
            start_within_s: None,
            host: None,
            pid: None,
        }))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = MemoryRegistry::default();
    let mut dispatcher = Dispatcher { registry: &mut registry, now: Duration::from_secs(60) };
    let (one, two): (SubjectName, SubjectName) = ("container-1".parse()?, "container-2".parse()?);
    println!("{:?}", dispatcher.register(&one)?);
    println!("{:?}", dispatcher.register(&two)?);

    let target: TargetName = "acme/shop#42".parse()?;
    let assign = Question::Assign { target: target.clone(), group: "containers".parse()? };
    println!("assigned: {:?}", dispatcher.ask(assign.clone())?);
    println!("again:    {:?}", dispatcher.ask(assign.clone())?);

    // The second container beats, the first falls silent, and what it held goes to the second.
    for _ in 0..14 {
        let beat =
            WorkerBeat { worker: two.clone(), epoch: None, sequence: None, state: None, active_job: None, errors: 0 };
        dispatcher.ask(Question::Beat(beat))?;
        dispatcher.pass(Duration::from_secs(5))?;
    }
    println!("after a minute's silence: {:?}", dispatcher.ask(assign)?);
    for worker in dispatcher.registry.status().workers {
        println!("{}: {}, {}", worker.name, worker.status, worker.reason);
    }
    Ok(())
}
