//! What a job does when its state machine turns: the ways in and out of its states.

use alloc::vec::Vec;
use core::time::Duration;

use crate::backoff::relaunch_delay;
use crate::job::{Goal, Job, Outbox};
use crate::state::{Doubt, Lost, Past, Running, Starter, State, Then};
use crate::{
    Action, Attempt, AttemptNumber, Class, Ending, Epoch, Heard, LaunchFailure, Life, Moment, Orphans, ProcessId,
    Proposal, Reason, Spent, StopReason,
};

/// Launches refused in a row after which the job is held: five minutes, longer than an ordinary lock or full disk lasts.
const LAUNCH_REFUSALS_MAX: u32 = 10;

/// A strategy that waits is not asked again sooner, so that one that always waits costs nothing.
const WAIT_LEAST: Duration = Duration::from_secs(1);

impl Job {
    /// Enters a state.
    pub(crate) fn turn(&mut self, state: State, because: Reason) {
        self.state = state;
        self.because = because;
    }

    /// Lets the next attempt start as soon as it is its turn.
    pub(crate) fn launch(&mut self, past: Past, because: Reason) {
        debug_assert!(self.goal != Goal::Stop, "a stop outranks every launch");
        self.turn(State::Queued { past, because }, because);
    }

    /// Orders the next attempt, with an epoch that nobody had.
    pub(crate) fn start(&mut self, past: Past, because: Reason, now: Moment, commands: &mut Vec<Action>) {
        self.goal = Goal::Run;
        let number = AttemptNumber(past.attempt.number.max(self.ended_number).0.saturating_add(1));
        self.epoch = Epoch(self.epoch.0.saturating_add(1));
        let attempt = Attempt { number, epoch: self.epoch };
        let starter = Starter::Agent { past, because };
        self.turn(State::Launching { attempt, starter, since: now }, because);
        commands.push(Action::Launch { subject: self.subject, attempt, because });
    }

    /// An attempt runs.
    pub(crate) fn run(&mut self, attempt: Attempt, supervisor: ProcessId, now: Moment) {
        if self.goal == Goal::Resume {
            self.goal = Goal::Run;
        }
        self.epoch = self.epoch.max(attempt.epoch);
        self.refusals = 0;
        let because = Reason::AttemptRuns { number: attempt.number };
        self.turn(State::Running(Running::fresh(attempt, supervisor, now)), because);
    }

    /// Somebody else started an attempt with a higher epoch. If the one that is known still runs, it is fenced off: its
    /// lock was free, so its death was taken for proven elsewhere.
    pub(crate) fn adopt(&mut self, attempt: Attempt, supervisor: ProcessId, now: Moment, commands: &mut Vec<Action>) {
        if let State::Running(old) = self.state {
            commands.push(self.end_attempt(&old, Reason::Fenced { by: attempt.epoch }));
        }
        self.run(attempt, supervisor, now);
    }

    /// Somebody else is starting an attempt with a higher epoch, or a launch that was given up goes on: its supervisor said
    /// nothing in time and lives.
    pub(crate) fn wait_for(&mut self, attempt: Attempt, now: Moment) {
        let goes_on = attempt.epoch == self.epoch && attempt.number > self.ended_number;
        match self.state {
            State::Pending
            | State::Queued { .. }
            | State::BackingOff { .. }
            | State::Asking { .. }
            | State::Held(_)
            | State::Stuck(_)
            | State::Ended(_)
                if attempt.epoch > self.epoch || goes_on =>
            {
                self.epoch = attempt.epoch;
                let starter = Starter::Other;
                self.turn(State::Launching { attempt, starter, since: now }, Reason::StartedElsewhere);
            }
            State::Pending
            | State::Queued { .. }
            | State::Launching { .. }
            | State::Running(_)
            | State::Draining { .. }
            | State::EndingOrphan(_)
            | State::RecordingLost(_)
            | State::BackingOff { .. }
            | State::Asking { .. }
            | State::Held(_)
            | State::Unproven(..)
            | State::Stuck(_)
            | State::Ended(_) => {}
        }
    }

    /// An attempt ended of whose start nothing was told. Where the one that is known may live, that proves nothing.
    pub(crate) fn take_over(
        &mut self,
        attempt: Attempt,
        ending: Ending,
        now: Moment,
        commands: &mut Vec<Action>,
        out: &mut Outbox,
    ) {
        match self.state {
            State::Running(_) | State::Draining { .. } | State::EndingOrphan(_) | State::Unproven(..) => {
                self.epoch = self.epoch.max(attempt.epoch);
                self.ended_number = self.ended_number.max(attempt.number);
                out.unexpected();
            }
            State::Pending
            | State::Queued { .. }
            | State::Launching { .. }
            | State::RecordingLost(_)
            | State::BackingOff { .. }
            | State::Asking { .. }
            | State::Held(_)
            | State::Stuck(_)
            | State::Ended(_) => self.finish(attempt, ending, None, now, commands),
        }
    }

    /// Takes in what the supervisor told.
    pub(crate) fn hear(&mut self, heard: Heard, now: Moment, out: &mut Outbox) {
        let (State::Running(running) | State::Draining { running, .. }) = &mut self.state else { return };
        let has_beaten = heard.sequence > running.heard.sequence;
        if !running.hear(heard, now) {
            return out.refuse();
        }
        self.history.saw(heard.checkpoint);
        match self.state {
            State::Running(running) if heard.stopping => {
                self.turn(State::Draining { running, order: None }, Reason::StopSeen);
            }
            // Its supervisor has not been reached, or does not find what the order rests on: it is judged anew.
            State::Draining { running, order: Some(order @ (StopReason::Stale | StopReason::Hung)) }
                if !heard.stopping && !self.stands(&running, order, has_beaten, now) =>
            {
                self.turn(State::Running(running), Reason::AttemptRuns { number: running.attempt.number });
            }
            State::Running(_)
            | State::Draining { .. }
            | State::Pending
            | State::Queued { .. }
            | State::Launching { .. }
            | State::EndingOrphan(_)
            | State::RecordingLost(_)
            | State::BackingOff { .. }
            | State::Asking { .. }
            | State::Held(_)
            | State::Unproven(..)
            | State::Stuck(_)
            | State::Ended(_) => {}
        }
    }

    /// Its supervisor is gone and left no ending.
    pub(crate) fn lose(&mut self, lost: Lost, process: Life, commands: &mut Vec<Action>) {
        match process {
            Life::Gone => self.record_lost(lost, Reason::ProvenGone, commands),
            Life::Unknown => self.turn(State::Unproven(lost, Doubt::Unknown), Reason::CannotTell),
            Life::Alive => {
                self.turn(State::Unproven(lost, Doubt::Orphan), Reason::OrphanHeld);
                self.reconsider(lost, Doubt::Orphan, commands);
            }
        }
    }

    /// Decides what happens to an attempt that is not proven over, by what is wanted.
    pub(crate) fn reconsider(&mut self, lost: Lost, doubt: Doubt, commands: &mut Vec<Action>) {
        let commanded = Lost { order: Some(StopReason::Commanded), ..lost };
        match (doubt, self.goal, self.settings.orphans) {
            (Doubt::Unknown, Goal::Run | Goal::Stop | Goal::Resume, Orphans::End | Orphans::Hold) => {}
            (Doubt::Orphan | Doubt::Survivors, Goal::Stop, Orphans::End | Orphans::Hold) => {
                self.end_orphan(commanded, Reason::Commanded, commands);
            }
            (Doubt::Orphan | Doubt::Survivors, Goal::Resume, Orphans::End | Orphans::Hold) => {
                self.end_orphan(lost, Reason::ResumedByHand, commands);
            }
            (Doubt::Orphan, Goal::Run, Orphans::End) if self.pause.is_some() => {
                self.because = Reason::OrphanWhilePaused;
            }
            (Doubt::Orphan, Goal::Run, Orphans::End) => self.end_orphan(lost, Reason::SupervisorGone, commands),
            (Doubt::Orphan, Goal::Run, Orphans::Hold) | (Doubt::Survivors, Goal::Run, Orphans::End | Orphans::Hold) => {
            }
        }
    }

    fn end_orphan(&mut self, lost: Lost, because: Reason, commands: &mut Vec<Action>) {
        self.turn(State::EndingOrphan(lost), because);
        let (subject, attempt, grace) = (self.subject, lost.attempt, self.settings.grace);
        commands.push(Action::EndOrphan { subject, attempt, grace, because });
    }

    /// The processes of an orphan were told to end, and so many are left.
    pub(crate) fn count_survivors(&mut self, lost: Lost, survivors: u32, commands: &mut Vec<Action>) {
        if survivors == 0 {
            let because =
                if lost.order == Some(StopReason::Commanded) { Reason::Commanded } else { Reason::SupervisorGone };
            self.record_lost(lost, because, commands);
        } else {
            self.turn(State::Unproven(lost, Doubt::Survivors), Reason::Survivors { count: survivors });
        }
    }

    fn record_lost(&mut self, lost: Lost, because: Reason, commands: &mut Vec<Action>) {
        self.turn(State::RecordingLost(lost), because);
        let (subject, attempt) = (self.subject, lost.attempt);
        commands.push(Action::RecordLost { subject, attempt, pickups: self.pickups.saturating_add(1), because });
    }

    /// Its ending is recorded: counts it, and decides what follows.
    pub(crate) fn finish(
        &mut self,
        attempt: Attempt,
        ending: Ending,
        order: Option<StopReason>,
        now: Moment,
        commands: &mut Vec<Action>,
    ) {
        if ending.class == Class::Lost {
            self.pickups = self.pickups.saturating_add(1);
        }
        // What failed or completed did so by itself, though its end was ordered: whoever carries an order out says so.
        let order = order.filter(|_| ending.class == Class::Lost);
        let ending = Ending { order: ending.order.or(order), ..ending };
        self.settle_ending(attempt, ending, Duration::ZERO, now, commands);
    }

    /// Decides what follows an ending of `ago` that is counted already.
    pub(crate) fn settle_ending(
        &mut self,
        attempt: Attempt,
        ending: Ending,
        ago: Duration,
        now: Moment,
        commands: &mut Vec<Action>,
    ) {
        let past = self.count_ending(attempt, &ending);
        match self.goal {
            Goal::Stop if ending.class == Class::Completed => {
                self.turn(State::Ended(past), Reason::AttemptEnded { class: ending.class, order: None });
            }
            Goal::Stop => self.turn(State::Ended(past), Reason::Commanded),
            Goal::Resume => self.resume_by_hand(past, now, commands),
            Goal::Run => self.resume_by_policy(past, &ending, ago, now, commands),
        }
    }

    /// Takes note of an ending, whatever follows from it.
    pub(crate) fn count_ending(&mut self, attempt: Attempt, ending: &Ending) -> Past {
        self.epoch = self.epoch.max(attempt.epoch);
        self.ended_number = self.ended_number.max(attempt.number);
        self.refusals = 0;
        self.history.attempt_ended(ending);
        Past { attempt, class: Some(ending.class), order: ending.order.filter(|order| order.is_for_want()) }
    }

    /// Asks for another attempt because somebody wants it: a new series, whose limits begin anew. What is used up stays
    /// used up: another attempt would be ended at its first beat.
    pub(crate) fn resume_by_hand(&mut self, past: Past, now: Moment, commands: &mut Vec<Action>) {
        self.goal = Goal::Run;
        if let State::Queued { because: Reason::ResumedByHand | Reason::FirstAttempt, .. } = self.state {
            return;
        }
        if let Some(because) = self.budget_used_up(Spent::default()) {
            return self.turn(State::Stuck(past), because);
        }
        self.refusals = 0;
        self.history.resumed_by_hand();
        let then = Then::Ask { by_hand: true };
        self.turn(State::BackingOff { past, until: now, then }, Reason::ResumedByHand);
        self.go_on(now, commands);
    }

    fn resume_by_policy(
        &mut self,
        past: Past,
        ending: &Ending,
        ago: Duration,
        now: Moment,
        commands: &mut Vec<Action>,
    ) {
        let class = ending.class;
        match (self.resumes(class, ending.order), self.limit(ending)) {
            (false, _) => match class {
                Class::Completed | Class::Stopped => {
                    self.turn(State::Ended(past), Reason::AttemptEnded { class, order: None });
                }
                Class::Failed | Class::Lost | Class::Limit => {
                    self.turn(State::Ended(past), Reason::NotResumed { class });
                }
            },
            (true, Some(limit)) => self.turn(State::Stuck(past), limit),
            (true, None) => {
                let delay = self.history.delay(&self.settings.resume, self.settings.seed);
                let then = Then::Ask { by_hand: false };
                let until = now.after(delay.saturating_sub(ago));
                self.turn(
                    State::BackingOff { past, until, then },
                    Reason::BackoffBegun { after: class, order: past.order, delay },
                );
                self.go_on(now, commands);
            }
        }
    }

    /// Goes on after a wait, if it is over.
    pub(crate) fn go_on(&mut self, now: Moment, commands: &mut Vec<Action>) {
        match self.state {
            State::BackingOff { past, until, then } if until <= now && self.pause.is_none() => match then {
                Then::Ask { by_hand } => self.ask(past, by_hand, commands),
                Then::Launch { because, may_live: _ } => self.launch(past, because),
            },
            State::BackingOff { .. }
            | State::Pending
            | State::Queued { .. }
            | State::Launching { .. }
            | State::Running(_)
            | State::Draining { .. }
            | State::EndingOrphan(_)
            | State::RecordingLost(_)
            | State::Asking { .. }
            | State::Held(_)
            | State::Unproven(..)
            | State::Stuck(_)
            | State::Ended(_) => {}
        }
    }

    /// Asks the strategy; before the first ending there is nothing to ask about.
    fn ask(&mut self, past: Past, by_hand: bool, commands: &mut Vec<Action>) {
        let Some(after) = past.class else { return self.launch(past, Reason::FirstAttempt) };
        let because = if by_hand { Reason::ResumedByHand } else { Reason::Resumed { after, order: past.order } };
        self.state = State::Asking { past, by_hand };
        commands.push(Action::AskStrategy { subject: self.subject, attempt: past.attempt, because });
    }

    /// Takes in what the strategy proposes.
    pub(crate) fn take_answer(&mut self, past: Past, by_hand: bool, proposal: Proposal, now: Moment) {
        match (proposal, past.class) {
            (Proposal::Launch, _) if self.pause.is_some() => {
                let then = Then::Ask { by_hand };
                self.state = State::BackingOff { past, until: now, then };
            }
            (Proposal::Launch, Some(after)) => {
                let because =
                    if by_hand { Reason::ResumedByHand } else { Reason::Resumed { after, order: past.order } };
                self.launch(past, because);
            }
            (Proposal::Launch, None) => self.launch(past, Reason::FirstAttempt),
            (Proposal::Wait(delay), _) => {
                let delay = delay.max(WAIT_LEAST);
                let then = Then::Ask { by_hand };
                self.turn(State::BackingOff { past, until: now.after(delay), then }, Reason::StrategyWaits { delay });
            }
            (Proposal::Hold, _) => self.turn(State::Held(past), Reason::StrategyHolds),
            (Proposal::GiveUp, _) => self.turn(State::Stuck(past), Reason::StrategyGaveUp),
            (Proposal::Failed, _) => self.turn(State::Held(past), Reason::StrategyFailed),
        }
    }

    /// A launch did not take place.
    pub(crate) fn refuse_launch(&mut self, starter: Starter, failure: LaunchFailure, now: Moment) {
        let Starter::Agent { past, because } = starter else { return };
        self.refusals = self.refusals.saturating_add(1);
        let refusals = self.refusals;
        let again = State::BackingOff {
            past,
            until: now.after(relaunch_delay(refusals, self.settings.seed)),
            then: Then::Launch { because, may_live: failure != LaunchFailure::NotWanted },
        };
        let again = if refusals >= LAUNCH_REFUSALS_MAX { State::Held(past) } else { again };
        match failure {
            LaunchFailure::Superseded
            | LaunchFailure::Locked
            | LaunchFailure::Failed
            | LaunchFailure::NotWanted
            | LaunchFailure::Unreadable
                if self.goal == Goal::Stop =>
            {
                self.turn(State::Ended(past), Reason::Commanded);
            }
            LaunchFailure::Superseded => self.turn(again, Reason::LaunchSuperseded),
            LaunchFailure::Locked => self.turn(again, Reason::LaunchLocked { refusals }),
            LaunchFailure::Failed => self.turn(again, Reason::LaunchFailed { refusals }),
            LaunchFailure::NotWanted => self.turn(again, Reason::LaunchNotWanted),
            LaunchFailure::Unreadable => self.turn(State::Held(past), Reason::LaunchUnreadable),
        }
    }
}
