//! The simulated world: everything that exists, and the line of events that moves it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::time::Duration;

use latido_driver::Fact;
use latido_protocol::SubjectName;

use crate::agent::Agent;
use crate::attempt::{Attempt, SupervisorDeed};
use crate::checks::Seen;
use crate::disk::Disk;
use crate::faults::{Fault, Planned};
use crate::host::{Host, Process, Role};
use crate::jobs::Spec;
use crate::random::Random;
use crate::reference::Reference;
use crate::store::SimulatedStore;
use crate::task::Task;
use crate::weather::Weather;

/// What happens at one moment. Events of a process that is stopped wait, and those of one that is gone are dropped.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    StartAgent,
    Task { owner: Process, task: Box<Task> },
    Arrives { agent: Process, fact: Box<Fact>, sent_at: Duration },
    Supervisor { attempt: usize, deed: SupervisorDeed },
    Work { attempt: usize },
    Fault(usize),
    Ends { process: Process },
    Continues { process: Process },
}

#[derive(Debug)]
struct Entry {
    at: Duration,
    number: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// What always holds, and did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// which check
    pub check: &'static str,
    /// what was seen
    pub detail: String,
    /// in time awake since the beginning
    pub at: Duration,
}

/// Streams of chance, one for each kind of decision.
#[derive(Debug)]
pub(crate) struct Chance {
    pub(crate) delay: Random,
    pub(crate) work: Random,
    pub(crate) word: Random,
    pub(crate) strategy: Random,
}

/// A crash that waits for its step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Armed {
    pub(crate) steps: u32,
    pub(crate) before: bool,
}

pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) disk: Disk,
    pub(crate) store: SimulatedStore,
    pub(crate) reference: Reference,
    pub(crate) specs: Vec<Spec>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) agents: Vec<Agent>,
    /// where the agents are recorded, if they are
    pub(crate) lives: Option<crate::lives::Lives>,
    pub(crate) weather: Weather,
    pub(crate) chance: Chance,
    pub(crate) armed: Option<Armed>,
    /// when the agent was last told that the store does not take what it records
    pub(crate) doubted_at: Duration,
    /// since when no agent lives
    pub(crate) agent_gone_at: Option<Duration>,
    /// two agents wrote into one journal
    pub(crate) had_two_agents: bool,
    /// newest entry of the journal that was checked
    pub(crate) checked_sequence: u64,
    /// alerts that fire by the journal
    pub(crate) firing: std::collections::BTreeSet<String>,
    pub(crate) steps: u64,
    /// orders that the driver gave, by kind
    pub(crate) orders: BTreeMap<&'static str, u64>,
    pub(crate) calm_at: Duration,
    plan: Vec<Planned>,
    queue: BinaryHeap<Reverse<Entry>>,
    deferred: BTreeMap<Process, Vec<Event>>,
    number: u64,
    pub(crate) failure: Option<Failure>,
    transcript: Option<Vec<String>>,
}

impl World {
    pub(crate) fn new(seed: u64, specs: Vec<Spec>, plan: Vec<Planned>, calm_at: Duration, tells: bool) -> Self {
        let mut of_host = Random::new(seed, "host");
        let mut world = Self {
            host: Host::new(of_host.chance(20), u32::try_from(8 + of_host.below(200)).unwrap_or(8)),
            disk: Disk::default(),
            store: SimulatedStore::new(),
            reference: Reference::default(),
            seen: specs.iter().map(|_| Seen::default()).collect(),
            weather: Weather::new(specs.len()),
            specs,
            attempts: Vec::new(),
            agents: Vec::new(),
            lives: None,
            chance: Chance {
                delay: Random::new(seed, "delay"),
                work: Random::new(seed, "work"),
                word: Random::new(seed, "word"),
                strategy: Random::new(seed, "strategy"),
            },
            armed: None,
            doubted_at: Duration::ZERO,
            agent_gone_at: None,
            had_two_agents: false,
            checked_sequence: 0,
            firing: std::collections::BTreeSet::new(),
            steps: 0,
            orders: BTreeMap::new(),
            calm_at,
            plan,
            queue: BinaryHeap::new(),
            deferred: BTreeMap::new(),
            number: 0,
            failure: None,
            transcript: tells.then(Vec::new),
        };
        for index in 0..world.plan.len() {
            world.at(world.plan[index].at, Event::Fault(index));
        }
        for job in 0..world.specs.len() {
            world.reference.jobs.push(crate::truth::Job::new(world.specs[job].settings.clone()));
            world.make_job(job);
        }
        world.after(Duration::ZERO, Event::StartAgent);
        world
    }

    /// Only speed is measured: nothing is late, lost or written to the disk.
    pub(crate) fn is_steady(&self) -> bool {
        self.specs.first().is_some_and(|spec| spec.lives_for == u64::MAX)
    }

    pub(crate) fn now(&self) -> Duration {
        self.host.now
    }

    pub(crate) fn name(&self, job: usize) -> &SubjectName {
        &self.specs[job].name
    }

    pub(crate) fn after(&mut self, delay: Duration, event: Event) {
        self.at(self.host.now + delay, event);
    }

    fn at(&mut self, at: Duration, event: Event) {
        self.number += 1;
        self.queue.push(Reverse(Entry { at, number: self.number, event }));
    }

    /// Lets a process do something soon, as a busy machine would.
    pub(crate) fn soon(&mut self, owner: Process, task: Task) {
        let delay = match self.chance.delay.below(50) {
            0 => self.chance.delay.seconds(0, 3),
            _ => self.chance.delay.between(Duration::from_millis(1), Duration::from_millis(30)),
        };
        self.after(delay, Event::Task { owner, task: Box::new(task) });
    }

    pub(crate) fn later(&mut self, owner: Process, delay: Duration, task: Task) {
        self.after(delay, Event::Task { owner, task: Box::new(task) });
    }

    /// Runs until a moment, or until something does not hold.
    pub(crate) fn run(&mut self, until: Duration) {
        while self.failure.is_none() {
            let event_at = self.queue.peek().map(|Reverse(entry)| entry.at);
            let wake = self.agents.iter().filter(|agent| !self.host.is_stopped(agent.process));
            let wake = wake.map(|agent| (agent.wakes_at(), agent.process)).min();
            match (event_at, wake) {
                (Some(at), wake) if at <= until && wake.is_none_or(|(wake_at, _)| at <= wake_at) => {
                    let Some(Reverse(entry)) = self.queue.pop() else { break };
                    self.host.now = self.host.now.max(at);
                    self.dispatch(entry.event);
                }
                (_, Some((at, agent))) if at <= until => {
                    self.host.now = self.host.now.max(at);
                    self.step_agent(agent);
                }
                (_, _) => break,
            }
        }
        if self.failure.is_none() {
            self.host.now = until;
        }
    }

    fn dispatch(&mut self, event: Event) {
        let target = match &event {
            Event::StartAgent | Event::Fault(_) | Event::Ends { .. } | Event::Continues { .. } => None,
            Event::Task { owner, .. } => Some(*owner),
            Event::Arrives { agent, .. } => Some(*agent),
            Event::Supervisor { attempt, .. } => Some(self.attempts[*attempt].supervisor.unwrap_or(0)),
            Event::Work { attempt } => Some(self.attempts[*attempt].work.unwrap_or(0)),
        };
        if let Some(target) = target {
            match self.host.running(target) {
                None => return,
                Some(running) if running.stops > 0 => {
                    return self.deferred.entry(target).or_default().push(event);
                }
                Some(_) => {}
            }
        }
        match event {
            Event::StartAgent => self.start_agent(),
            Event::Task { owner, task } => self.run_task(owner, *task),
            Event::Arrives { agent, fact, sent_at } => self.arrives(agent, *fact, sent_at),
            Event::Supervisor { attempt, deed } => self.supervise(attempt, deed),
            Event::Work { attempt } => self.work(attempt),
            Event::Fault(index) => {
                let fault = self.plan[index].fault;
                self.note(|_| format!("FAULT {fault:?}"));
                self.strike(fault);
            }
            Event::Ends { process } => self.die(process),
            Event::Continues { process } => self.go_on(process),
        }
    }

    /// A process gets SIGSTOP for a while.
    pub(crate) fn stop_process(&mut self, process: Process, length: Duration) {
        if self.host.stop(process, true) {
            self.stopped(process);
        }
        self.after(length, Event::Continues { process });
    }

    pub(crate) fn go_on(&mut self, process: Process) {
        if self.host.stop(process, false) {
            self.continued(process);
            for event in self.deferred.remove(&process).unwrap_or_default() {
                self.after(Duration::ZERO, event);
            }
        }
    }

    /// A process is gone, by whatever cause.
    pub(crate) fn die(&mut self, process: Process) {
        let Some(running) = self.host.end(process) else { return };
        self.deferred.remove(&process);
        self.buried(process, running.role);
    }

    /// What follows from a death.
    pub(crate) fn buried(&mut self, process: Process, role: Role) {
        match role {
            Role::Agent => self.agent_gone(process),
            Role::Supervisor { attempt } => self.supervisor_gone(attempt),
            Role::Work { attempt } => self.work_gone(attempt, crate::attempt::KILLED),
            Role::Command | Role::Stranger => {}
        }
    }

    /// Takes a recorded step, unless its taker dies before it; answers whether the taker lives after it.
    pub(crate) fn record(&mut self, who: Process, what: &str, write: impl FnOnce(&mut Self)) -> bool {
        let strikes = self.armed.as_mut().is_some_and(|armed| {
            let now = armed.steps == 0;
            armed.steps = armed.steps.saturating_sub(1);
            now
        });
        let armed = if strikes { self.armed.take() } else { None };
        if armed.is_some_and(|armed| armed.before) {
            self.note(|_| format!("process {who} dies before it {what}"));
            self.crash(who);
            return false;
        }
        write(self);
        self.note(|_| format!("process {who} {what}"));
        if armed.is_some() {
            self.note(|_| format!("process {who} dies after it {what}"));
            self.crash(who);
            return false;
        }
        true
    }

    /// A process dies by a fault; an agent is started again.
    fn crash(&mut self, who: Process) {
        let is_agent = self.host.running(who).is_some_and(|running| running.role == Role::Agent);
        self.die(who);
        if is_agent {
            let delay = self.chance.delay.seconds(1, 60);
            self.after(delay, Event::StartAgent);
        }
    }

    pub(crate) fn fail(&mut self, check: &'static str, detail: impl fmt::Display) {
        if self.failure.is_none() {
            let detail = detail.to_string();
            self.note(|_| format!("BROKEN {check}: {detail}"));
            self.failure = Some(Failure { check, detail, at: self.host.now });
        }
    }

    /// Checks a claim about one job.
    pub(crate) fn expect(&mut self, check: &'static str, job: usize, claim: Result<(), String>) {
        if let Err(detail) = claim {
            let name = self.name(job).clone();
            self.fail(check, format_args!("{name}: {detail}"));
        }
    }

    pub(crate) fn note(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.transcript.is_some() {
            let line = format!("{:>10.3} {}", self.host.now.as_secs_f64(), line(self));
            self.transcript.iter_mut().for_each(|lines| lines.push(line.clone()));
        }
    }

    pub(crate) fn take_transcript(&mut self) -> Vec<String> {
        self.transcript.take().unwrap_or_default()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.3} s: {}", self.check, self.at.as_secs_f64(), self.detail)
    }
}

/// A fault strikes.
impl World {
    fn strike(&mut self, fault: Fault) {
        if self.host.now < self.calm_at {
            self.strike_now(fault);
        }
    }
}
