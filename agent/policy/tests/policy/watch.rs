//! A policy with one check or one watched process, and short words for long nouns.

use core::time::Duration;

use latido_policy::{
    Absence, Action, Attempt, CheckEvent, CheckFound, CheckReason, CheckSchedule, CheckSettings, Event, Expectation,
    Fingerprint, Found, Moment, Naming, ProcessEvent, ProcessFound, ProcessId, ProcessReason, ProcessSettings, Reason,
    Sighting, Signal, SubjectId, Verdict,
};

use crate::harness::{Bench, JOB, seconds, settings};

pub(crate) const CHECK: SubjectId = SubjectId(9);
pub(crate) const PROCESS: SubjectId = SubjectId(10);

pub(crate) const MINUTE: Duration = Duration::from_secs(60);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn run(id: u64) -> Option<Fingerprint> {
    Some(Fingerprint(id))
}

/// Expected every hour of listening time, with ten minutes of grace.
pub(crate) fn hourly() -> CheckSettings {
    CheckSettings { schedule: CheckSchedule::Every(HOUR), grace: 10 * MINUTE, run_for: None }
}

/// Expected at moments of the calendar, with half an hour of grace and two hours for a run.
pub(crate) fn daily() -> CheckSettings {
    CheckSettings { schedule: CheckSchedule::Calendar, grace: 30 * MINUTE, run_for: Some(2 * HOUR) }
}

/// The expectation of the calendar `ahead` of the bench's time, a day after the one before.
pub(crate) fn daily_at(mark: u64, moment: Moment) -> Expectation {
    Expectation { mark, moment, spacing: DAY, in_gap: false }
}

pub(crate) fn check_reason(because: CheckReason) -> Reason {
    Reason::Check(because)
}

/// One verdict after another, with its reason.
pub(crate) fn turned(subject: SubjectId, previous: Verdict, current: Verdict, because: Reason) -> Action {
    Action::RecordVerdict { subject, attempt: Attempt::default(), previous, current, because }
}

pub(crate) fn process(pid: u32) -> ProcessId {
    ProcessId { boot: Fingerprint(1), namespace: 1, pid, start_time: u64::from(pid) * 10 }
}

/// A minute for the first look that finds it.
pub(crate) fn watched_settings() -> ProcessSettings {
    ProcessSettings { start_within: MINUTE }
}

impl Bench {
    /// A check that was just defined.
    pub(crate) fn check(settings: CheckSettings) -> Self {
        Self::check_found(settings, CheckFound::default())
    }

    pub(crate) fn check_found(settings: CheckSettings, found: CheckFound) -> Self {
        let mut bench = Self::empty();
        bench.tell(Event::Check(CheckEvent::Added { subject: CHECK, settings, found }));
        bench
    }

    /// A check on the calendar whose first moment is `ahead`.
    pub(crate) fn check_due_in(settings: CheckSettings, ahead: Duration) -> Self {
        let mut bench = Self::check(settings);
        let moment = bench.now.after(ahead);
        bench.expect(daily_at(1, moment));
        bench
    }

    pub(crate) fn signal(&mut self, signal: Signal, run: Option<Fingerprint>) -> Vec<Action> {
        self.tell(Event::Check(CheckEvent::Signaled { subject: CHECK, signal, run }))
    }

    pub(crate) fn succeed(&mut self) -> Vec<Action> {
        self.signal(Signal::Succeeded, None)
    }

    pub(crate) fn expect(&mut self, expectation: Expectation) -> Vec<Action> {
        self.tell(Event::Check(CheckEvent::Expected { subject: CHECK, expectation }))
    }

    pub(crate) fn pause_check(&mut self, length: Option<Duration>) -> Vec<Action> {
        self.tell(Event::Check(CheckEvent::PauseWanted { subject: CHECK, length }))
    }

    pub(crate) fn unpause_check(&mut self) -> Vec<Action> {
        self.tell(Event::Check(CheckEvent::UnpauseWanted { subject: CHECK }))
    }

    pub(crate) fn of(&self, subject: SubjectId) -> (Verdict, Reason) {
        let view = self.policy.subject(subject).unwrap();
        (view.verdict, view.because)
    }

    pub(crate) fn check_verdict(&self) -> Verdict {
        self.of(CHECK).0
    }

    /// A process that is watched from this moment on.
    pub(crate) fn process(found: ProcessFound) -> Self {
        let mut bench = Self::empty();
        bench.tell(Event::Process(ProcessEvent::Added { subject: PROCESS, settings: watched_settings(), found }));
        bench
    }

    /// A look finds a process that has run for long, by what it is called.
    pub(crate) fn see(&mut self, process: ProcessId) -> Vec<Action> {
        self.sight(Sighting { process, age: DAY, naming: Naming::Name })
    }

    pub(crate) fn sight(&mut self, sighting: Sighting) -> Vec<Action> {
        self.tell(Event::Process(ProcessEvent::Seen { subject: PROCESS, sighting }))
    }

    pub(crate) fn miss(&mut self, absence: Absence) -> Vec<Action> {
        self.tell(Event::Process(ProcessEvent::Absent { subject: PROCESS, absence }))
    }

    pub(crate) fn look_in_vain(&mut self) -> Vec<Action> {
        self.tell(Event::Process(ProcessEvent::LookFailed { subject: PROCESS }))
    }

    pub(crate) fn process_verdict(&self) -> Verdict {
        self.of(PROCESS).0
    }

    pub(crate) fn process_reason(&self) -> ProcessReason {
        let Reason::Process(because) = self.of(PROCESS).1 else { panic!("{}", self.of(PROCESS).1) };
        because
    }
}

#[test]
fn the_words_of_this_harness_mean_what_they_say() {
    let bench = Bench::check_due_in(daily(), HOUR);
    let due_in = Some(HOUR);
    assert_eq!(bench.of(CHECK), (Verdict::Waiting, check_reason(CheckReason::FirstAwaited { due_in })));
    assert_eq!(seconds(3600), HOUR);
}

#[test]
fn what_is_watched_is_listed_behind_the_jobs() {
    let mut bench = Bench::check(hourly());
    bench.add(settings(), Found::default());
    bench.tell(Event::Process(ProcessEvent::Added {
        subject: PROCESS,
        settings: watched_settings(),
        found: ProcessFound::default(),
    }));
    let listed: Vec<SubjectId> = bench.policy.subjects().map(|view| view.subject).collect();
    assert_eq!(listed, [JOB, CHECK, PROCESS]);
}
