//! One attempt: its supervisor and its work.

use std::time::Duration;

use latido_driver::Fact;
use latido_protocol::attempt::{Ground, StopReason};
use latido_protocol::files::{Spent, Status};
use latido_protocol::{FORMAT_VERSION, Progress, Span, WallTime};

use crate::host::{Process, Role};
use crate::measure::Measure;
use crate::world::{Event, World};

/// Between the end of the work and its record: the supervisor waits for the last output.
const DRAIN_FOR: Duration = Duration::from_millis(200);

/// SIGKILL from outside.
pub(crate) const KILLED: How = How::Signaled(9);

/// How the work's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Exited(i32),
    Signaled(i32),
}

/// The end of a process by its own exit.
pub(crate) const fn exited(code: i32) -> How {
    How::Exited(code)
}

/// What a supervisor does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SupervisorDeed {
    RecordItself,
    StartWork,
    TellPresence,
    Kill,
    RecordEnd,
    RecordLine,
}

/// One attempt in the world.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) job: usize,
    pub(crate) number: u32,
    pub(crate) epoch: u64,
    pub(crate) supervisor: Option<Process>,
    pub(crate) work: Option<Process>,
    /// the work was started, or could not be
    pub(crate) reported: bool,
    pub(crate) book: Book,
    /// why it was told to end
    pub(crate) order: Option<StopReason>,
    pub(crate) how: Option<How>,
    ends_at: Duration,
    /// the work does not end by SIGTERM
    ignores_term: bool,
    /// SIGKILL waits for the kernel to let go of it
    doomed: Option<i32>,
}

/// What a supervisor knows of its work. Marks are on its own line, which has no time in which it was stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    sequence: u64,
    started: Duration,
    beat: Duration,
    changed: Duration,
    beat_wall: Option<WallTime>,
    /// time in which it was stopped
    pub(crate) away: Duration,
    pub(crate) stopped_at: Option<Duration>,
    /// beats that came meanwhile
    waiting: bool,
    done: u64,
    /// beats since the progress last changed
    repeated: u64,
    failing: bool,
    broken: bool,
    pub(crate) stopping: bool,
}

impl Attempt {
    pub(crate) fn new(job: usize, number: u32, epoch: u64) -> Self {
        Self {
            job,
            number,
            epoch,
            supervisor: None,
            work: None,
            reported: false,
            book: Book::default(),
            order: None,
            how: None,
            ends_at: Duration::MAX,
            ignores_term: false,
            doomed: None,
        }
    }
}

impl World {
    /// What is truly the case with an attempt, on the line of its supervisor.
    pub(crate) fn measure(&self, attempt: usize) -> Measure {
        let book = &self.attempts[attempt].book;
        let line = self.now() - book.away;
        Measure {
            silence: line.saturating_sub(book.beat),
            still: line.saturating_sub(book.changed),
            age: line.saturating_sub(book.started),
            broken: book.broken,
            repeated: book.repeated,
        }
    }

    /// The supervisor looks whether what an order rests on is so.
    pub(crate) fn holds(&self, attempt: usize, ground: Ground) -> bool {
        let Measure { silence, still, broken, .. } = self.measure(attempt);
        match ground {
            Ground::Silent { for_s } => silence >= for_s.0,
            Ground::Still { for_s } => still >= for_s.0,
            Ground::Repeating { beats } => self.attempts[attempt].book.sequence <= beats,
            Ground::Broken => broken,
        }
    }

    pub(crate) fn supervise(&mut self, attempt: usize, deed: SupervisorDeed) {
        match deed {
            SupervisorDeed::RecordItself => self.record_supervisor(attempt),
            SupervisorDeed::StartWork => self.start_work(attempt),
            SupervisorDeed::TellPresence => {
                self.write_status(attempt);
                self.tell_status(attempt);
                let every = self.specs[self.attempts[attempt].job].settings.presence_every.0;
                self.after(every, Event::Supervisor { attempt, deed });
            }
            SupervisorDeed::Kill => self.signal_work(attempt, 9),
            SupervisorDeed::RecordEnd => self.record_end(attempt),
            SupervisorDeed::RecordLine => self.record_line(attempt),
        }
    }

    fn start_work(&mut self, attempt: usize) {
        let Attempt { job, number, epoch, supervisor: Some(supervisor), .. } = self.attempts[attempt] else { return };
        let now = self.now();
        let claim = self.reference.jobs[job].work_started(epoch, now);
        self.expect("never two copies", job, claim);
        let work = self.host.start(Role::Work { attempt });
        let lives_for = self.specs[job].lives_for;
        let lives_for = match self.chance.work.below(10) {
            0 => Duration::from_millis(self.chance.work.below(900)),
            _ => Duration::from_secs(1 + self.chance.work.below(lives_for)),
        };
        let (ignores_term, drops_lock) = (self.chance.work.chance(15), self.chance.work.chance(20));
        let of = &mut self.attempts[attempt];
        (of.work, of.ends_at, of.ignores_term) = (Some(work), now + lives_for, ignores_term);
        let line = now - of.book.away;
        (of.book.started, of.book.beat, of.book.changed) = (line, line, line);
        if !drops_lock && let Some(folder) = self.disk.folders.get_mut(&job) {
            folder.lock.insert(work);
        }
        self.note(|world| format!("work of {} {number} epoch {epoch} starts as process {work}", world.name(job)));
        self.next_work(attempt);
        let identity = self.host.running(work).map(|running| running.identity.clone());
        let wall = self.host.wall();
        let alive = self.record(supervisor, "records its work", |world| {
            if let Some(files) = world.files(job, number) {
                files.start.process = identity;
                files.start.started_at = Some(wall);
            }
        });
        if alive {
            self.attempts[attempt].reported = true;
            self.supervise(attempt, SupervisorDeed::TellPresence);
        }
    }

    /// The work does what is next: beats, or ends.
    pub(crate) fn work(&mut self, attempt: usize) {
        let now = self.now();
        let of = &self.attempts[attempt];
        let (job, ends_at) = (of.job, of.ends_at);
        let weather = self.weather.jobs[job];
        if let Some(signal) = of.doomed.filter(|_| now >= weather.unkillable) {
            return self.exit_work(attempt, How::Signaled(signal));
        }
        if now >= ends_at && now >= weather.unkillable {
            let how = match self.chance.work.below(10) {
                0..=4 => How::Exited(0),
                5 | 6 => How::Exited(1),
                7 => How::Signaled(11),
                _ => KILLED,
            };
            return self.exit_work(attempt, how);
        }
        if self.specs[job].beats_every.is_some() && now >= weather.silent {
            let lost = now < weather.loses_beats && self.chance.word.chance(80);
            if !lost {
                self.beat(attempt);
            }
        }
        self.next_work(attempt);
    }

    fn next_work(&mut self, attempt: usize) {
        let of = &self.attempts[attempt];
        let to_end = of.ends_at.saturating_sub(self.now());
        let delay = match self.specs[of.job].beats_every {
            Some(every) => every.min(to_end),
            None => to_end.min(Duration::from_secs(30)),
        };
        self.after(delay.max(Duration::from_millis(1)), Event::Work { attempt });
    }

    /// A beat reaches the supervisor, if there is one that hears.
    fn beat(&mut self, attempt: usize) {
        let Some(supervisor) = self.attempts[attempt].supervisor else { return };
        if self.host.is_stopped(supervisor) {
            self.attempts[attempt].book.waiting = true;
            return;
        }
        let (now, wall) = (self.now(), self.host.wall());
        let weather = self.weather.jobs[self.attempts[attempt].job];
        let book = &mut self.attempts[attempt].book;
        book.sequence += 1;
        book.beat = now - book.away;
        book.beat_wall = Some(wall);
        (book.failing, book.broken) = (now < weather.fails, now < weather.broken);
        book.repeated += 1;
        if now >= weather.stands_still {
            book.done += 1;
            (book.changed, book.repeated) = (book.beat, 0);
        }
        self.write_status(attempt);
        self.tell_status(attempt);
    }

    fn status(&self, attempt: usize) -> Box<Status> {
        let of = &self.attempts[attempt];
        let book = &of.book;
        let Measure { silence, still, age, .. } = self.measure(attempt);
        let says = self.specs[of.job].beats_every.is_some();
        Box::new(Status {
            version: FORMAT_VERSION,
            job: self.specs[of.job].name.clone(),
            attempt: of.number,
            epoch: of.epoch,
            at: self.host.wall(),
            sequence: book.sequence,
            last_beat: book.beat_wall,
            progress_changed: None,
            progress: (says && book.done > 0).then(|| Progress {
                done: Some(book.done),
                checkpoint: (book.done >= 4).then(|| (book.done / 4 * 4).to_string()),
                ..Progress::default()
            }),
            state: book.failing.then(|| "failing".to_owned()),
            errors: 0,
            ready: false,
            broken: book.broken,
            silence_s: Span(silence),
            still_s: Span(still),
            running_s: Span(age),
            output_bytes: 0,
            idle_s: None,
            excuse: None,
            spent: Spent::default(),
            stopping: book.stopping,
            suspended_since: None,
            survivors: Vec::new(),
            trouble: latido_protocol::Trouble::default(),
        })
    }

    /// The supervisor answers who asks it; who is stopped answers nobody.
    pub(crate) fn asked_status(&self, attempt: usize) -> Option<Box<Status>> {
        let supervisor = self.attempts[attempt].supervisor?;
        if self.host.is_stopped(supervisor) || self.attempts[attempt].work.is_none() {
            return None;
        }
        Some(self.status(attempt))
    }

    fn write_status(&mut self, attempt: usize) {
        if self.disk_is_full() || self.is_steady() {
            return;
        }
        let status = self.status(attempt);
        let Attempt { job, number, .. } = self.attempts[attempt];
        if let Some(files) = self.files(job, number) {
            files.status = Some(*status);
        }
    }

    /// Pushes the latest to every agent that watches.
    pub(crate) fn tell_status(&mut self, attempt: usize) {
        for index in 0..self.agents.len() {
            if self.agents[index].watches(self.attempts[attempt].job, self.attempts[attempt].epoch) {
                let status = self.status(attempt);
                self.send(self.agents[index].process, Fact::Heard { status });
            }
        }
    }

    /// A signal reaches the work, which may not end by it.
    pub(crate) fn signal_work(&mut self, attempt: usize, signal: i32) {
        let of = &self.attempts[attempt];
        if of.work.is_none() || (signal == 15 && of.ignores_term) {
            return;
        }
        if self.now() < self.weather.jobs[of.job].unkillable {
            self.attempts[attempt].doomed = Some(signal);
            return;
        }
        self.exit_work(attempt, How::Signaled(signal));
    }

    pub(crate) fn exit_work(&mut self, attempt: usize, how: How) {
        let Some(work) = self.attempts[attempt].work else { return };
        self.host.end(work);
        self.work_gone(attempt, how);
    }

    pub(crate) fn work_gone(&mut self, attempt: usize, how: How) {
        let of = &mut self.attempts[attempt];
        (of.work, of.how) = (None, Some(how));
        let (job, number, epoch) = (of.job, of.number, of.epoch);
        let now = self.now();
        let truth = self.reference.jobs[job].attempt(epoch);
        (truth.work_lives, truth.gone_at) = (false, now);
        self.note(|world| format!("work of {} {number} epoch {epoch} ends: {how:?}", world.name(job)));
        self.after(DRAIN_FOR, Event::Supervisor { attempt, deed: SupervisorDeed::RecordEnd });
    }

    /// A process was stopped or continued.
    pub(crate) fn stopped(&mut self, process: Process) {
        let now = self.now();
        self.note(|_| format!("process {process} is stopped"));
        match self.host.running(process).map(|running| running.role) {
            Some(Role::Supervisor { attempt }) => self.attempts[attempt].book.stopped_at = Some(now),
            Some(Role::Agent) => self.agent_stopped(process),
            Some(Role::Command | Role::Work { .. } | Role::Stranger) | None => {}
        }
    }

    pub(crate) fn continued(&mut self, process: Process) {
        let now = self.now();
        self.note(|_| format!("process {process} goes on"));
        match self.host.running(process).map(|running| running.role) {
            Some(Role::Supervisor { attempt }) => {
                let book = &mut self.attempts[attempt].book;
                book.away += now - book.stopped_at.take().unwrap_or(now);
                if std::mem::take(&mut book.waiting) {
                    self.beat(attempt);
                }
            }
            Some(Role::Agent) => self.agent_continued(process),
            Some(Role::Command | Role::Work { .. } | Role::Stranger) | None => {}
        }
    }

    /// The attempt of a job whose work lives.
    pub(crate) fn running_attempt(&self, job: usize) -> Option<usize> {
        self.attempts.iter().rposition(|of| of.job == job && of.work.is_some())
    }

    /// The supervisor of a job's latest attempt, where it lives.
    pub(crate) fn supervisor_of(&self, job: usize) -> Option<Process> {
        self.attempts.iter().rev().find(|of| of.job == job).and_then(|of| of.supervisor)
    }
}
