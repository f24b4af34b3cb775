//! What people type: the command line's processes, which can be killed at any step like all others.

use std::time::Duration;

use latido_driver::AttemptName;
use latido_protocol::Outcome;
use latido_protocol::WallTime;
use latido_protocol::attempt::StopReason;
use latido_protocol::files::{Want, Wanted};

use crate::faults::Command;
use crate::host::{Process, Role};
use crate::launch::Launch;
use crate::look::Existence;
use crate::task::{Settled, TURN, Task};
use crate::world::World;

/// A stop that nobody hears is given up after this.
const STOP_FOR: Duration = Duration::from_secs(60);

impl World {
    pub(crate) fn type_command(&mut self, job: usize, command: Command) {
        let process = self.host.start(Role::Command);
        let now = self.now();
        let want = |want, length| Task::Want { job, want, length };
        let task = match command {
            Command::Stop => Task::Stop { job, asked: false, since: now },
            Command::Resume => Task::Resume { job },
            Command::ResumeByHand => Task::ResumeByHand { job },
            Command::Pause(length) => want(Want::Pause, length),
            Command::Unpause => want(Want::Run, None),
            Command::Remove => Task::Remove { job },
            Command::Run if self.disk.folders.contains_key(&job) => return self.die(process),
            Command::Run => {
                self.make_job(job);
                Task::ResumeByHand { job }
            }
        };
        self.soon(process, task);
    }

    /// The command's process is done: the agent is told to look, and the process ends.
    pub(crate) fn finish_command(&mut self, owner: Process, job: usize) {
        if self.host.running(owner).is_some_and(|running| running.role == Role::Command) {
            self.poke(job);
            self.die(owner);
        }
    }

    fn poke(&mut self, job: usize) {
        if let Some(agent) = self.agent() {
            self.soon(agent, Task::Look { job });
        }
    }

    /// Changes what is wanted, durably; answers whether that was done.
    fn change_want(&mut self, owner: Process, job: usize, want: Want, length: Option<Duration>) -> bool {
        let Some(folder) = self.disk.folders.get(&job) else { return false };
        if self.disk_is_full() {
            return false;
        }
        let at = self.host.wall();
        let until = length.map(|length| {
            WallTime::from_millis(at.as_millis() + u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
        });
        let before = &folder.wanted;
        let wanted = if before.want == want && matches!(want, Want::Run | Want::Stop) {
            before.clone()
        } else {
            Wanted { want, at, until, epoch: folder.epoch(), by: "a person".to_owned(), ..before.clone() }
        };
        self.record(owner, "records what is wanted", |world| {
            world.note(|world| format!("{want:?} is wanted of {}", world.name(job)));
            world.disk.folders.entry(job).and_modify(|folder| folder.wanted = wanted);
        })
    }

    pub(crate) fn want(&mut self, owner: Process, job: usize, want: Want, length: Option<Duration>) {
        // A pause is of what runs by itself, and its end undoes nothing but a pause.
        let wanted = self.disk.folders.get(&job).map(|folder| folder.wanted.want);
        let applies = match want {
            Want::Pause => matches!(wanted, Some(Want::Run | Want::Pause)),
            Want::Run => wanted == Some(Want::Pause),
            Want::Stop | Want::Resume => true,
        };
        if applies {
            self.change_want(owner, job, want, length);
        }
        self.finish_command(owner, job);
    }

    /// Records the stop, and then ends what runs, with an agent or without.
    pub(crate) fn stop_by_command(&mut self, owner: Process, job: usize, asked: bool, since: Duration) {
        if !asked {
            if !self.change_want(owner, job, Want::Stop, None) {
                return self.finish_command(owner, job);
            }
            return self.soon(owner, Task::Stop { job, asked: true, since });
        }
        let latest = self.disk.folders.get(&job).map_or(0, |folder| folder.latest());
        let grace = self.specs[job].settings.grace.0;
        let again = Task::Stop { job, asked: true, since };
        match self.existence(job, latest) {
            _ if self.now() > since + STOP_FOR => self.finish_command(owner, job),
            Existence::Launching => self.later(owner, TURN, again),
            Existence::Running => {
                self.end_attempt(job, latest, None, StopReason::Commanded, grace);
                self.later(owner, grace, again);
            }
            Existence::Orphaned => {
                if let Some(attempt) = self.files(job, latest).map(|files| files.attempt) {
                    let signal = if self.now() > since + grace { 9 } else { 15 };
                    self.signal_work(attempt, signal);
                }
                self.later(owner, TURN, again);
            }
            Existence::Dead if latest > 0 && !self.lock_is_held(job) => {
                let outcome = Outcome::lost("its supervisor was gone");
                if self.settle(owner, job, latest, Some(outcome)) != Settled::Died {
                    self.finish_command(owner, job);
                }
            }
            Existence::Dead | Existence::Ended | Existence::Unknown => self.finish_command(owner, job),
        }
    }

    /// Resumes through the agent where one answers, and without it elsewhere.
    pub(crate) fn resume_by_command(&mut self, owner: Process, job: usize) {
        if !self.agent_answers() {
            return self.resume_by_hand(owner, job);
        }
        let latest = self.disk.folders.get(&job).map_or(0, |folder| folder.latest());
        if matches!(self.existence(job, latest), Existence::Dead | Existence::Orphaned | Existence::Ended) {
            self.change_want(owner, job, Want::Resume, None);
        }
        self.finish_command(owner, job);
    }

    pub(crate) fn resume_by_hand(&mut self, owner: Process, job: usize) {
        let Some(folder) = self.disk.folders.get(&job) else { return self.die(owner) };
        let latest = folder.latest();
        let (number, epoch) = (latest + 1, folder.epoch() + 1);
        let attempt = AttemptName { job: self.name(job).clone(), number, epoch };
        match self.existence(job, latest) {
            Existence::Dead | Existence::Ended => self.soon(owner, Task::Launch(Launch::by_hand(job, attempt))),
            Existence::Orphaned => {
                if let Some(attempt) = self.files(job, latest).map(|files| files.attempt) {
                    self.signal_work(attempt, 9);
                }
                self.finish_command(owner, job);
            }
            Existence::Launching | Existence::Running | Existence::Unknown => self.finish_command(owner, job),
        }
    }

    pub(crate) fn remove_by_command(&mut self, owner: Process, job: usize) {
        let Some(folder) = self.disk.folders.get(&job) else { return self.die(owner) };
        let latest = folder.latest();
        let attempts: Vec<usize> = folder.attempts.values().map(|files| files.attempt).collect();
        let lives = attempts.iter().any(|attempt| self.attempts[*attempt].work.is_some());
        if lives || self.lock_is_held(job) {
            return self.finish_command(owner, job);
        }
        match (latest > 0).then(|| self.settle(owner, job, latest, None)) {
            None | Some(Settled::Ended) => {}
            Some(Settled::Refused(_)) => return self.finish_command(owner, job),
            Some(Settled::Died) => return,
        }
        let alive = self.record(owner, "removes the folder", |world| {
            world.note(|world| format!("{} is removed", world.name(job)));
            world.disk.folders.remove(&job);
        });
        if alive {
            self.finish_command(owner, job);
        }
    }
}
