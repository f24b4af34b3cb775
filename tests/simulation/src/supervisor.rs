//! What a supervisor does for its attempt: records itself, orders the end, records the ending.

use std::time::Duration;

use latido_protocol::attempt::StopReason;
use latido_protocol::files::{End, Spent};
use latido_protocol::{Class, FORMAT_VERSION, Outcome, OutcomeKind, Span};

use crate::attempt::{Attempt, How, KILLED, SupervisorDeed};
use crate::truth;
use crate::world::{Event, World};

/// Between two tries to record what the disk does not take.
const RECORD_EVERY: Duration = Duration::from_secs(1);

impl World {
    /// Its own identity stands on the disk before anything is started; without that it ends at once.
    pub(crate) fn record_supervisor(&mut self, attempt: usize) {
        let Attempt { job, number, supervisor: Some(supervisor), .. } = self.attempts[attempt] else { return };
        let identity = self.host.running(supervisor).map(|running| running.identity.clone());
        if self.disk_is_full() || !self.disk.folders.contains_key(&job) {
            return self.die(supervisor);
        }
        let alive = self.record(supervisor, "records itself as a supervisor", |world| {
            if let Some(files) = world.files(job, number) {
                files.start.supervisor = identity;
            }
        });
        if alive {
            let delay = self.chance.delay.between(Duration::from_millis(1), Duration::from_millis(20));
            self.after(delay, Event::Supervisor { attempt, deed: SupervisorDeed::StartWork });
        }
    }

    pub(crate) fn record_end(&mut self, attempt: usize) {
        let Attempt { job, number, epoch, supervisor: Some(supervisor), .. } = self.attempts[attempt] else { return };
        if self.disk_is_full() {
            self.after(RECORD_EVERY, Event::Supervisor { attempt, deed: SupervisorDeed::RecordEnd });
            return;
        }
        let outcome = self.outcome(attempt);
        if self.record(supervisor, "records the ending", |world| world.write_end(job, number, outcome)) {
            debug_assert!(epoch > 0, "an attempt has an epoch");
            self.after(Duration::from_millis(1), Event::Supervisor { attempt, deed: SupervisorDeed::RecordLine });
        }
    }

    pub(crate) fn record_line(&mut self, attempt: usize) {
        let Attempt { job, number, supervisor: Some(supervisor), .. } = self.attempts[attempt] else { return };
        if self.disk_is_full() {
            self.after(RECORD_EVERY, Event::Supervisor { attempt, deed: SupervisorDeed::RecordLine });
            return;
        }
        if self.record(supervisor, "enters the ending into the ledger", |world| world.write_line(job, number)) {
            self.die(supervisor);
        }
    }

    /// What the ending means: the order decides, where there was one.
    fn outcome(&self, attempt: usize) -> Outcome {
        let of = &self.attempts[attempt];
        let outcome = match of.how.unwrap_or(KILLED) {
            How::Exited(code) => Outcome::exited(code),
            How::Signaled(signal) => Outcome::signaled(signal, "a signal"),
        };
        let class = match of.order {
            None => outcome.class,
            Some(StopReason::Commanded) => Class::Stopped,
            Some(StopReason::Limit) => Class::Limit,
            Some(StopReason::Stale | StopReason::Hung | StopReason::Superseded) => Class::Lost,
        };
        Outcome { class, ..outcome }
    }

    /// Writes an ending unless one is there.
    pub(crate) fn write_end(&mut self, job: usize, number: u32, outcome: Outcome) {
        let (wall, now) = (self.host.wall(), self.now());
        let name = self.name(job).clone();
        let of = self.files(job, number).map(|files| files.attempt);
        let measured = of.filter(|of| self.attempts[*of].supervisor.is_some()).map(|of| self.measure(of).age);
        let order = of.and_then(|of| self.attempts[of].order);
        let Some(files) = self.files(job, number) else { return };
        if files.end.is_some() {
            return;
        }
        let ran = measured.or(files.status.as_ref().map(|status| status.running_s.0));
        let epoch = files.start.epoch;
        let (class, how) = (outcome.class, i64::from(outcome.code.or(outcome.signal).unwrap_or(-1)));
        let never_ran = outcome.kind == OutcomeKind::LaunchFailed;
        files.end = Some(End {
            version: FORMAT_VERSION,
            job: name,
            attempt: number,
            epoch,
            started_at: files.start.started_at,
            ended_at: wall,
            outcome,
            rusage: None,
            progress: files.status.as_ref().and_then(|status| status.progress.clone()),
            recorded_by: "the simulation".to_owned(),
            stopped_for: order,
            spent: Spent::default(),
            proof: "it is known".to_owned(),
            ran_s: ran.map(Span),
        });
        let by_policy = matches!(order, Some(StopReason::Stale | StopReason::Hung));
        let truth = self.reference.jobs[job].attempt(epoch);
        let ran_for = if truth.started_at.is_zero() { Duration::ZERO } else { now.saturating_sub(truth.started_at) };
        let is_quick = never_ran || measured.is_some_and(|age| age <= truth::QUICK);
        (truth.gone_at, truth.end) = (now, Some(truth::End { class, how, ran_for, is_quick, by_policy }));
        self.note(|world| format!("{} {number} epoch {epoch} has ended: {class}", world.name(job)));
    }

    /// Enters an ending into the ledger unless it is there.
    pub(crate) fn write_line(&mut self, job: usize, number: u32) {
        let Some(epoch) = self.files(job, number).map(|files| files.start.epoch) else { return };
        if !self.disk.in_ledger(job, number, epoch) {
            self.disk.ledger.push((job, number, epoch));
            let truth = self.reference.jobs[job].attempt(epoch);
            truth.lines += 1;
            let claim = if truth.lines > 1 { Err(format!("epoch {epoch} has two lines")) } else { Ok(()) };
            self.expect("one line in the ledger", job, claim);
        }
    }

    pub(crate) fn supervisor_gone(&mut self, attempt: usize) {
        let of = &mut self.attempts[attempt];
        of.supervisor = None;
        let (job, number, epoch) = (of.job, of.number, of.epoch);
        let now = self.now();
        let truth = self.reference.jobs[job].attempt(epoch);
        (truth.supervisor_lives, truth.gone_at) = (false, now);
        self.note(|world| format!("supervisor of {} {number} epoch {epoch} is gone", world.name(job)));
        for index in 0..self.agents.len() {
            if self.agents[index].watches(job, epoch) {
                let owner = self.agents[index].process;
                self.soon(owner, crate::task::Task::AfterTheEnd { attempt });
            }
        }
    }

    /// A stop reaches the supervisor: SIGTERM at once, SIGKILL after the grace.
    pub(crate) fn order_stop(&mut self, attempt: usize, reason: StopReason, grace: Duration) {
        let (job, epoch, now) = (self.attempts[attempt].job, self.attempts[attempt].epoch, self.now());
        let measure = self.measure(attempt);
        let claim = self.reference.may_end(job, epoch, reason, measure, now);
        self.expect("nothing is ended that has come back to life", job, claim);
        let of = &mut self.attempts[attempt];
        if of.how.is_some() {
            return;
        }
        of.order = match of.order {
            Some(first) if reason != StopReason::Commanded => Some(first),
            Some(_) | None => Some(reason),
        };
        of.book.stopping = true;
        self.tell_status(attempt);
        self.signal_work(attempt, 15);
        self.after(grace, Event::Supervisor { attempt, deed: SupervisorDeed::Kill });
    }
}
