//! One process that is watched from outside. It never beats, so it is judged by its identity alone.

use core::time::Duration;

use crate::job::Outbox;
use crate::sighting::{Absence, Exit, Naming, ProcessAction, ProcessReason, Sighting};
use crate::watched::{Pause, Shown};
use crate::{
    Action, Judgement, Moment, NextStep, ProcessEvent, ProcessFound, ProcessId, ProcessSettings, Reason, SubjectId,
    SubjectView, Verdict,
};

/// A file may be this much older than the process that wrote it: a start time is known to a hundredth of a second, and a
/// file's time to the coarsest of what file systems keep.
const FILE_OLDER_MAX: Duration = Duration::from_secs(2);

/// Where a watched process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has looked since the agent's start.
    Unlooked { seen: Option<ProcessId>, since: Moment },
    /// None was ever seen.
    Unseen { since: Moment },
    /// It lives.
    Alive { process: ProcessId },
    /// The last look failed.
    Unknown { seen: Option<ProcessId>, since: Moment },
    /// It is gone, by its identity.
    Gone { process: ProcessId, how: How },
}

/// How a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// It was not there.
    Absent(Absence),
    /// Its ending was seen.
    Ended(Option<Exit>),
}

/// What the state machine of one watched process can be told.
#[derive(Clone, Copy, Debug)]
enum Input {
    Seen(ProcessId),
    Absent(Absence),
    Ended { process: ProcessId, exit: Option<Exit> },
    LookFailed,
    TimedOut,
}

/// One watched process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    subject: SubjectId,
    settings: ProcessSettings,
    state: State,
    pause: Option<Pause>,
    shown: Shown,
}

impl Process {
    /// A watched process as it was found. What the store holds of it stays until somebody has looked.
    pub(crate) fn found(
        subject: SubjectId,
        settings: ProcessSettings,
        found: ProcessFound,
        now: Moment,
        out: &mut Outbox,
    ) -> Self {
        // One that is over has no part in what nobody has looked at yet.
        let pause = found.pause.map(|pause| Pause::found(pause, now)).filter(|pause| !pause.is_over(now));
        let state = State::Unlooked { seen: found.seen, since: now };
        let mut process = Self { subject, settings, state, pause, shown: Shown::new(found.recorded, now) };
        process.settle(now, out);
        process
    }

    /// Takes in that it was found once more.
    pub(crate) fn find_again(&mut self, settings: ProcessSettings, found: ProcessFound, now: Moment, out: &mut Outbox) {
        self.settings = settings;
        match found.pause {
            Some(pause) => Pause::prolong(&mut self.pause, pause.left, now),
            None => self.unpause(now),
        }
        self.settle(now, out);
    }

    /// Takes in what happened to it, and gives out what follows.
    pub(crate) fn handle_event(&mut self, event: ProcessEvent, now: Moment, out: &mut Outbox) {
        match event {
            ProcessEvent::Added { settings, found, .. } => return self.find_again(settings, found, now, out),
            ProcessEvent::Removed { .. } => {}
            ProcessEvent::Seen { sighting, .. } => self.step(self.believe(sighting), now, out),
            ProcessEvent::Absent { absence, .. } => self.step(Input::Absent(absence), now, out),
            ProcessEvent::Ended { process, exit, .. } => self.step(Input::Ended { process, exit }, now, out),
            ProcessEvent::LookFailed { .. } => self.step(Input::LookFailed, now, out),
            ProcessEvent::PauseWanted { length, .. } => Pause::prolong(&mut self.pause, length, now),
            ProcessEvent::UnpauseWanted { .. } => self.unpause(now),
        }
        self.settle(now, out);
    }

    /// Does what is due.
    pub(crate) fn time_out(&mut self, now: Moment, out: &mut Outbox) {
        if self.pause.is_some_and(|pause| pause.is_over(now)) {
            self.unpause(now);
        }
        self.step(Input::TimedOut, now, out);
        self.settle(now, out);
    }

    /// What happens next by itself, and when.
    pub(crate) fn next(&self, now: Moment) -> Option<(NextStep, Moment)> {
        if let Some(pause) = self.pause {
            return pause.until.map(|until| (NextStep::Unpause, until));
        }
        match self.state {
            State::Unseen { since } => Some(since.after(self.settings.start_within))
                .filter(|&moment| moment > now)
                .map(|moment| (NextStep::Judge, moment)),
            State::Unlooked { .. } | State::Alive { .. } | State::Unknown { .. } | State::Gone { .. } => None,
        }
    }

    /// All that is known of it.
    pub(crate) fn view(&self, at: Moment) -> SubjectView {
        self.shown.view(self.subject, self.judge(at), self.pause, self.next(at), at)
    }

    /// The process that was seen last, which is what it has to remember over a restart of the agent.
    pub(crate) fn seen(&self) -> Option<ProcessId> {
        match self.state {
            State::Unlooked { seen, .. } | State::Unknown { seen, .. } => seen,
            State::Unseen { .. } => None,
            State::Alive { process } | State::Gone { process, .. } => Some(process),
        }
    }

    /// The guard against numbers that were given to another process. A number alone names the process that was seen first.
    /// A file names the process that wrote it, which is older than the file; a younger one was given the number since.
    fn believe(&self, sighting: Sighting) -> Input {
        let Sighting { process, age, naming } = sighting;
        let seen = self.seen();
        let is_reused = seen != Some(process)
            && match naming {
                Naming::Pid => seen.is_some(),
                Naming::File { written_ago } => age.saturating_add(FILE_OLDER_MAX) < written_ago,
                Naming::Name => false,
            };
        if is_reused { Input::Absent(Absence::Reused) } else { Input::Seen(process) }
    }

    /// The state machine: what each state makes of each input.
    fn step(&mut self, input: Input, now: Moment, out: &mut Outbox) {
        use Input as I;
        use State as S;
        match (self.state, input) {
            (S::Unlooked { .. } | S::Unseen { .. } | S::Alive { .. } | S::Unknown { .. }, I::Seen(process)) => {
                self.see(process, out);
            }
            // What was proven gone does not come back.
            (S::Gone { process: gone, .. }, I::Seen(process)) if gone == process => out.unexpected(),
            (S::Gone { .. }, I::Seen(process)) => self.see(process, out),
            (S::Alive { process }, I::Absent(absence))
            | (S::Unlooked { seen: Some(process), .. } | S::Unknown { seen: Some(process), .. }, I::Absent(absence)) => {
                self.state = S::Gone { process, how: How::Absent(absence) };
            }
            (S::Unlooked { seen: None, since } | S::Unknown { seen: None, since }, I::Absent(_)) => {
                self.state = S::Unseen { since };
            }
            (S::Alive { process: seen }, I::Ended { process, exit })
            | (
                S::Unlooked { seen: Some(seen), .. } | S::Unknown { seen: Some(seen), .. },
                I::Ended { process, exit },
            ) if seen == process => {
                self.state = S::Gone { process, how: How::Ended(exit) };
            }
            // A look may be faster than the word of how it ended.
            (S::Gone { process: gone, how: How::Absent(_) }, I::Ended { process, exit }) if gone == process => {
                self.state = S::Gone { process, how: How::Ended(exit) };
            }
            (
                S::Unlooked { .. } | S::Unseen { .. } | S::Alive { .. } | S::Unknown { .. } | S::Gone { .. },
                I::Ended { .. },
            ) => out.refuse(),
            (S::Alive { process }, I::LookFailed) => self.state = S::Unknown { seen: Some(process), since: now },
            (S::Unlooked { seen, since }, I::LookFailed) => self.state = S::Unknown { seen, since },
            (S::Unseen { since }, I::LookFailed) => self.state = S::Unknown { seen: None, since },
            (S::Unknown { .. } | S::Gone { .. }, I::LookFailed)
            | (S::Unseen { .. } | S::Gone { .. }, I::Absent(_))
            | (
                S::Unlooked { .. } | S::Unseen { .. } | S::Alive { .. } | S::Unknown { .. } | S::Gone { .. },
                I::TimedOut,
            ) => {}
        }
    }

    fn see(&mut self, process: ProcessId, out: &mut Outbox) {
        if let Some(previous) = self.seen().filter(|&seen| seen != process) {
            let action = ProcessAction::RecordReplaced { subject: self.subject, previous, current: process };
            out.actions.push(Action::Process(action));
        }
        self.state = State::Alive { process };
    }

    /// Ends a pause, whose time does not count.
    fn unpause(&mut self, now: Moment) {
        let Some(pause) = self.pause.take() else { return };
        if let State::Unlooked { since, .. } | State::Unseen { since } | State::Unknown { since, .. } = &mut self.state
        {
            *since = since.after(now.since(pause.since)).min(now);
        }
    }

    fn settle(&mut self, now: Moment, out: &mut Outbox) {
        let judgement = match self.state {
            State::Unlooked { .. } => Judgement { verdict: self.shown.verdict, because: self.shown.because },
            State::Unseen { .. } | State::Alive { .. } | State::Unknown { .. } | State::Gone { .. } => self.judge(now),
        };
        self.shown.record(self.subject, judgement, self.pause, now, out);
    }

    fn judge(&self, now: Moment) -> Judgement {
        let start_within = self.settings.start_within;
        let (verdict, because) = match self.state {
            State::Unlooked { .. } => (self.shown.verdict, ProcessReason::NotLooked),
            State::Unseen { since } if now.since(since) >= start_within => {
                (Verdict::Missing, ProcessReason::NeverSeen { waited: now.since(since), start_within })
            }
            State::Unseen { since } => {
                (Verdict::Waiting, ProcessReason::StartAwaited { waited: now.since(since), start_within })
            }
            State::Alive { process } => (Verdict::Alive, ProcessReason::Lives { pid: process.pid }),
            State::Unknown { .. } => (Verdict::Unknown, ProcessReason::LookFailed),
            State::Gone { process: ProcessId { pid, .. }, how: How::Absent(absence) } => {
                (Verdict::Dead, ProcessReason::Gone { pid, absence })
            }
            State::Gone { process: ProcessId { pid, .. }, how: How::Ended(exit) } => {
                (Verdict::Dead, ProcessReason::Ended { pid, exit })
            }
        };
        Judgement { verdict, because: Reason::Process(because) }
    }
}
