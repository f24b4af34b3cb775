//! A job as its files and processes tell of it: when an agent starts, and whenever somebody looks again.

use alloc::vec::Vec;
use core::time::Duration;

use crate::job::{Goal, Input, Job, Outbox, Shown};
use crate::state::{Lost, Past, Starter, State};
use crate::{
    Action, Attempt, AttemptNumber, Class, Ending, Found, FoundAttempt, FoundState, JobSettings, Moment, ProcessId,
    Reason, SubjectId, Verdict,
};

impl Job {
    /// A job as it was found, with what follows from that.
    pub(crate) fn found(
        subject: SubjectId,
        settings: JobSettings,
        found: Found,
        baseline: Moment,
        now: Moment,
        out: &mut Outbox,
    ) -> Self {
        let attempt = found.attempt.map(|it| it.attempt).unwrap_or_default();
        let mut job = Self {
            subject,
            settings,
            goal: Goal::Run,
            pause: None,
            epoch: found.epoch.max(attempt.epoch),
            ended_number: AttemptNumber(0),
            pickups: found.pickups,
            refusals: 0,
            history: found.history,
            baseline,
            is_weighed: false,
            state: State::Pending,
            because: Reason::NotStarted,
            shown: Shown {
                attempt: Attempt::default(),
                verdict: found.recorded.map_or(Verdict::Waiting, |it| it.verdict),
                because: Reason::NotStarted,
                since: now,
                stands_still: found.recorded.is_some_and(|it| it.verdict == Verdict::Hung),
                phase: None,
            },
        };
        let mut commands = Vec::new();
        job.note_want(found.want, now);
        job.recover(found, now, &mut commands, out);
        job.settle(now, &mut commands, out);
        if found.recorded.is_some_and(|it| it.phase == job.phase()) {
            job.shown.phase = Some((job.phase(), job.state.attempt(), job.phase_because()));
        }
        job.record(now, commands, out);
        job
    }

    fn recover(&mut self, found: Found, now: Moment, commands: &mut Vec<Action>, out: &mut Outbox) {
        let Some(FoundAttempt { attempt, state }) = found.attempt else {
            match self.goal {
                Goal::Stop => self.turn(State::Ended(Past::NONE), Reason::Commanded),
                Goal::Run | Goal::Resume if self.pause.is_some() => {}
                Goal::Run | Goal::Resume => self.launch(Past::NONE, Reason::FirstAttempt),
            }
            return;
        };
        // Whether a checkpoint is new can be told only where every ending before it is known.
        let counted = matches!(state, FoundState::Ended(Ending { class: Class::Lost, .. }));
        let pickups = found.pickups.saturating_sub(u32::from(counted));
        let is_assumed = self.history.assume(attempt.number.0.saturating_sub(1), pickups);
        match state {
            FoundState::Running { supervisor, process: _, heard } => {
                if is_assumed {
                    self.history.learn(heard.checkpoint);
                }
                self.run(attempt, supervisor, now);
                if let State::Running(running) = &mut self.state {
                    running.unpaused_at = found.unpaused_ago.map(|ago| now.before(ago));
                }
                self.hear(heard, now, out);
            }
            FoundState::Unattended { process } => self.lose(Lost { attempt, order: None }, process, commands),
            FoundState::Ended(ending) => {
                if is_assumed {
                    self.history.learn(ending.checkpoint);
                }
                if found.is_given_up && self.goal != Goal::Stop {
                    self.goal = Goal::Run;
                    let past = self.count_ending(attempt, &ending);
                    return self.turn(State::Stuck(past), Reason::StrategyGaveUp);
                }
                self.settle_ending(attempt, ending, found.ended_ago, now, commands);
            }
            FoundState::Launching => {
                self.turn(State::Launching { attempt, starter: Starter::Other, since: now }, Reason::StartedElsewhere);
            }
        }
    }

    /// Takes in that the job was found once more: its settings may be new, the rest is told as if it came one by one. What
    /// runs is looked at before what is wanted, so that nothing is launched beside it.
    pub(crate) fn find_again(&mut self, settings: JobSettings, found: Found, now: Moment, out: &mut Outbox) {
        self.settings = settings;
        self.note_want(found.want, now);
        if let Some(FoundAttempt { attempt, state }) = found.attempt {
            match state {
                FoundState::Running { supervisor, process: _, heard } => {
                    self.handle(Input::Seen { attempt, supervisor }, now, out);
                    self.handle(Input::Heard { attempt, heard }, now, out);
                }
                FoundState::Unattended { process } => self.handle(Input::SupervisorGone { attempt, process }, now, out),
                FoundState::Ended(ending) => self.handle(Input::Ended { attempt, ending }, now, out),
                FoundState::Launching => self.wait_for(attempt, now),
            }
        }
        self.epoch = self.epoch.max(found.epoch);
        self.want(found.want, now, out);
    }

    /// A person asked for an attempt that begins, which may have been on its way when they did.
    pub(crate) fn begin_series(&mut self, attempt: Attempt) {
        if attempt.number > self.ended_number {
            self.history.resumed_by_hand();
        }
    }

    /// It was seen once more, and its supervisor may be known only since.
    pub(crate) fn see_again(&mut self, supervisor: ProcessId) {
        if let State::Running(running) | State::Draining { running, .. } = &mut self.state {
            running.supervisor = supervisor;
            running.is_unknown = false;
        }
    }

    /// Its processes were seen to have done nothing for so long.
    pub(crate) fn see_activity(&mut self, idle: Duration) {
        if let State::Running(running) | State::Draining { running, .. } = &mut self.state {
            running.seen_idle = Some(idle);
        }
    }

    /// A look at it failed.
    pub(crate) fn look_in_vain(&mut self) {
        if let State::Running(running) | State::Draining { running, .. } = &mut self.state {
            running.is_unknown = true;
        }
    }
}
