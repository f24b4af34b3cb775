//! The driver with a clock that the test moves, and the records of one job.

use std::collections::BTreeSet;
use std::time::Duration;

use latido_driver::{AttemptName, Driver, Fact, FoundAttempt, FoundJob, FoundState, Order, Output, Reading};
use latido_policy::Proposal;
use latido_protocol::files::{
    Backoff, Beats, Budget, End, Identity, JobFile, JobSettings, LogLimits, Orphans, Resume, ResumeOn, Spent, Start,
    Status, Want, Wanted,
};
use latido_protocol::status::Verdict;
use latido_protocol::{CountLimit, Limit, Outcome, Progress, Span, SubjectName, WallTime};
use latido_store::{MemoryStore, Store};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn name() -> SubjectName {
    "catalogue".parse().unwrap()
}

pub(crate) fn identity(pid: u32) -> Identity {
    Identity { machine_id: "m".into(), boot_id: "b".into(), pid_namespace: 1, pid, start_time: u64::from(pid) }
}

pub(crate) fn settings() -> JobSettings {
    JobSettings {
        policy: "default".into(),
        strategy: "script".into(),
        beats: Beats::Own,
        interval: Span(3 * SECOND),
        ttl: Span(10 * SECOND),
        start_within: Span(20 * SECOND),
        hung_after: Limit::None,
        run_for: Limit::None,
        resume: Resume {
            on: vec![ResumeOn::Lost],
            max_attempts: CountLimit::At(3),
            max_pickups: 5,
            backoff: Backoff { first: Span(Duration::ZERO), longest: Span(Duration::ZERO) },
            max_attempts_without_progress: CountLimit::None,
            wall_time_max: Limit::None,
            max_identical_deaths: CountLimit::At(3),
            spare_busy: true,
            budget: Budget::default(),
        },
        looping_after: CountLimit::None,
        first_output_within: Limit::None,
        excuse_max: Span(3600 * SECOND),
        slots: vec![],
        orphans: Orphans::End,
        grace: Span(2 * SECOND),
        linger: Span(2 * SECOND),
        log: LogLimits {
            size_max: 1 << 20,
            files_max: 2,
            carriage_returns: latido_protocol::files::CarriageReturns::default(),
        },
        history_every: Span(300 * SECOND),
        presence_every: Span(60 * SECOND),
        launch: latido_protocol::files::LaunchSettings::default(),
        on_end: None,
    }
}

/// The driver with a clock that the test moves.
pub(crate) struct World {
    pub(crate) driver: Driver<MemoryStore>,
    pub(crate) monotonic: Duration,
    is_recovered: bool,
}

impl World {
    pub(crate) fn new(store: MemoryStore) -> Self {
        Self::around(Driver::new(store, 300 * SECOND).unwrap())
    }

    pub(crate) fn around(driver: Driver<MemoryStore>) -> Self {
        Self { driver, monotonic: 1000 * SECOND, is_recovered: false }
    }

    pub(crate) fn wall(&self) -> WallTime {
        WallTime::from_millis(1_700_000_000_000 + u64::try_from(self.monotonic.as_millis()).unwrap())
    }

    /// Makes a step; after the first one that tells of a job, the agent has been told of all.
    pub(crate) fn step(&mut self, facts: Vec<Fact>) -> Output {
        let mut output = self.step_once(facts);
        if !self.is_recovered && !self.driver.names().is_empty() {
            self.is_recovered = true;
            self.driver.forget_absent(&BTreeSet::new(), self.wall());
            let Output { orders, replies, changed, entries, sweep, .. } = output;
            output = self.step_once(vec![]);
            output.orders.splice(0..0, orders);
            output.replies.splice(0..0, replies);
            output.entries.splice(0..0, entries);
            output.changed.extend(changed);
            if output.sweep.is_empty() {
                output.sweep = sweep;
            }
        }
        output
    }

    fn step_once(&mut self, facts: Vec<Fact>) -> Output {
        let reading = Reading { monotonic: self.monotonic, boottime: self.monotonic, wall: self.wall() };
        let output = self.driver.step(facts, reading);
        assert!(output.store_error.is_none(), "{:?}", output.store_error);
        output
    }

    /// Says that the step before took until the present moment.
    pub(crate) fn rest(&mut self) {
        self.driver.rest(Reading { monotonic: self.monotonic, boottime: self.monotonic, wall: self.wall() });
    }

    /// Lets time pass with a driver that is called whenever it asks to be, and gathers its orders.
    pub(crate) fn pass(&mut self, length: Duration) -> Vec<Order> {
        let end = self.monotonic + length;
        let mut orders = Vec::new();
        let mut output = self.step(vec![]);
        while self.monotonic < end {
            self.monotonic = (self.monotonic + output.wake_in.max(Duration::from_millis(1))).min(end);
            output = self.step(vec![]);
            orders.append(&mut output.orders);
        }
        orders
    }

    pub(crate) fn start(&self, attempt: u32, epoch: u64) -> Start {
        Start {
            version: 1,
            job: name(),
            attempt,
            epoch,
            host: "here".into(),
            launched_at: self.wall(),
            starter: identity(1),
            because: "first attempt".into(),
            by_hand: false,
            command: vec!["catalogue".into()],
            directory: "/".into(),
            checkpoint: String::new(),
            sockets: "/run/x".into(),
            supervisor: Some(identity(100 + attempt)),
            process: Some(identity(200 + attempt)),
            started_at: Some(self.wall()),
            cgroup: None,
            notes: vec![],
        }
    }

    pub(crate) fn found(&self, state: FoundState, epoch: u64) -> Fact {
        Fact::JobFound(Box::new(FoundJob {
            job: JobFile {
                version: 1,
                name: name(),
                created_at: WallTime::from_millis(1),
                command: vec!["catalogue".into()],
                directory: "/".into(),
                environment: Default::default(),
                settings: settings(),
            },
            wanted: Wanted {
                version: 1,
                want: Want::Run,
                epoch,
                at: WallTime::from_millis(1),
                until: None,
                by: "test".into(),
                budget: None,
            },
            epoch,
            pickups: 0,
            earlier: vec![],
            spent_before: Spent::default(),
            attempt: Some(FoundAttempt { start: self.start(1, epoch), status: None, state }),
        }))
    }

    pub(crate) fn status(&self, sequence: u64, silence: Duration) -> Fact {
        Fact::Heard {
            status: Box::new(Status {
                version: 1,
                job: name(),
                attempt: 1,
                epoch: 1,
                at: self.wall(),
                sequence,
                last_beat: Some(self.wall()),
                progress_changed: None,
                progress: Some(Progress { checkpoint: Some("200".into()), ..Progress::default() }),
                state: None,
                errors: 0,
                ready: true,
                broken: false,
                silence_s: Span(silence),
                still_s: Span(silence),
                running_s: Span(silence),
                output_bytes: 0,
                idle_s: None,
                excuse: None,
                spent: Spent::default(),
                stopping: false,
                suspended_since: None,
                survivors: Vec::new(),
                trouble: latido_protocol::Trouble::default(),
            }),
        }
    }

    pub(crate) fn ended(&self, attempt: u32, epoch: u64, outcome: Outcome) -> Fact {
        Fact::AttemptEnded {
            start: None,
            end: Box::new(End {
                version: 1,
                job: name(),
                attempt,
                epoch,
                started_at: Some(self.wall()),
                ended_at: WallTime::from_millis(self.wall().as_millis() + 5000),
                outcome,
                rusage: None,
                progress: None,
                recorded_by: "supervisor".into(),
                proof: "waited for".into(),
                stopped_for: None,
                spent: Spent::default(),
                ran_s: Some(Span(5 * SECOND)),
            }),
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.driver.subjects(&[])[0].verdict
    }

    pub(crate) fn kinds(&mut self) -> Vec<String> {
        let rows = self.driver.store().entries_after(0, &[], 1000).unwrap();
        rows.into_iter().map(|row| row.kind).collect()
    }
}

pub(crate) fn attempt(number: u32, epoch: u64) -> AttemptName {
    AttemptName { job: name(), number, epoch }
}

pub(crate) fn proposal(proposal: Proposal) -> Fact {
    Fact::StrategyAnswered { attempt: attempt(1, 1), proposal, detail: String::new(), command: None }
}
