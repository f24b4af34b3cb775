//! One check, a dead man's switch: something outside signals on a schedule, and its absence is told.
//!
//! Its moments lie on the listening time line. A moment of the calendar that passed while nobody listened is placed where
//! listening began again, so that the check has its whole grace to be heard in; what had been waited for before stays
//! waited for. A check that is due every so often counts listening time alone. A pause does not count either.

use core::time::Duration;

use crate::job::Outbox;
use crate::run::{Begun, Ended};
use crate::signal::{CheckAction, CheckReason, Expectation, LastRun};
use crate::watched::{Pause, Shown};
use crate::{
    Action, CheckEvent, CheckFound, CheckMemory, CheckSchedule, CheckSettings, Fingerprint, Judgement, Moment,
    NextStep, OpenRun, Reason, Runs, Signal, SubjectId, SubjectView, Verdict,
};

/// A sign this much before its moment still meets it: clocks of two hosts differ, and a scheduler may be a little early.
/// Where moments lie closer together, half the distance between them.
const EARLY_MAX: Duration = Duration::from_secs(60);

/// What the state machine of one check can be told.
#[derive(Clone, Copy, Debug)]
enum Input {
    Started { run: Option<Fingerprint> },
    Succeeded { run: Option<Fingerprint> },
    Failed { run: Option<Fingerprint>, status: Option<u8> },
    Logged,
    Expected(Expectation),
    TimedOut,
}

/// One check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    subject: SubjectId,
    settings: CheckSettings,
    memory: CheckMemory,
    pause: Option<Pause>,
    shown: Shown,
}

impl Check {
    /// A check as it was found, with what follows from that.
    pub(crate) fn found(
        subject: SubjectId,
        settings: CheckSettings,
        found: CheckFound,
        now: Moment,
        out: &mut Outbox,
    ) -> Self {
        let memory = found.memory.unwrap_or(CheckMemory {
            last: LastRun::Unheard,
            sign_at: None,
            runs: Runs::default(),
            next: None,
            is_next_met: false,
            due_mark: None,
            owed: None,
        });
        let pause = found.pause.map(|pause| Pause::found(pause, now));
        let mut check = Self { subject, settings, memory, pause, shown: Shown::new(found.recorded, now) };
        if memory.next.is_none() && memory.owed.is_none() {
            check.expect_after(now);
        }
        check.end_pause(now);
        check.settle(now, out);
        check
    }

    /// Takes in that it was found once more. Another schedule makes it another check, which inherits nothing.
    pub(crate) fn find_again(&mut self, settings: CheckSettings, found: CheckFound, now: Moment, out: &mut Outbox) {
        if settings.schedule != self.settings.schedule {
            let shown = self.shown;
            *self = Self::found(self.subject, settings, found, now, &mut Outbox::default());
            self.shown = shown;
        }
        self.settings = settings;
        match found.pause {
            Some(pause) => Pause::prolong(&mut self.pause, pause.left, now),
            None => self.unpause(now),
        }
        self.settle(now, out);
    }

    /// Takes in what happened to it, and gives out what follows.
    pub(crate) fn handle_event(&mut self, event: CheckEvent, now: Moment, out: &mut Outbox) {
        match event {
            CheckEvent::Added { settings, found, .. } => return self.find_again(settings, found, now, out),
            CheckEvent::Removed { .. } => {}
            CheckEvent::Signaled { signal, run, .. } => {
                let input = match signal {
                    Signal::Started => Input::Started { run },
                    Signal::Succeeded | Signal::Exited(0) => Input::Succeeded { run },
                    Signal::Failed => Input::Failed { run, status: None },
                    Signal::Exited(status) => Input::Failed { run, status: Some(status) },
                    Signal::Logged => Input::Logged,
                };
                self.step(input, now, out);
            }
            CheckEvent::Expected { expectation, .. } => self.step(Input::Expected(expectation), now, out),
            CheckEvent::PauseWanted { length, .. } => Pause::prolong(&mut self.pause, length, now),
            CheckEvent::UnpauseWanted { .. } => self.unpause(now),
        }
        self.settle(now, out);
    }

    /// Does what is due.
    pub(crate) fn time_out(&mut self, now: Moment, out: &mut Outbox) {
        self.end_pause(now);
        self.step(Input::TimedOut, now, out);
        self.settle(now, out);
    }

    /// What happens next by itself, and when.
    pub(crate) fn next(&self, now: Moment) -> Option<(NextStep, Moment)> {
        let due = self.memory.next.filter(|_| self.counts()).map(|next| (NextStep::Judge, next.moment));
        if let Some(pause) = self.pause {
            return earlier(pause.until.map(|until| (NextStep::Unpause, until)), due);
        }
        let overdue = self.memory.owed.map(|owed| owed.moment.after(self.settings.grace));
        let run_for = self.settings.run_for.into_iter();
        let overlong = run_for.flat_map(|run_for| self.memory.runs.open().map(move |run| run.began.after(run_for)));
        let judged = overlong.chain(overdue).filter(|&moment| moment > now).min();
        earlier(judged.map(|moment| (NextStep::Judge, moment)), due)
    }

    /// All that is known of it.
    pub(crate) fn view(&self, at: Moment) -> SubjectView {
        SubjectView {
            silence: self.memory.sign_at.map(|sign_at| at.since(sign_at)),
            running: self.longest_run(at),
            ..self.shown.view(self.subject, self.judge(at), self.pause, self.next(at), at)
        }
    }

    /// What it has to remember over a restart of the agent.
    pub(crate) fn memory(&self) -> CheckMemory {
        self.memory
    }

    /// The state machine: what each input means after what was told last.
    fn step(&mut self, input: Input, now: Moment, out: &mut Outbox) {
        use Input as I;
        use LastRun as L;
        match (self.memory.last, input) {
            (L::Unheard, I::Started { run }) => {
                self.memory.last = L::Begun;
                self.begin(run, now, out);
            }
            (L::Begun | L::Succeeded { .. } | L::Failed { .. } | L::Unended { .. }, I::Started { run }) => {
                self.begin(run, now, out);
            }
            (
                L::Unheard | L::Begun | L::Succeeded { .. } | L::Failed { .. } | L::Unended { .. },
                I::Succeeded { run },
            ) => {
                if self.end(run, now, out) {
                    self.forget_overlong(now, out);
                    self.memory.last = L::Succeeded { at: now };
                }
            }
            (
                L::Unheard | L::Begun | L::Succeeded { .. } | L::Failed { .. } | L::Unended { .. },
                I::Failed { run, status },
            ) => {
                if self.end(run, now, out) {
                    self.memory.last = L::Failed { at: now, status };
                }
            }
            (L::Unheard | L::Begun | L::Succeeded { .. } | L::Failed { .. } | L::Unended { .. }, I::Logged) => {}
            (
                L::Unheard | L::Begun | L::Succeeded { .. } | L::Failed { .. } | L::Unended { .. },
                I::Expected(expectation),
            ) => self.expect(expectation, now, out),
            (L::Unheard | L::Begun | L::Succeeded { .. } | L::Failed { .. } | L::Unended { .. }, I::TimedOut) => {
                self.come_due(now);
            }
        }
    }

    /// A run begins. Its start is a sign of life.
    fn begin(&mut self, run: Option<Fingerprint>, now: Moment, out: &mut Outbox) {
        match self.memory.runs.begin(run, now) {
            Begun::Known => out.refuse(),
            Begun::Open { unended } => {
                if let Some(run) = unended {
                    self.tell_unended(run, now, out);
                }
                self.sign(now, now);
            }
        }
    }

    /// A run ends, and answers whether that was news. It speaks for the time at which it began, so that the end of
    /// yesterday's run does not stand for today's.
    fn end(&mut self, run: Option<Fingerprint>, now: Moment, out: &mut Outbox) -> bool {
        match self.memory.runs.end(run) {
            Ended::Known => {
                out.refuse();
                false
            }
            Ended::Over { began } => {
                self.sign(began.unwrap_or(now), now);
                true
            }
        }
    }

    /// Something told that it lives, for the time at which it `began`.
    fn sign(&mut self, began: Moment, now: Moment) {
        self.memory.sign_at = Some(now);
        match self.settings.schedule {
            CheckSchedule::Every(_) => {
                self.memory.owed = None;
                self.expect_after(now);
            }
            CheckSchedule::Calendar => {
                self.memory.owed = self.memory.owed.filter(|owed| !meets(began, owed));
                self.memory.is_next_met |= self.memory.next.is_some_and(|next| meets(began, &next));
            }
        }
    }

    /// Where it is expected every so often, the next time is that much listening time ahead.
    fn expect_after(&mut self, now: Moment) {
        match self.settings.schedule {
            CheckSchedule::Every(spacing) => {
                let moment = now.after(spacing);
                self.memory.next = Some(Expectation { mark: 0, moment, spacing, in_gap: false });
                self.memory.is_next_met = false;
            }
            CheckSchedule::Calendar => {}
        }
    }

    /// Takes in the calendar's next moment.
    fn expect(&mut self, expectation: Expectation, now: Moment, out: &mut Outbox) {
        match self.settings.schedule {
            CheckSchedule::Every(_) => out.unexpected(),
            CheckSchedule::Calendar => {
                self.come_due(now);
                if self.memory.due_mark == Some(expectation.mark) {
                    return out.refuse();
                }
                if self.memory.next.is_none_or(|next| next.mark != expectation.mark) {
                    self.memory.is_next_met = false;
                }
                self.memory.next = Some(expectation);
                self.come_due(now);
            }
        }
    }

    /// What is expected by now, and has had no sign, is owed since its moment. While it is paused nothing is.
    fn come_due(&mut self, now: Moment) {
        if let Some(next) = self.memory.next.filter(|next| self.counts() && next.moment <= now) {
            self.memory.next = None;
            self.memory.due_mark = (next.mark != 0).then_some(next.mark);
            let is_met = core::mem::take(&mut self.memory.is_next_met);
            if !is_met && self.pause.is_none() && self.memory.owed.is_none() {
                self.memory.owed = Some(next);
            }
        }
    }

    /// Whether its next moment comes nearer: the calendar goes on in a pause, and listening time does not count.
    fn counts(&self) -> bool {
        match self.settings.schedule {
            CheckSchedule::Every(_) => self.pause.is_none(),
            CheckSchedule::Calendar => true,
        }
    }

    /// A success ends the wait for runs that are longer than they may be: they will not end.
    fn forget_overlong(&mut self, now: Moment, out: &mut Outbox) {
        let Some(run_for) = self.settings.run_for else { return };
        while let Some(run) = self.memory.runs.take_overlong(run_for, now) {
            self.tell_unended(run, now, out);
        }
    }

    /// A run never told its end. A failure that was told says more.
    fn tell_unended(&mut self, run: OpenRun, now: Moment, out: &mut Outbox) {
        let action = CheckAction::RecordUnended { subject: self.subject, run: run.id, open_for: now.since(run.began) };
        out.actions.push(Action::Check(action));
        self.memory.last = match self.memory.last {
            LastRun::Unheard | LastRun::Begun | LastRun::Succeeded { .. } | LastRun::Unended { .. } => {
                LastRun::Unended { began: run.began }
            }
            failed @ LastRun::Failed { .. } => failed,
        };
    }

    /// Ends a pause that is over.
    fn end_pause(&mut self, now: Moment) {
        if self.pause.is_some_and(|pause| pause.is_over(now)) {
            self.unpause(now);
        }
    }

    /// Ends a pause, whose time does not count.
    fn unpause(&mut self, now: Moment) {
        let Some(pause) = self.pause.take() else { return };
        let length = now.since(pause.since);
        self.memory.runs.shift(length, now);
        if let Some(owed) = &mut self.memory.owed {
            owed.moment = owed.moment.after(length);
        }
        match (self.settings.schedule, &mut self.memory.next) {
            (CheckSchedule::Every(spacing), Some(next)) => {
                next.moment = next.moment.after(length).min(now.after(spacing));
            }
            (CheckSchedule::Every(_), None) | (CheckSchedule::Calendar, _) => {}
        }
    }

    fn settle(&mut self, now: Moment, out: &mut Outbox) {
        self.come_due(now);
        let judgement = self.judge(now);
        self.shown.record(self.subject, judgement, self.pause, now, out);
    }

    /// What it says itself comes first, then its absence, then the length of its runs.
    fn judge(&self, now: Moment) -> Judgement {
        let (verdict, because) = match self.memory.last {
            LastRun::Failed { at, status } => (Verdict::Failing, self.failing(status, now.since(at), now)),
            LastRun::Unended { began } => (Verdict::Stale, CheckReason::RunUnended { ago: now.since(began) }),
            LastRun::Unheard => self.judge_unheard(now),
            LastRun::Begun => {
                let running = self.longest_run(now).unwrap_or_default();
                self.judge_heard(CheckReason::RunUnderWay { running }, now)
            }
            LastRun::Succeeded { at } => self.judge_heard(CheckReason::InTime { ago: now.since(at) }, now),
        };
        Judgement { verdict, because: Reason::Check(because) }
    }

    fn failing(&self, status: Option<u8>, ago: Duration, now: Moment) -> CheckReason {
        let grace = self.settings.grace;
        match self.memory.owed.map(|owed| now.since(owed.moment)).filter(|&overdue| overdue >= grace) {
            Some(overdue) => CheckReason::FailedAndOverdue { status, overdue, grace },
            None => CheckReason::SaysFailed { status, ago },
        }
    }

    fn judge_unheard(&self, now: Moment) -> (Verdict, CheckReason) {
        let grace = self.settings.grace;
        let Some(Expectation { moment, in_gap, .. }) = self.memory.owed else {
            let due_in = self.memory.next.map(|next| next.moment.since(now));
            return (Verdict::Waiting, CheckReason::FirstAwaited { due_in });
        };
        let overdue = now.since(moment);
        if overdue >= grace {
            (Verdict::Missing, CheckReason::NeverSignaled { overdue, grace, in_gap })
        } else {
            (Verdict::Waiting, CheckReason::FirstOverdue { overdue, grace, in_gap })
        }
    }

    fn judge_heard(&self, otherwise: CheckReason, now: Moment) -> (Verdict, CheckReason) {
        let grace = self.settings.grace;
        let overdue = self.memory.owed.map(|owed| (now.since(owed.moment), owed.in_gap));
        let run = self.longest_run(now).zip(self.settings.run_for);
        if let Some((overdue, in_gap)) = overdue.filter(|&(overdue, _)| overdue >= grace) {
            (Verdict::Stale, CheckReason::NotSignaled { overdue, grace, in_gap })
        } else if let Some((running, run_for)) = run.filter(|(running, run_for)| running >= run_for) {
            (Verdict::Hung, CheckReason::RunTooLong { running, run_for })
        } else if let Some((overdue, in_gap)) = overdue {
            (Verdict::Late, CheckReason::Overdue { overdue, grace, in_gap })
        } else {
            (Verdict::Alive, otherwise)
        }
    }

    /// How long the longest of its open runs has run.
    fn longest_run(&self, now: Moment) -> Option<Duration> {
        self.memory.runs.open().map(|run| now.since(run.began)).max()
    }
}

/// Whether a sign for the time at which something `began` meets this expectation.
fn meets(began: Moment, expectation: &Expectation) -> bool {
    began.after(EARLY_MAX.min(expectation.spacing / 2)) >= expectation.moment
}

fn earlier(one: Option<(NextStep, Moment)>, other: Option<(NextStep, Moment)>) -> Option<(NextStep, Moment)> {
    [one, other].into_iter().flatten().min_by_key(|&(_, moment)| moment)
}
