//! A policy with one job, a clock that the test moves, and short words for long nouns.

use core::time::Duration;

use latido_policy::{
    Action, Attempt, AttemptNumber, BeatSource, Budget, Class, Ending, Epoch, Event, Fingerprint, Found, FoundAttempt,
    FoundState, Heard, JobSettings, Lease, Life, Limit, Moment, Orphans, Phase, Policy, ProcessId, Proposal, Reason,
    ResumeOn, ResumePolicy, SlotSet, Spent, SubjectId, SubjectView, Verdict, Want,
};

pub(crate) const JOB: SubjectId = SubjectId(7);
pub(crate) const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Attempt `number` with the epoch of the same number.
pub(crate) fn attempt(number: u32) -> Attempt {
    Attempt { number: AttemptNumber(number), epoch: Epoch(u64::from(number)) }
}

pub(crate) fn with_epoch(number: u32, epoch: u64) -> Attempt {
    Attempt { number: AttemptNumber(number), epoch: Epoch(epoch) }
}

/// The supervisor of an attempt.
pub(crate) fn supervisor(attempt: Attempt) -> ProcessId {
    ProcessId { boot: Fingerprint(1), namespace: 1, pid: 1000 + attempt.number.0, start_time: attempt.epoch.0 }
}

/// Beats expected every 30 s, ttl 180 s; `lost` alone resumes, at once.
pub(crate) fn settings() -> JobSettings {
    JobSettings {
        lease: Lease {
            beats: BeatSource::Auto,
            interval: seconds(30),
            ttl: seconds(180),
            start_within: seconds(60),
            hung_after: Limit::None,
            looping_after: Limit::None,
            run_for: Limit::None,
            first_output_within: Limit::None,
            excuse_max: seconds(3600),
        },
        resume: ResumePolicy {
            on: ResumeOn { lost: true, ..ResumeOn::default() },
            max_attempts: Limit::At(5),
            max_pickups: 4,
            backoff_first: Duration::ZERO,
            backoff_longest: seconds(300),
            max_attempts_without_progress: Limit::None,
            wall_time_max: Limit::None,
            budget: Budget::default(),
            max_identical_deaths: Limit::At(3),
            spare_busy: true,
        },
        orphans: Orphans::End,
        grace: GRACE,
        slots: SlotSet::default(),
        seed: 42,
    }
}

/// How an attempt ends that ran for a minute and left no checkpoint.
pub(crate) fn ending(class: Class) -> Ending {
    Ending {
        class,
        outcome: Fingerprint(9),
        checkpoint: None,
        launch_failed: false,
        ran_for: seconds(60),
        is_seen: true,
        order: None,
        spent: Spent::default(),
    }
}

/// A beat just now.
pub(crate) fn beat(sequence: u64, running: u64) -> Heard {
    Heard { sequence, running: seconds(running), ..Heard::default() }
}

/// What was found: an attempt in a state, with the highest epoch its own.
pub(crate) fn found(number: u32, state: FoundState) -> Found {
    let attempt = attempt(number);
    Found { epoch: attempt.epoch, attempt: Some(FoundAttempt { attempt, state }), ..Found::default() }
}

pub(crate) fn found_running(number: u32, heard: Heard) -> Found {
    found(number, FoundState::Running { supervisor: supervisor(attempt(number)), process: None, heard })
}

/// A policy and the time.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) policy: Policy,
    pub(crate) now: Moment,
}

impl Bench {
    /// A policy that knows nothing.
    pub(crate) fn empty() -> Self {
        Self { policy: Policy::new(), now: Moment::ORIGIN.after(seconds(1000)) }
    }

    /// A policy that was told of one job, with the actions that followed taken out.
    pub(crate) fn found(settings: JobSettings, found: Found) -> Self {
        let mut bench = Self::empty();
        bench.add(settings, found);
        bench
    }

    /// A job whose attempt 1 was launched by this policy and runs.
    pub(crate) fn running(settings: JobSettings) -> Self {
        let mut bench = Self::found(settings, Found::default());
        bench.started(attempt(1));
        bench
    }

    pub(crate) fn add(&mut self, settings: JobSettings, found: Found) -> Vec<Action> {
        self.tell(Event::JobAdded { subject: JOB, settings, found })
    }

    /// Tells an event and takes out what follows.
    pub(crate) fn tell(&mut self, event: Event) -> Vec<Action> {
        self.policy.handle_event(event, self.now);
        self.take()
    }

    /// What an order rests on is left out of the actions: tests of their own look at it.
    pub(crate) fn take(&mut self) -> Vec<Action> {
        let mut actions: Vec<Action> = core::iter::from_fn(|| self.policy.poll_action()).collect();
        for action in &mut actions {
            if let Action::EndAttempt { ground, .. } = action {
                *ground = None;
            }
        }
        actions
    }

    /// Lets time pass, and does what is due at its own moment; asks twice each time.
    pub(crate) fn pass(&mut self, length: Duration) -> Vec<Action> {
        let end = self.now.after(length);
        let mut actions = Vec::new();
        while let Some(next) = self.policy.poll_timeout().filter(|&next| next <= end) {
            assert!(next > self.now || self.policy.poll_timeout() == Some(next), "the time line runs forward");
            self.now = self.now.max(next);
            self.policy.handle_timeout(self.now);
            self.policy.handle_timeout(self.now);
            actions.extend(self.take());
            assert!(self.policy.poll_timeout().is_none_or(|next| next > self.now), "nothing stays due");
        }
        self.now = end;
        self.policy.handle_timeout(end);
        actions.extend(self.take());
        actions
    }

    pub(crate) fn want(&mut self, want: Want) -> Vec<Action> {
        self.tell(Event::WantChanged { subject: JOB, want })
    }

    pub(crate) fn started(&mut self, attempt: Attempt) -> Vec<Action> {
        self.tell(Event::AttemptStarted { subject: JOB, attempt, supervisor: supervisor(attempt), process: None })
    }

    pub(crate) fn heard(&mut self, attempt: Attempt, heard: Heard) -> Vec<Action> {
        self.tell(Event::Heard { subject: JOB, attempt, heard })
    }

    pub(crate) fn gone(&mut self, attempt: Attempt, process: Life) -> Vec<Action> {
        self.tell(Event::SupervisorGone { subject: JOB, attempt, process })
    }

    pub(crate) fn ended(&mut self, attempt: Attempt, ending: Ending) -> Vec<Action> {
        self.tell(Event::AttemptEnded { subject: JOB, attempt, ending })
    }

    pub(crate) fn orphan_ended(&mut self, attempt: Attempt, survivors: u32) -> Vec<Action> {
        self.tell(Event::OrphanEnded { subject: JOB, attempt, survivors })
    }

    pub(crate) fn answered(&mut self, attempt: Attempt, proposal: Proposal) -> Vec<Action> {
        self.tell(Event::StrategyAnswered { subject: JOB, attempt, proposal })
    }

    pub(crate) fn view(&self) -> SubjectView {
        self.policy.subject(JOB).unwrap()
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.view().verdict
    }

    pub(crate) fn phase(&self) -> Phase {
        self.view().phase
    }
}

pub(crate) fn record_verdict(attempt: Attempt, previous: Verdict, current: Verdict, because: Reason) -> Action {
    Action::RecordVerdict { subject: JOB, attempt, previous, current, because }
}

pub(crate) fn record_phase(attempt: Attempt, phase: Phase, because: Reason) -> Action {
    Action::RecordPhase { subject: JOB, attempt, phase, because }
}

pub(crate) fn record_lost(attempt: Attempt, pickups: u32, because: Reason) -> Action {
    Action::RecordLost { subject: JOB, attempt, pickups, because }
}

pub(crate) fn end_orphan(attempt: Attempt, because: Reason) -> Action {
    Action::EndOrphan { subject: JOB, attempt, grace: GRACE, because }
}

pub(crate) fn end_attempt(attempt: Attempt, because: Reason) -> Action {
    Action::EndAttempt { subject: JOB, attempt, supervisor: supervisor(attempt), grace: GRACE, ground: None, because }
}

pub(crate) fn ask(attempt: Attempt, because: Reason) -> Action {
    Action::AskStrategy { subject: JOB, attempt, because }
}

pub(crate) fn launch(attempt: Attempt, because: Reason) -> Action {
    Action::Launch { subject: JOB, attempt, because }
}
