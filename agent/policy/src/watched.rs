//! The subjects that latido only watches, checks and processes: what they have in common.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use core::time::Duration;

use crate::check::Check;
use crate::deadlines::Deadlines;
use crate::job::Outbox;
use crate::process::Process;
use crate::{
    Action, Attempt, CheckEvent, Fruitless, Judgement, Moment, NextStep, Phase, ProcessEvent, Reason, Recorded, Spent,
    SubjectId, SubjectView, Verdict,
};

/// All checks and processes, with their deadlines.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    subjects: BTreeMap<SubjectId, Entry>,
    deadlines: Deadlines,
}

#[derive(Debug)]
struct Entry {
    subject: Subject,
    deadline: Option<Moment>,
}

#[derive(Debug)]
pub(crate) enum Subject {
    Check(Box<Check>),
    Process(Process),
}

impl Watched {
    pub(crate) fn handle_check(&mut self, event: CheckEvent, now: Moment, out: &mut Outbox) {
        let subject = match event {
            CheckEvent::Removed { subject } => return self.remove(subject, out),
            CheckEvent::Added { subject, settings, found } => {
                let entry = self.subjects.get_mut(&subject).map(|entry| &mut entry.subject);
                match entry {
                    Some(Subject::Check(check)) => check.find_again(settings, found, now, out),
                    Some(Subject::Process(_)) => return out.unexpected(),
                    None => {
                        self.add(subject, Subject::Check(Box::new(Check::found(subject, settings, found, now, out))))
                    }
                }
                return self.plan(subject, now);
            }
            CheckEvent::Signaled { subject, .. }
            | CheckEvent::Expected { subject, .. }
            | CheckEvent::PauseWanted { subject, .. }
            | CheckEvent::UnpauseWanted { subject } => subject,
        };
        match self.subjects.get_mut(&subject).map(|entry| &mut entry.subject) {
            Some(Subject::Check(check)) => check.handle_event(event, now, out),
            Some(Subject::Process(_)) => out.unexpected(),
            None => out.refuse(),
        }
        self.plan(subject, now);
    }

    pub(crate) fn handle_process(&mut self, event: ProcessEvent, now: Moment, out: &mut Outbox) {
        let subject = match event {
            ProcessEvent::Removed { subject } => return self.remove(subject, out),
            ProcessEvent::Added { subject, settings, found } => {
                let entry = self.subjects.get_mut(&subject).map(|entry| &mut entry.subject);
                match entry {
                    Some(Subject::Process(process)) => process.find_again(settings, found, now, out),
                    Some(Subject::Check(_)) => return out.unexpected(),
                    None => self.add(subject, Subject::Process(Process::found(subject, settings, found, now, out))),
                }
                return self.plan(subject, now);
            }
            ProcessEvent::Seen { subject, .. }
            | ProcessEvent::Absent { subject, .. }
            | ProcessEvent::Ended { subject, .. }
            | ProcessEvent::LookFailed { subject }
            | ProcessEvent::PauseWanted { subject, .. }
            | ProcessEvent::UnpauseWanted { subject } => subject,
        };
        match self.subjects.get_mut(&subject).map(|entry| &mut entry.subject) {
            Some(Subject::Process(process)) => process.handle_event(event, now, out),
            Some(Subject::Check(_)) => out.unexpected(),
            None => out.refuse(),
        }
        self.plan(subject, now);
    }

    pub(crate) fn handle_timeout(&mut self, now: Moment, out: &mut Outbox) {
        while let Some(subject) = self.deadlines.take_due(now) {
            if let Some(entry) = self.subjects.get_mut(&subject) {
                entry.deadline = None;
                match &mut entry.subject {
                    Subject::Check(check) => check.time_out(now, out),
                    Subject::Process(process) => process.time_out(now, out),
                }
            }
            self.plan(subject, now);
        }
    }

    pub(crate) fn first_deadline(&self) -> Option<Moment> {
        self.deadlines.first()
    }

    pub(crate) fn get(&self, subject: SubjectId) -> Option<&Subject> {
        self.subjects.get(&subject).map(|entry| &entry.subject)
    }

    pub(crate) fn view(&self, subject: SubjectId, at: Moment) -> Option<SubjectView> {
        self.get(subject).map(|subject| subject.view(at))
    }

    pub(crate) fn views(&self, at: Moment) -> impl Iterator<Item = SubjectView> + '_ {
        self.subjects.values().map(move |entry| entry.subject.view(at))
    }

    fn add(&mut self, id: SubjectId, subject: Subject) {
        self.subjects.insert(id, Entry { subject, deadline: None });
    }

    fn remove(&mut self, subject: SubjectId, out: &mut Outbox) {
        match self.subjects.remove(&subject) {
            Some(entry) => self.deadlines.set(subject, entry.deadline, None),
            None => out.refuse(),
        }
    }

    fn plan(&mut self, subject: SubjectId, now: Moment) {
        let Some(entry) = self.subjects.get_mut(&subject) else { return };
        let next = entry.subject.next(now).map(|(_, moment)| moment);
        self.deadlines.set(subject, entry.deadline, next);
        entry.deadline = next;
    }
}

impl Subject {
    fn view(&self, at: Moment) -> SubjectView {
        match self {
            Self::Check(check) => check.view(at),
            Self::Process(process) => process.view(at),
        }
    }

    fn next(&self, now: Moment) -> Option<(NextStep, Moment)> {
        match self {
            Self::Check(check) => check.next(now),
            Self::Process(process) => process.next(now),
        }
    }
}

/// The pause of a watched subject as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseFound {
    /// how much of it is left: nothing where it is over; `None` is until it is told otherwise
    pub left: Option<Duration>,
    /// how much listening time it has lasted
    pub lasted: Duration,
}

/// A time in which a subject is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) since: Moment,
    pub(crate) length: Option<Duration>,
    pub(crate) until: Option<Moment>,
}

impl Pause {
    pub(crate) fn new(length: Option<Duration>, now: Moment) -> Self {
        Self { since: now, length, until: length.map(|length| now.after(length)) }
    }

    /// A pause that goes on, or went on until the agent before this one was gone.
    pub(crate) fn found(found: PauseFound, now: Moment) -> Self {
        Self { since: now.before(found.lasted), ..Self::new(found.left, now) }
    }

    /// Takes in that a pause is wanted: the same one again goes on as it is, another one has its own end.
    pub(crate) fn prolong(pause: &mut Option<Self>, length: Option<Duration>, now: Moment) {
        match pause {
            None => *pause = Some(Self::new(length, now)),
            Some(known) if known.length != length => *known = Self { since: known.since, ..Self::new(length, now) },
            Some(_) => {}
        }
    }

    pub(crate) fn is_over(self, now: Moment) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// What was last recorded of a watched subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) verdict: Verdict,
    pub(crate) because: Reason,
    pub(crate) since: Moment,
    pub(crate) phase: Phase,
}

impl Shown {
    pub(crate) fn new(recorded: Option<Recorded>, now: Moment) -> Self {
        let recorded = recorded.unwrap_or(Recorded { verdict: Verdict::Waiting, phase: Phase::Running });
        Self { verdict: recorded.verdict, because: Reason::Watched, since: now, phase: recorded.phase }
    }

    /// Gives out what changed. A pause covers every verdict until its end.
    pub(crate) fn record(
        &mut self,
        subject: SubjectId,
        judgement: Judgement,
        pause: Option<Pause>,
        now: Moment,
        out: &mut Outbox,
    ) {
        let (attempt, (phase, because)) = (Attempt::default(), phase(pause));
        if pause.is_none() {
            let Judgement { verdict, because } = judgement;
            self.because = because;
            if verdict != self.verdict {
                let previous = core::mem::replace(&mut self.verdict, verdict);
                self.since = now;
                out.actions.push(Action::RecordVerdict { subject, attempt, previous, current: verdict, because });
            }
        }
        if phase != self.phase {
            self.phase = phase;
            out.actions.push(Action::RecordPhase { subject, attempt, phase, because });
        }
    }

    /// What is shown of a subject that has no attempts; what only its kind knows is put in by it.
    pub(crate) fn view(
        &self,
        subject: SubjectId,
        judgement: Judgement,
        pause: Option<Pause>,
        next: Option<(NextStep, Moment)>,
        at: Moment,
    ) -> SubjectView {
        let (phase, phase_because) = phase(pause);
        SubjectView {
            subject,
            verdict: self.verdict,
            because: if judgement.verdict == self.verdict { judgement.because } else { self.because },
            since: self.since,
            phase,
            phase_because,
            attempt: Attempt::default(),
            pickups: 0,
            fruitless: Fruitless::default(),
            silence: None,
            still: None,
            running: None,
            heard: None,
            spent: Spent::default(),
            place: None,
            baseline: None,
            next,
            at,
        }
    }
}

fn phase(pause: Option<Pause>) -> (Phase, Reason) {
    match pause {
        Some(pause) => (Phase::Paused, Reason::Paused { length: pause.length }),
        None => (Phase::Running, Reason::Watched),
    }
}
