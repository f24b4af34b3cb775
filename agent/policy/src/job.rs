//! One job: what it is told, what follows, and what is recorded of it.

use alloc::vec::Vec;
use core::time::Duration;

use crate::queue::{Queue, Request};
use crate::state::{Past, State, Then};
use crate::{
    Action, Attempt, AttemptNumber, Budget, Ending, Epoch, Existence, Facts, Heard, History, JobSettings, Judgement,
    LaunchFailure, Lease, Life, Limit, Missed, Moment, NextStep, Phase, ProcessId, Proposal, Reason, Spent, SubjectId,
    SubjectView, Verdict, Want, judge, next_change,
};

/// What a job is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Run,
    Stop,
    Resume,
    /// time has passed: to go on where it is due
    Go,
}

/// What the state machine of one job can be told. (A pause means the same in every state and is no input of it.)
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    Asked(Ask),
    Started {
        attempt: Attempt,
        supervisor: ProcessId,
    },
    /// A look found it under its live supervisor.
    Seen {
        attempt: Attempt,
        supervisor: ProcessId,
    },
    Refused {
        attempt: Attempt,
        failure: LaunchFailure,
    },
    Heard {
        attempt: Attempt,
        heard: Heard,
    },
    ActivitySeen {
        attempt: Attempt,
        idle: Duration,
    },
    SupervisorGone {
        attempt: Attempt,
        process: Life,
    },
    Ended {
        attempt: Attempt,
        ending: Ending,
    },
    OrphanEnded {
        attempt: Attempt,
        survivors: u32,
    },
    Answered {
        attempt: Attempt,
        proposal: Proposal,
    },
    LookFailed {
        attempt: Attempt,
    },
}

/// How the attempt that an input names stands to the one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    Current,
    Older,
    /// Ordered by this agent, and refused: it is believed that it runs or ended, whoever tells so.
    Refused,
    /// Nobody told of it.
    Newer,
}

/// Takes what a job gives out, counts what it could not use, and answers whether it may start.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) actions: Vec<Action>,
    /// who may start, over all jobs
    pub(crate) queue: Queue,
    pub(crate) refused_count: u64,
    pub(crate) unexpected_count: u64,
}

impl Outbox {
    /// Counts an input about what is over: late, doubled or of an old epoch.
    pub(crate) fn refuse(&mut self) {
        self.refused_count = self.refused_count.saturating_add(1);
    }

    /// Counts an input that cannot come where the caller does what it was told; nothing follows from it.
    pub(crate) fn unexpected(&mut self) {
        self.unexpected_count = self.unexpected_count.saturating_add(1);
    }
}

/// What is wanted of a job; a pause is kept apart, since it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Run,
    Stop,
    /// Another attempt by hand, as soon as the last one is proven over.
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) length: Option<Duration>,
    pub(crate) until: Option<Moment>,
}

/// What was last recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// the attempt that the verdict is about
    pub(crate) attempt: Attempt,
    pub(crate) verdict: Verdict,
    pub(crate) because: Reason,
    pub(crate) since: Moment,
    /// its standstill has reached its limit, also where another verdict covers that
    pub(crate) stands_still: bool,
    pub(crate) phase: Option<(Phase, Attempt, Reason)>,
}

/// One job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) subject: SubjectId,
    pub(crate) settings: JobSettings,
    pub(crate) goal: Goal,
    pub(crate) pause: Option<Pause>,
    pub(crate) epoch: Epoch,
    /// the highest number that ended
    pub(crate) ended_number: AttemptNumber,
    pub(crate) pickups: u32,
    /// launches refused in a row
    pub(crate) refusals: u32,
    pub(crate) history: History,
    /// no silence from before this moment counts, for reasons of the agent's own
    pub(crate) baseline: Moment,
    /// a sweep has weighed its silence beside that of all others: it may be ended for it
    pub(crate) is_weighed: bool,
    pub(crate) state: State,
    /// why it is in its state
    pub(crate) because: Reason,
    pub(crate) shown: Shown,
}

impl Job {
    /// Takes in what is wanted.
    pub(crate) fn want(&mut self, want: Want, now: Moment, out: &mut Outbox) {
        let mut commands = Vec::new();
        self.note_want(want, now);
        match (want, self.goal) {
            (Want::Stop, _) => self.step(Input::Asked(Ask::Stop), now, &mut commands, out),
            (Want::Resume, _) => self.step(Input::Asked(Ask::Resume), now, &mut commands, out),
            (Want::Run, Goal::Run | Goal::Resume) => self.step(Input::Asked(Ask::Run), now, &mut commands, out),
            (Want::Run, Goal::Stop) | (Want::Pause(_), Goal::Run | Goal::Stop | Goal::Resume) => {}
        }
        self.settle(now, &mut commands, out);
        self.record(now, commands, out);
    }

    /// Takes in one input, and gives out what follows from it.
    pub(crate) fn handle(&mut self, input: Input, now: Moment, out: &mut Outbox) {
        let mut commands = Vec::new();
        self.sort(input, now, &mut commands, out);
        self.settle(now, &mut commands, out);
        self.record(now, commands, out);
    }

    /// Does what is due.
    pub(crate) fn time_out(&mut self, now: Moment, out: &mut Outbox) {
        match self.pause {
            Some(Pause { until: Some(until), .. }) if until <= now => self.want(Want::Run, now, out),
            Some(_) | None => self.handle(Input::Asked(Ask::Go), now, out),
        }
    }

    /// What happens next by itself, and when.
    pub(crate) fn next(&self, now: Moment) -> Option<(NextStep, Moment)> {
        if let Some(pause) = self.pause {
            return pause.until.map(|until| (NextStep::Unpause, until));
        }
        if let State::BackingOff { until, then, .. } = self.state {
            let step = match then {
                Then::Ask { .. } => NextStep::AskStrategy,
                Then::Launch { .. } => NextStep::Launch,
            };
            return Some((step, until));
        }
        let (shown, counted) = self.shown_and_counted_facts(now);
        if self.awaits_sweep(&counted) {
            return Some((NextStep::Judge, now));
        }
        // What is shown as stale stays so at a new baseline, and is ended by what counts from there.
        let counted = (counted != shown).then_some(counted);
        let changes = core::iter::once(shown).chain(counted).filter_map(|facts| next_change(&self.lease(), &facts));
        changes.min().map(|wait| (NextStep::Judge, now.after(wait)))
    }

    /// Its lease, with the time that is left to all its attempts as a limit of this one.
    pub(crate) fn lease(&self) -> Lease {
        let lease = self.settings.lease;
        let left = self.settings.resume.wall_time_max.bound().map(|max| max.saturating_sub(self.history.ran()));
        let run_for = lease.run_for.bound().into_iter().chain(left).min();
        Lease { run_for: run_for.map_or(Limit::None, Limit::At), ..lease }
    }

    /// What is known of its latest attempt, as far as the agent could hear it. What is stale or stands still already stays
    /// so: a new baseline is no sign of life, and a beat is none of progress.
    pub(crate) fn facts(&self, now: Moment) -> Facts {
        self.shown_and_counted_facts(now).0
    }

    /// Both in one: every beat asks for them.
    fn shown_and_counted_facts(&self, now: Moment) -> (Facts, Facts) {
        let whole = self.state.facts(&self.settings.lease, now);
        let counted = whole.listened_for(now.since(self.baseline));
        let is_silent = matches!(self.shown.verdict, Verdict::Stale | Verdict::Missing);
        let shown = Facts {
            silence: if is_silent { whole.silence } else { counted.silence },
            still: if self.shown.stands_still { whole.still } else { counted.still },
            ..counted
        };
        (shown, counted)
    }

    /// What is known of its latest attempt and counts against it: no silence from before the baseline does, whatever is
    /// shown. Every order to end it rests on these.
    pub(crate) fn counted_facts(&self, now: Moment) -> Facts {
        self.state.facts(&self.settings.lease, now).listened_for(now.since(self.baseline))
    }

    /// Whether it waits for its turn; a pause takes it out of the line.
    pub(crate) fn waits_in_line(&self) -> bool {
        matches!(self.state, State::Queued { .. }) && self.pause.is_none()
    }

    /// What it asks of the queue before it starts.
    pub(crate) fn request(&self, because: Reason) -> Request {
        Request { subject: self.subject, slots: self.settings.slots, is_paced: because != Reason::ResumedByHand }
    }

    /// What all its attempts used up together, as far as they told.
    fn spent(&self) -> Spent {
        let running = self.state.running().map(|running| running.spent).unwrap_or_default();
        self.history.spent().plus(running)
    }

    /// All that is known of it.
    pub(crate) fn view(&self, at: Moment) -> SubjectView {
        let facts = self.facts(at);
        let running = self.state.running().filter(|running| !running.is_unknown);
        let is_cut = running.is_some_and(|running| running.last_heard_at() < self.baseline);
        let judgement = self.judge(&facts);
        let because = if judgement.verdict == self.shown.verdict { judgement.because } else { self.shown.because };
        SubjectView {
            subject: self.subject,
            verdict: self.shown.verdict,
            because,
            since: self.shown.since,
            phase: self.phase(),
            phase_because: self.phase_because(),
            attempt: self.state.attempt(),
            pickups: self.pickups,
            fruitless: self.history.fruitless_known(),
            silence: running.map(|_| facts.silence),
            still: running.map(|_| facts.still),
            running: running.map(|_| facts.running),
            heard: self.state.running().map(|running| (running.heard, running.heard_at)),
            spent: self.spent(),
            place: None,
            baseline: is_cut.then_some(self.baseline),
            next: self.next(at),
            at,
        }
    }

    /// Takes note of what is wanted. A stop outranks a pause and is undone by a resume alone.
    pub(crate) fn note_want(&mut self, want: Want, now: Moment) {
        match (want, self.goal) {
            (Want::Stop, Goal::Run | Goal::Stop | Goal::Resume) => {
                self.goal = Goal::Stop;
                self.unpause(now);
            }
            (Want::Resume, Goal::Run | Goal::Stop | Goal::Resume) => {
                self.goal = Goal::Resume;
                self.unpause(now);
            }
            (Want::Run, Goal::Run | Goal::Resume) => self.unpause(now),
            (Want::Pause(length), Goal::Run | Goal::Resume) => {
                if self.pause.is_none_or(|pause| pause.length != length) {
                    self.pause = Some(Pause { length, until: length.map(|length| now.after(length)) });
                }
            }
            (Want::Run | Want::Pause(_), Goal::Stop) => {}
        }
    }

    /// Takes note of attempts of which nobody told, as an agent would that starts. Nothing is launched for those that a person
    /// asked for: an attempt of theirs is there.
    pub(crate) fn miss(&mut self, missed: Missed, now: Moment) {
        self.history = missed.history;
        self.history.assume(missed.attempt.number.0.saturating_sub(1), missed.pickups);
        self.pickups = self.pickups.max(missed.pickups);
        if missed.by_hand {
            self.goal = Goal::Run;
            self.unpause(now);
            self.refusals = 0;
        }
    }

    /// Takes another budget, which what runs may have used up already.
    pub(crate) fn change_budget(&mut self, budget: Budget, now: Moment, out: &mut Outbox) {
        let mut commands = Vec::new();
        self.settings.resume.budget = budget;
        self.settle(now, &mut commands, out);
        self.record(now, commands, out);
    }

    fn unpause(&mut self, now: Moment) {
        if self.pause.take().is_some()
            && let State::Running(running) | State::Draining { running, .. } = &mut self.state
        {
            running.unpaused_at = Some(now);
        }
    }

    /// The phase that is shown: a pause covers what would go on.
    pub(crate) fn phase(&self) -> Phase {
        self.shown_pause().map_or_else(|| self.state.phase(), |_| Phase::Paused)
    }

    pub(crate) fn phase_because(&self) -> Reason {
        self.shown_pause().map_or(self.because, |pause| Reason::Paused { length: pause.length })
    }

    fn shown_pause(&self) -> Option<Pause> {
        match self.state {
            State::Pending
            | State::Queued { .. }
            | State::Launching { .. }
            | State::Running(_)
            | State::Draining { .. }
            | State::EndingOrphan(_)
            | State::RecordingLost(_)
            | State::BackingOff { .. }
            | State::Asking { .. } => self.pause,
            State::Held(_) | State::Unproven(..) | State::Stuck(_) | State::Ended(_) => None,
        }
    }

    /// Its verdict, which tells of an ending for want of what latido brought it about.
    fn judge(&self, facts: &Facts) -> Judgement {
        let Judgement { verdict, because } = judge(&self.settings.lease, facts);
        match (because, self.state.past()) {
            (Reason::AttemptEnded { class, .. }, Some(Past { order, .. })) => {
                Judgement { verdict, because: Reason::AttemptEnded { class, order } }
            }
            (because, _) => Judgement { verdict, because },
        }
    }

    /// Gives out what changed, and then what is to be done: the record stands before the act.
    pub(crate) fn record(&mut self, now: Moment, commands: Vec<Action>, out: &mut Outbox) {
        let (subject, attempt) = (self.subject, self.state.attempt());
        let facts = self.facts(now);
        // A pause suspends what time decides, and nothing that is seen.
        let is_judged = match facts.existence {
            Existence::NotStarted | Existence::Launching | Existence::Present => self.pause.is_none(),
            Existence::Orphaned | Existence::Gone | Existence::Unknown | Existence::Ended(_) => true,
        };
        if is_judged || attempt != self.shown.attempt {
            self.shown.attempt = attempt;
            let Judgement { verdict, because } = self.judge(&facts);
            self.shown.stands_still = self.settings.lease.hung_after.reached(facts.still).is_some();
            self.shown.because = because;
            if verdict != self.shown.verdict {
                let previous = core::mem::replace(&mut self.shown.verdict, verdict);
                self.shown.since = now;
                out.actions.push(Action::RecordVerdict { subject, attempt, previous, current: verdict, because });
            }
        }
        let (phase, because) = (self.phase(), self.phase_because());
        if self.shown.phase != Some((phase, attempt, because)) {
            self.shown.phase = Some((phase, attempt, because));
            out.actions.push(Action::RecordPhase { subject, attempt, phase, because });
        }
        out.actions.extend(commands);
    }
}
