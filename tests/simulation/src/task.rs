//! What processes do step by step: the agent's actions and sources, as the daemon has them.

use std::time::Duration;

use latido_driver::{AttemptName, Fact};
use latido_policy::Life;
use latido_protocol::SubjectName;
use latido_protocol::attempt::{Ground, StopReason};
use latido_protocol::files::Want;

use crate::host::Process;
use crate::launch::Launch;
use crate::look::Existence;
use crate::world::World;

/// The agent looks for folders that came or went without a word.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Between two tries to reach a supervisor that does not answer.
const STOP_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Between two tries to record or to end what could not be.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Between two tries to watch a supervisor.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// Between two looks at what was told to end.
pub(crate) const TURN: Duration = Duration::from_millis(50);

/// How long what gets SIGKILL is waited for.
pub(crate) const KILL_FOR: Duration = Duration::from_secs(5);

/// What a process does next.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    Recover { jobs: Vec<usize> },
    Forget,
    LookAround,
    Look { job: usize },
    Connect { attempt: usize },
    AfterTheEnd { attempt: usize },
    Tell { fact: Box<Fact> },
    AskRule { subjects: Vec<SubjectName> },
    AskStrategy { attempt: AttemptName },
    Launch(Launch),
    EndAttempt { job: usize, number: u32, ground: Option<Ground>, reason: StopReason, grace: Duration },
    EndOrphan { job: usize, attempt: AttemptName, grace: Duration, since: Option<Duration>, killing: bool },
    RecordLost { job: usize, attempt: AttemptName },
    Want { job: usize, want: Want, length: Option<Duration> },
    Stop { job: usize, asked: bool, since: Duration },
    Resume { job: usize },
    ResumeByHand { job: usize },
    Remove { job: usize },
}

impl World {
    pub(crate) fn run_task(&mut self, owner: Process, task: Task) {
        match task {
            Task::Recover { mut jobs } => {
                if jobs.is_empty() {
                    return self.soon(owner, Task::Forget);
                }
                self.look_and_tell(owner, jobs.remove(0));
                self.soon(owner, Task::Recover { jobs });
            }
            Task::Forget => self.forget(owner),
            Task::LookAround => self.look_around(owner),
            Task::Look { job } => self.look_and_tell(owner, job),
            Task::Connect { attempt } => self.connect(owner, attempt),
            Task::AfterTheEnd { attempt } => self.after_the_end(owner, attempt),
            Task::Tell { fact } => self.send(owner, *fact),
            Task::AskRule { subjects } => self.ask_rule(owner, subjects),
            Task::AskStrategy { attempt } => self.ask_strategy(owner, attempt),
            Task::Launch(launch) => self.launch(owner, launch),
            Task::EndAttempt { job, number, ground, reason, grace } => {
                if !self.end_attempt(job, number, ground, reason, grace) {
                    let again = Task::EndAttempt { job, number, ground, reason, grace };
                    self.later(owner, STOP_AGAIN_AFTER, again);
                }
            }
            Task::EndOrphan { job, attempt, grace, since, killing } => {
                self.end_orphan(owner, job, attempt, grace, since, killing);
            }
            Task::RecordLost { job, attempt } => self.record_lost(owner, job, attempt),
            Task::Want { job, want, length } => self.want(owner, job, want, length),
            Task::Stop { job, asked, since } => self.stop_by_command(owner, job, asked, since),
            Task::Resume { job } => self.resume_by_command(owner, job),
            Task::ResumeByHand { job } => self.resume_by_hand(owner, job),
            Task::Remove { job } => self.remove_by_command(owner, job),
        }
    }

    /// Folders that the store remembers and that are gone; then the agent watches.
    fn forget(&mut self, owner: Process) {
        self.step_agent(owner);
        let wall = self.host.wall();
        if let Some(agent) = self.agent_mut(owner) {
            agent.driver.forget_absent(&std::collections::BTreeSet::new(), wall);
        }
        self.see_all();
        self.later(owner, LOOK_EVERY, Task::LookAround);
    }

    fn look_around(&mut self, owner: Process) {
        let in_doubt = self.agent_mut(owner).map(|agent| agent.driver.in_doubt()).unwrap_or_default();
        for job in 0..self.specs.len() {
            let folder = self.disk.folders.get(&job);
            let agent = self.agents.iter().find(|agent| agent.process == owner);
            let latest = agent.and_then(|agent| agent.driver.latest(self.name(job)));
            let is_known = latest.is_some();
            let differs = latest.zip(folder).is_some_and(|(latest, folder)| {
                let number = latest.start.as_ref().map_or(0, |start| start.attempt);
                let (wanted, told) = (&folder.wanted, &latest.wanted);
                number != folder.latest() || (wanted.want, wanted.at) != (told.want, told.at)
            });
            if folder.is_some() != is_known || differs || in_doubt.contains(self.name(job)) {
                self.soon(owner, Task::Look { job });
            }
        }
        self.later(owner, LOOK_EVERY, Task::LookAround);
    }

    /// The connection to a supervisor stands: it tells its latest at once.
    fn connect(&mut self, owner: Process, attempt: usize) {
        let (job, epoch) = (self.attempts[attempt].job, self.attempts[attempt].epoch);
        if self.attempts[attempt].supervisor.is_none() {
            return self.after_the_end(owner, attempt);
        }
        if self.now() < self.weather.blind {
            self.later(owner, RECONNECT_AFTER, Task::Connect { attempt });
            let attempt = AttemptName { job: self.name(job).clone(), number: self.attempts[attempt].number, epoch };
            return self.send(owner, Fact::LookFailed { attempt, detail: "the agent is blind".to_owned() });
        }
        if let Some(status) = self.asked_status(attempt) {
            self.send(owner, Fact::Heard { status });
        }
    }

    /// A supervisor's process is gone: its ending is told, or what is left of its work.
    fn after_the_end(&mut self, owner: Process, attempt: usize) {
        let (job, number, epoch) = {
            let of = &self.attempts[attempt];
            (of.job, of.number, of.epoch)
        };
        // Another attempt may be watched by then.
        self.agent_mut(owner)
            .into_iter()
            .filter(|agent| agent.watches(job, epoch))
            .for_each(|agent| agent.unwatch(job));
        if !self.settle_ended(owner, job) {
            return;
        }
        let end = self.files(job, number).and_then(|files| files.end.clone()).filter(|end| end.epoch == epoch);
        let fact = match end {
            Some(end) => Fact::AttemptEnded { start: None, end: Box::new(end) },
            None => {
                let process = match self.existence(job, number) {
                    Existence::Launching | Existence::Running | Existence::Orphaned => Life::Alive,
                    Existence::Dead => Life::Gone,
                    Existence::Ended | Existence::Unknown => Life::Unknown,
                };
                let attempt = AttemptName { job: self.name(job).clone(), number, epoch };
                Fact::SupervisorGone { attempt, process }
            }
        };
        // A look takes its time, and the world goes on meanwhile.
        self.soon(owner, Task::Tell { fact: Box::new(fact) });
    }

    /// Reaches the supervisor, if it answers; true when nothing is left to be asked.
    pub(crate) fn end_attempt(
        &mut self,
        job: usize,
        number: u32,
        ground: Option<Ground>,
        reason: StopReason,
        grace: Duration,
    ) -> bool {
        let Some(files) = self.files(job, number).filter(|files| files.end.is_none()) else { return true };
        let attempt = files.attempt;
        let Some(supervisor) = self.attempts[attempt].supervisor else { return true };
        if self.host.is_stopped(supervisor) {
            return false;
        }
        // There are beats or progress: word of them comes, and is judged.
        if ground.is_some_and(|ground| !self.holds(attempt, ground)) {
            return true;
        }
        self.note(|world| format!("{} {number} is asked to end: {reason:?}", world.name(job)));
        self.order_stop(attempt, reason, grace);
        true
    }

    /// An ending whose supervisor died before it could enter it into the ledger is entered by who sees it; answers whether
    /// who does it lives.
    pub(crate) fn settle_ended(&mut self, owner: Process, job: usize) -> bool {
        let latest = self.disk.folders.get(&job).map_or(0, |folder| folder.latest());
        if self.existence(job, latest) != Existence::Ended || self.lock_is_held(job) {
            return true;
        }
        let settled = self.settle(owner, job, latest, None);
        if let Settled::Refused(_) = settled {
            self.later(owner, AGAIN_AFTER, Task::Look { job });
        }
        settled != Settled::Died
    }

    fn end_orphan(
        &mut self,
        owner: Process,
        job: usize,
        attempt: AttemptName,
        grace: Duration,
        since: Option<Duration>,
        killing: bool,
    ) {
        let now = self.now();
        let Some(of) = self.files(job, attempt.number).map(|files| files.attempt) else { return };
        let supervisor_lives = self.attempts[of].supervisor.is_some();
        let existence = self.existence(job, attempt.number);
        match (existence, since) {
            (Existence::Unknown, None) => {
                self.look_failed(owner, attempt.clone(), "cannot tell whether it is an orphan");
                self.later(owner, AGAIN_AFTER, Task::EndOrphan { job, attempt, grace, since, killing });
            }
            _ if supervisor_lives => {
                self.look_failed(owner, attempt.clone(), "its supervisor lives");
                self.later(owner, AGAIN_AFTER, Task::EndOrphan { job, attempt, grace, since, killing });
            }
            _ if self.attempts[of].work.is_none() => {
                self.send(owner, Fact::OrphanEnded { attempt, survivors: Vec::new() });
            }
            (_, None) => {
                self.signal_work(of, 15);
                self.later(owner, TURN, Task::EndOrphan { job, attempt, grace, since: Some(now), killing });
            }
            (_, Some(since)) if !killing && now < since + grace => {
                self.later(owner, TURN, Task::EndOrphan { job, attempt, grace, since: Some(since), killing });
            }
            (_, Some(_)) if !killing => {
                self.signal_work(of, 9);
                self.later(owner, TURN, Task::EndOrphan { job, attempt, grace, since: Some(now), killing: true });
            }
            (_, Some(since)) if now < since + KILL_FOR => {
                self.later(owner, TURN, Task::EndOrphan { job, attempt, grace, since: Some(since), killing });
            }
            (_, Some(_)) => self.send(owner, Fact::OrphanEnded { attempt, survivors: vec![4711] }),
        }
    }

    fn record_lost(&mut self, owner: Process, job: usize, attempt: AttemptName) {
        if self.lock_is_held(job) {
            self.look_failed(owner, attempt.clone(), "the lock is held");
            return self.later(owner, AGAIN_AFTER, Task::RecordLost { job, attempt });
        }
        match self.settle(owner, job, attempt.number, None) {
            Settled::Ended => {
                let end = self.files(job, attempt.number).and_then(|files| files.end.clone());
                if let Some(end) = end {
                    self.send(owner, Fact::AttemptEnded { start: None, end: Box::new(end) });
                }
            }
            Settled::Refused(_) if !self.disk.folders.contains_key(&job) => {}
            Settled::Refused(why) => {
                self.look_failed(owner, attempt.clone(), why);
                self.later(owner, AGAIN_AFTER, Task::RecordLost { job, attempt });
            }
            Settled::Died => {}
        }
    }

    fn look_failed(&mut self, owner: Process, attempt: AttemptName, why: &str) {
        self.send(owner, Fact::LookFailed { attempt, detail: why.to_owned() });
    }

    /// Brings the records of an attempt to their end: its ending, its line. The caller has the lock.
    pub(crate) fn settle(
        &mut self,
        owner: Process,
        job: usize,
        number: u32,
        outcome: Option<latido_protocol::Outcome>,
    ) -> Settled {
        if self.files(job, number).is_none() {
            return Settled::Refused("there is no such attempt");
        }
        let existence = self.existence(job, number);
        if existence != Existence::Ended {
            let never_ran = existence == Existence::Launching && self.recorded_supervisor(job, number).is_none();
            if existence != Existence::Dead && !never_ran {
                return Settled::Refused("it is not proven dead");
            }
            if self.disk_is_full() {
                return Settled::Refused("the disk is full");
            }
            let outcome = outcome.unwrap_or_else(|| latido_protocol::Outcome::lost("its supervisor is gone"));
            if !self.record(owner, "records an ending", |world| world.write_end(job, number, outcome)) {
                return Settled::Died;
            }
        }
        let epoch = self.files(job, number).map_or(0, |files| files.start.epoch);
        if !self.disk.in_ledger(job, number, epoch) {
            if self.disk_is_full() {
                return Settled::Refused("the disk is full");
            }
            if !self.record(owner, "enters an ending into the ledger", |world| world.write_line(job, number)) {
                return Settled::Died;
            }
        }
        Settled::Ended
    }
}

/// How settling went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Ended,
    Refused(&'static str),
    Died,
}
