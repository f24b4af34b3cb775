//! All subjects together: events in, actions out.

use alloc::collections::{BTreeMap, VecDeque};

use crate::deadlines::Deadlines;
use crate::job::{Input, Job, Outbox};
use crate::{Action, Event, Moment, Registry, SubjectId, SubjectView};

/// Decides for all subjects. It is told events and the time, and gives out actions; it never looks at anything itself.
#[derive(Debug)]
pub struct Policy {
    jobs: BTreeMap<SubjectId, Entry>,
    deadlines: Deadlines,
    registry: Registry,
    /// Bounded by its caller, who takes everything out after each call: one event gives out a handful.
    actions: VecDeque<Action>,
    outbox: Outbox,
    now: Moment,
}

/// A job with its place among the deadlines.
#[derive(Debug)]
struct Entry {
    job: Job,
    deadline: Option<Moment>,
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy {
    /// A policy that knows no subject yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            jobs: BTreeMap::new(),
            deadlines: Deadlines::default(),
            registry: Registry::default(),
            actions: VecDeque::new(),
            outbox: Outbox::default(),
            now: Moment::ORIGIN,
        }
    }

    /// Takes in one event. Telling it twice does no harm; what is over is refused and counted.
    pub fn handle_event(&mut self, event: Event, now: Moment) {
        self.now = self.now.max(now);
        match event {
            Event::JobAdded { subject, settings, found } => self.add(subject, settings, found, now),
            Event::JobRemoved { subject } => {
                if let Some(entry) = self.jobs.remove(&subject) {
                    self.deadlines.set(subject, entry.deadline, None);
                }
            }
            Event::WantChanged { subject, want } => self.with(subject, now, |job, out| job.want(want, now, out)),
            Event::AttemptStarted { subject, attempt, supervisor, process: _ } => {
                self.tell(subject, Input::Started { attempt, supervisor }, now);
            }
            Event::LaunchRefused { subject, attempt, failure } => {
                self.tell(subject, Input::Refused { attempt, failure }, now);
            }
            Event::Heard { subject, attempt, heard } => self.tell(subject, Input::Heard { attempt, heard }, now),
            Event::SupervisorGone { subject, attempt, process } => {
                self.tell(subject, Input::SupervisorGone { attempt, process }, now);
            }
            Event::AttemptEnded { subject, attempt, ending } => {
                self.tell(subject, Input::Ended { attempt, ending }, now);
            }
            Event::OrphanEnded { subject, attempt, survivors } => {
                self.tell(subject, Input::OrphanEnded { attempt, survivors }, now);
            }
            Event::StrategyAnswered { subject, attempt, proposal } => {
                self.tell(subject, Input::Answered { attempt, proposal }, now);
            }
            Event::LookFailed { subject, attempt } => self.tell(subject, Input::LookFailed { attempt }, now),
            Event::GapFound { length } => self.actions.push_back(Action::RecordGap { length }),
            Event::Registry(event) => self.registry.handle_event(event, now),
        }
    }

    /// Does what is due. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.now = self.now.max(now);
        while let Some(subject) = self.deadlines.take_due(now) {
            if let Some(entry) = self.jobs.get_mut(&subject) {
                entry.deadline = None;
            }
            self.with(subject, now, |job, out| job.time_out(now, out));
        }
        self.registry.handle_timeout(now);
    }

    /// Answers when to call [`handle_timeout`](Self::handle_timeout) next; `None` if nothing happens by itself.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.deadlines.first().into_iter().chain(self.registry.poll_timeout()).min()
    }

    /// Takes out the next action. They are to be carried out in this order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front().or_else(|| self.registry.poll_action().map(Action::Registry))
    }

    /// Workers, groups and targets, for whoever looks at them.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Answers all that is known of one subject, as of the latest moment that was told.
    #[must_use]
    pub fn subject(&self, subject: SubjectId) -> Option<SubjectView> {
        self.jobs.get(&subject).map(|entry| entry.job.view(self.now))
    }

    /// Answers all that is known of every subject, in the order of their ids.
    pub fn subjects(&self) -> impl Iterator<Item = SubjectView> + '_ {
        self.jobs.values().map(|entry| entry.job.view(self.now))
    }

    /// How many events were refused because they came late, twice or with an old epoch. It grows in ordinary life.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        self.outbox.refused_count
    }

    /// How many events contradicted what was told before. It stays 0 as long as the caller does what it was told.
    #[must_use]
    pub fn unexpected_count(&self) -> u64 {
        self.outbox.unexpected_count
    }

    fn add(&mut self, subject: SubjectId, settings: crate::JobSettings, found: crate::Found, now: Moment) {
        if self.jobs.contains_key(&subject) {
            return self.with(subject, now, |job, out| job.find_again(settings, found, now, out));
        }
        let job = Job::found(subject, settings, found, now, &mut self.outbox);
        self.jobs.insert(subject, Entry { job, deadline: None });
        self.with(subject, now, |_, _| {});
    }

    fn tell(&mut self, subject: SubjectId, input: Input, now: Moment) {
        self.with(subject, now, |job, out| job.handle(input, now, out));
    }

    /// Lets a job act, takes out what it gave and moves its deadline. An event about a subject that is not known (any
    /// more) is refused.
    fn with(&mut self, subject: SubjectId, now: Moment, act: impl FnOnce(&mut Job, &mut Outbox)) {
        let Some(entry) = self.jobs.get_mut(&subject) else { return self.outbox.refuse() };
        act(&mut entry.job, &mut self.outbox);
        self.actions.extend(self.outbox.actions.drain(..));
        let next = entry.job.next(now).map(|(_, moment)| moment);
        self.deadlines.set(subject, entry.deadline, next);
        entry.deadline = next;
    }
}
