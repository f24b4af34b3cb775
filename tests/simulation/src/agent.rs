//! The agent's process around the real driver: its queue, its passes, its watches.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_driver::recording::DriverSettings;
use latido_driver::{Driver, Fact, FoundState, Order, Output, Reading};
use latido_policy::AlertSettings;
use latido_store::StoreError;

use crate::faults::Lie;
use crate::host::{Process, Role};
use crate::jobs;
use crate::store::SimulatedStore;
use crate::task::Task;
use crate::world::{Event, World};

/// How often a sampled beat goes into the journal.
const HISTORY_EVERY: Duration = Duration::from_secs(300);

/// Where only speed is measured, what arrives within this is in one queue: a driver's thread that has its turn so often takes
/// what waits in one pass. Far below the lateness that a pass may have.
const TURN_EVERY: Duration = Duration::from_millis(250);

/// One life of an agent.
pub(crate) struct Agent {
    pub(crate) process: Process,
    pub(crate) driver: Driver<SimulatedStore>,
    queue: Vec<(Fact, Duration)>,
    wake_at: Duration,
    /// its driver's thread waits for the store until then
    busy_until: Duration,
    stopped_at: Option<Duration>,
    /// epochs whose supervisors it listens to, by job
    watched: BTreeMap<usize, u64>,
    /// it asked to be called at once
    hurries: u32,
    /// it waited for the store after its last pass
    stalled_for: Duration,
}

impl Agent {
    pub(crate) fn wakes_at(&self) -> Duration {
        self.wake_at.max(self.busy_until)
    }

    pub(crate) fn watches(&self, job: usize, epoch: u64) -> bool {
        self.watched.get(&job) == Some(&epoch)
    }

    pub(crate) fn unwatch(&mut self, job: usize) {
        self.watched.remove(&job);
    }
}

/// What is decided for every agent.
fn settings() -> DriverSettings {
    DriverSettings {
        history_every: HISTORY_EVERY,
        limits: jobs::limits(),
        groups: BTreeMap::new(),
        alerts: AlertSettings::default(),
        rules: Vec::new(),
        confirms: Vec::new(),
    }
}

/// What the clocks say when a step is done that waited for the store.
fn reading_later(reading: Reading, waited: bool, length: Duration) -> Reading {
    if !waited {
        return reading;
    }
    let (monotonic, boottime) = (reading.monotonic + length, reading.boottime + length);
    Reading { monotonic, boottime, ..reading }
}

fn next_turn(now: Duration) -> Duration {
    let since = now.subsec_nanos() % TURN_EVERY.subsec_nanos();
    if since == 0 { now } else { now + TURN_EVERY - Duration::from_nanos(u64::from(since)) }
}

impl World {
    /// The agent that has the lock, where one lives.
    pub(crate) fn agent(&self) -> Option<Process> {
        self.disk.agent_lock.filter(|process| self.host.lives(*process))
    }

    pub(crate) fn agent_answers(&self) -> bool {
        self.agent().is_some_and(|agent| !self.host.is_stopped(agent))
    }

    pub(crate) fn start_agent(&mut self) {
        if self.disk.agent_lock.is_some_and(|holder| self.host.lives(holder)) {
            return self.note(|_| "another agent is refused: the lock is held".to_owned());
        }
        let process = self.host.start(Role::Agent);
        self.note(|_| format!("the agent starts as process {process}"));
        let settings = settings();
        let Ok(mut driver) = Driver::with_settings(self.store.clone(), &settings) else {
            return self.fail("the store can be read", "a new agent cannot read it");
        };
        let recorder = self.lives.as_ref().map(crate::lives::Lives::begin);
        let wall = self.host.reading().wall;
        if recorder.is_some_and(|recorder| driver.record_to(recorder, settings, wall).is_err()) {
            return self.fail("the store can be read", "a recording cannot begin");
        }
        self.seen.iter_mut().for_each(crate::checks::Seen::unsee);
        self.doubted_at = Duration::ZERO;
        self.disk.agent_lock = Some(process);
        let now = self.now();
        let gone_at = std::mem::take(&mut self.agent_gone_at);
        self.reference.agent_began(now.saturating_sub(gone_at.unwrap_or(now)), now);
        self.agents.push(Agent {
            process,
            driver,
            queue: Vec::new(),
            wake_at: now,
            busy_until: now,
            stopped_at: None,
            watched: BTreeMap::new(),
            hurries: 0,
            stalled_for: Duration::ZERO,
        });
        let jobs = self.disk.folders.keys().copied().collect();
        self.soon(process, Task::Recover { jobs });
    }

    pub(crate) fn agent_gone(&mut self, process: Process) {
        self.note(|_| format!("the agent, process {process}, is gone"));
        self.agents.retain(|agent| agent.process != process);
        if self.disk.agent_lock == Some(process) {
            self.agent_gone_at = Some(self.now());
        }
    }

    pub(crate) fn agent_stopped(&mut self, process: Process) {
        let now = self.now();
        self.agents.iter_mut().filter(|a| a.process == process).for_each(|agent| agent.stopped_at = Some(now));
    }

    pub(crate) fn agent_continued(&mut self, process: Process) {
        let now = self.now();
        let Some(agent) = self.agents.iter_mut().find(|agent| agent.process == process) else { return };
        let since = agent.stopped_at.take().unwrap_or(now);
        agent.wake_at = agent.wake_at.max(now);
        if self.disk.agent_lock == Some(process) {
            self.reference.deaf(now - since, now);
        }
    }

    /// Sends a fact to an agent's driver; what supervisors say may come late or twice.
    pub(crate) fn send(&mut self, agent: Process, fact: Fact) {
        let (now, sent_at) = (self.now(), self.now());
        if self.is_steady() {
            return self.arrives(agent, fact, sent_at);
        }
        let is_word = matches!(fact, Fact::Heard { .. });
        let mut copies = vec![Duration::from_micros(100 + self.chance.word.below(2000))];
        if is_word && now < self.weather.late_word.0 {
            copies[0] += self.chance.word.between(Duration::ZERO, self.weather.late_word.1);
        }
        if is_word && now < self.weather.double_word {
            copies.push(self.chance.word.seconds(0, 40));
        }
        for delay in copies {
            self.after(delay, Event::Arrives { agent, fact: Box::new(fact.clone()), sent_at });
        }
    }

    pub(crate) fn arrives(&mut self, agent: Process, fact: Fact, sent_at: Duration) {
        let turn_at = if self.is_steady() { next_turn(self.now()) } else { self.now() };
        if let Some(agent) = self.agents.iter_mut().find(|other| other.process == agent) {
            agent.queue.push((fact, sent_at));
            agent.wake_at = agent.wake_at.min(turn_at);
        }
    }

    /// One pass of the driver: what waits goes in, what follows goes out.
    pub(crate) fn step_agent(&mut self, process: Process) {
        let Some(index) = self.agents.iter().position(|agent| agent.process == process) else { return };
        let (now, reading) = (self.now(), self.host.reading());
        self.steps += 1;
        // One that has lost its lock without knowing is fenced off, and nobody believes what it believes.
        let is_the_one = self.disk.agent_lock == Some(process);
        let stalled = std::mem::take(&mut self.agents[index].stalled_for);
        if is_the_one && !stalled.is_zero() {
            self.reference.deaf(stalled, now);
        }
        let queue = std::mem::take(&mut self.agents[index].queue);
        let had_facts = !queue.is_empty();
        let mut facts = Vec::with_capacity(queue.len());
        for (fact, sent_at) in queue {
            // What a strategy answered is recorded by whoever asked it, and the next agent goes by that.
            if is_the_one || matches!(fact, Fact::StrategyAnswered { .. }) {
                self.tell_reference(&fact, sent_at);
            }
            self.note(|_| format!("agent {process} is told {}", crate::transcript::fact(&fact)));
            facts.push(fact);
        }
        let (fails, slow) = (now < self.weather.store_fails, self.weather.slow_store);
        self.store.with(|kept| (kept.fails, kept.commits) = (fails, 0));
        let output = self.agents[index].driver.step(facts, reading);
        let done = reading_later(reading, self.store.with(|kept| kept.commits > 0 && now < slow.0), slow.1);
        self.agents[index].driver.rest(done);
        let committed = self.store.with(|kept| kept.commits > 0);
        let delay = if committed && now < slow.0 { slow.1 } else { Duration::ZERO };
        let agent = &mut self.agents[index];
        (agent.busy_until, agent.stalled_for) = (now + delay, delay);
        agent.wake_at = now + delay + output.wake_in;
        agent.hurries = if output.wake_in.is_zero() && !had_facts { agent.hurries + 1 } else { 0 };
        if agent.hurries > 3 {
            self.fail("it never asks to be called in the past", "it asks again and again to be called at once");
        }
        if matches!(output.store_error, Some(StoreError::TakenOver { .. })) {
            self.note(|_| format!("agent {process} learns that another has taken its place"));
            return self.die(process);
        }
        if is_the_one {
            let doubts = output.store_error.is_some();
            if doubts {
                self.reference.doubts(now);
            }
            self.check_step(index, &output);
            if doubts {
                self.doubted_at = now;
            }
        }
        self.give_out(process, delay, output);
    }

    fn give_out(&mut self, process: Process, delay: Duration, output: Output) {
        for order in output.orders {
            *self.orders.entry(crate::transcript::kind(&order)).or_default() += 1;
            self.note(|_| format!("agent {process} orders {}", crate::transcript::order(&order)));
            let pause = self.chance.delay.between(Duration::from_millis(1), Duration::from_millis(20));
            if let Some(task) = self.task_of(order) {
                self.later(process, delay + pause, task);
            }
        }
        if !output.changed.is_empty() {
            let subjects = output.changed;
            self.later(process, delay + Duration::from_millis(5), Task::AskRule { subjects });
        }
    }

    fn task_of(&mut self, order: Order) -> Option<Task> {
        let job = |name| self.specs.iter().position(|spec| spec.name == name);
        Some(match order {
            Order::Launch { attempt, because, by_hand, command: _ } => {
                let job = job(attempt.job.clone())?;
                Task::Launch(crate::launch::Launch::ordered(job, attempt, because, by_hand))
            }
            Order::AskStrategy { attempt, .. } => Task::AskStrategy { attempt },
            Order::EndAttempt { attempt, grace, ground, reason, .. } => {
                Task::EndAttempt { job: job(attempt.job)?, number: attempt.number, ground, reason, grace }
            }
            Order::EndOrphan { attempt, grace, .. } => {
                Task::EndOrphan { job: job(attempt.job.clone())?, attempt, grace, since: None, killing: false }
            }
            Order::RecordLost { attempt, .. } => Task::RecordLost { job: job(attempt.job.clone())?, attempt },
            Order::CheckGroupLock { .. } => return None,
        })
    }

    /// Looks at a job's folder and tells what it says; watches what runs.
    pub(crate) fn look_and_tell(&mut self, owner: Process, job: usize) {
        if !self.settle_ended(owner, job) {
            return;
        }
        let Some(found) = self.look(job) else {
            self.agent_mut(owner).into_iter().for_each(|agent| agent.unwatch(job));
            let name = self.name(job).clone();
            return self.send(owner, Fact::JobRemoved { job: name });
        };
        let running = found.attempt.as_ref().and_then(|attempt| match attempt.state {
            FoundState::Running => Some((attempt.start.attempt, attempt.start.epoch)),
            FoundState::Launching => {
                self.after(Duration::from_millis(100), Event::Task { owner, task: Box::new(Task::Look { job }) });
                None
            }
            FoundState::Unattended(_) | FoundState::Ended(_) => None,
        });
        self.send(owner, Fact::JobFound(Box::new(found)));
        if let Some((number, epoch)) = running {
            self.watch(owner, job, number, epoch);
        }
    }

    /// Listens to a supervisor, unless it is listened to already.
    pub(crate) fn watch(&mut self, owner: Process, job: usize, number: u32, epoch: u64) {
        let attempt = self.files(job, number).filter(|files| files.start.epoch == epoch).map(|files| files.attempt);
        let is_known = self.agent_mut(owner).is_none_or(|agent| agent.watched.get(&job) >= Some(&epoch));
        let Some(attempt) = attempt.filter(|_| !is_known) else { return };
        self.agent_mut(owner).into_iter().for_each(|agent| _ = agent.watched.insert(job, epoch));
        let lives = self.attempts[attempt].supervisor.is_some();
        self.soon(owner, if lives { Task::Connect { attempt } } else { Task::AfterTheEnd { attempt } });
    }

    pub(crate) fn agent_mut(&mut self, process: Process) -> Option<&mut Agent> {
        self.agents.iter_mut().find(|agent| agent.process == process)
    }

    /// Asks the strategy, which may be slow, broken or a liar.
    pub(crate) fn ask_strategy(&mut self, owner: Process, attempt: latido_driver::AttemptName) {
        use latido_policy::Proposal;
        let (now, slow) = (self.now(), self.weather.slow_plugin);
        let mut delay = Duration::from_millis(5 + self.chance.strategy.below(50));
        if now < slow.0 {
            delay += slow.1;
        }
        let (number, epoch) = (attempt.number.saturating_sub(1), attempt.epoch.saturating_sub(1));
        let other = latido_driver::AttemptName { number, epoch, ..attempt.clone() };
        let answers = match self.weather.lie(now) {
            None => vec![(attempt, Proposal::Launch)],
            Some(Lie::Traps) => vec![(attempt, Proposal::Failed)],
            Some(Lie::NeverAnswers) => {
                delay += Duration::from_secs(30);
                vec![(attempt, Proposal::Failed)]
            }
            Some(Lie::AnswersTwice) => vec![(attempt.clone(), Proposal::Launch), (attempt, Proposal::Hold)],
            Some(Lie::AboutAnother) => vec![(other, Proposal::Launch), (attempt, Proposal::Launch)],
            Some(Lie::Proposes(proposal)) => vec![(attempt, proposal)],
        };
        for (attempt, proposal) in answers {
            let fact = Fact::StrategyAnswered { attempt, proposal, detail: String::new(), command: None };
            self.later(owner, delay, Task::Tell { fact: Box::new(fact) });
            delay += Duration::from_millis(1);
        }
    }
}
