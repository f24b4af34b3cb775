//! All subjects together: events in, actions out.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::alerts::Alerts;
use crate::blackout::{Blackout, BlackoutCause, BlackoutChange, Silent, TOGETHER_FOR, Voices};
use crate::deadlines::Deadlines;
use crate::job::{Ask, Input, Job, Outbox};
use crate::watched::{Subject, Watched};
use crate::{
    About, Action, AlertView, CheckMemory, Condition, Event, Moment, NextStep, Phase, ProcessId, Registry, Severity,
    Silence, SubjectId, SubjectView, Verdict, WorkerView, registry,
};

/// Decides for all subjects. It is told events and the time, and gives out actions; it never looks at anything itself.
#[derive(Debug)]
pub struct Policy {
    jobs: BTreeMap<SubjectId, Entry>,
    deadlines: Deadlines,
    registry: Registry,
    watched: Watched,
    alerts: Alerts,
    blackout: Blackout,
    /// the agent has started, and was not told of every job: nobody is judged by silence before all can be weighed
    is_recovering: bool,
    /// jobs with an attempt under a live supervisor
    attended_count: u32,
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
    is_attended: bool,
    /// when it was last counted among those that fell silent, and that was believed
    counted_at: Option<Moment>,
}

impl Entry {
    /// Whether it would fall silent for the first time since the baseline, and has not been counted since `since` either.
    fn is_fresh(&self, blackout: &Blackout, since: Moment) -> bool {
        let is_counted = self.counted_at.is_some_and(|counted_at| counted_at >= since);
        !is_counted && self.job.last_heard_at().is_some_and(|heard_at| blackout.is_fresh(heard_at))
    }
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
            watched: Watched::default(),
            alerts: Alerts::default(),
            blackout: Blackout::default(),
            is_recovering: false,
            attended_count: 0,
            actions: VecDeque::new(),
            outbox: Outbox::default(),
            now: Moment::ORIGIN,
        }
    }

    /// Takes in one event. Telling it twice does no harm; what is over is refused and counted.
    pub fn handle_event(&mut self, event: Event, now: Moment) {
        self.now = self.now.max(now);
        // Workers have no part in the queue, the blackout and the alerts, and a million of them beat.
        let is_apart = matches!(event, Event::Registry(_));
        if !is_apart {
            // Whose turn it is already goes before whoever comes by this event.
            self.admit(now);
        }
        match event {
            Event::JobAdded { subject, settings, found } => self.add(subject, settings, found, now),
            Event::JobRemoved { subject } => {
                if let Some(entry) = self.jobs.remove(&subject) {
                    self.deadlines.set(subject, entry.deadline, None);
                    self.attended_count -= u32::from(entry.is_attended);
                    self.outbox.queue.leave(subject);
                    self.outbox.queue.release(subject);
                }
            }
            Event::WantChanged { subject, want } => self.with(subject, now, |job, out| job.want(want, now, out)),
            Event::AttemptsMissed { subject, missed } => self.with(subject, now, |job, _| job.miss(missed, now)),
            Event::SeriesBegan { subject, attempt } => self.with(subject, now, |job, _| job.begin_series(attempt)),
            Event::BudgetChanged { subject, budget } => {
                self.with(subject, now, |job, out| job.change_budget(budget, now, out));
            }
            Event::AttemptStarted { subject, attempt, supervisor, process: _ } => {
                self.tell(subject, Input::Started { attempt, supervisor }, now);
            }
            Event::AttemptSeen { subject, attempt, supervisor } => {
                self.tell(subject, Input::Seen { attempt, supervisor }, now);
            }
            Event::LaunchSeen { subject, attempt } => self.with(subject, now, |job, _| job.wait_for(attempt, now)),
            Event::LaunchRefused { subject, attempt, failure } => {
                self.tell(subject, Input::Refused { attempt, failure }, now);
            }
            Event::Heard { subject, attempt, heard } => self.tell(subject, Input::Heard { attempt, heard }, now),
            Event::ActivitySeen { subject, attempt, idle } => {
                self.tell(subject, Input::ActivitySeen { attempt, idle }, now);
            }
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
            Event::Registry(event) => self.registry.handle_event(event, now),
            Event::Check(event) => self.watched.handle_check(event, now, &mut self.outbox),
            Event::Process(event) => self.watched.handle_process(event, now, &mut self.outbox),
            Event::Alert(event) => self.alerts.handle_event(event, now),
            Event::GapFound { length } => {
                self.blackout.handle_gap(length, now);
                self.actions.push_back(Action::RecordGap { length });
            }
            Event::StoreFailed => self.blackout.handle_store(true, now),
            Event::StoreRecovered => self.blackout.handle_store(false, now),
            Event::Configured { pacing, blackout } => {
                self.outbox.queue.pace.set(pacing);
                self.blackout.set(blackout);
            }
            Event::BaselineRemembered { moment } => self.blackout.remember(moment.min(now)),
            Event::RecoveryBegan => self.recover(true, now),
            Event::RecoveryEnded => self.recover(false, now),
            Event::SlotConfigured { slot, running_max } => self.outbox.queue.limit(slot, running_max),
        }
        if is_apart {
            return;
        }
        self.actions.extend(self.outbox.actions.drain(..));
        self.record_blackout(now);
        self.admit(now);
        self.take_alerts();
    }

    /// Does what is due. Early or repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Moment) {
        self.now = self.now.max(now);
        self.blackout.handle_timeout(now);
        let mut due = Vec::new();
        while let Some(subject) = self.deadlines.take_due(now) {
            if let Some(entry) = self.jobs.get_mut(&subject) {
                entry.deadline = None;
            }
            due.push(subject);
        }
        self.doubt(&due, now);
        for subject in due {
            self.with(subject, now, |job, out| job.time_out(now, out));
        }
        self.sweep_workers(now);
        self.watched.handle_timeout(now, &mut self.outbox);
        self.actions.extend(self.outbox.actions.drain(..));
        self.record_blackout(now);
        self.admit(now);
        self.alerts.handle_timeout(now);
        if self.alerts.take_look(now) {
            self.look_at_all(now);
        }
        self.take_alerts();
    }

    /// Answers when to call [`handle_timeout`](Self::handle_timeout) next; `None` if nothing happens by itself.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Moment> {
        let others = [
            self.deadlines.first(),
            self.watched.first_deadline(),
            self.outbox.queue.poll_timeout(self.now),
            self.blackout.poll_timeout(),
            self.alerts.poll_timeout(),
            self.registry.poll_timeout(),
        ];
        others.into_iter().flatten().min()
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
        let job = self.jobs.get(&subject).map(|entry| self.view(entry));
        job.or_else(|| self.watched.view(subject, self.now))
    }

    /// Answers the verdict of one subject alone.
    #[must_use]
    pub fn verdict(&self, subject: SubjectId) -> Option<Verdict> {
        let job = self.jobs.get(&subject).map(|entry| entry.job.shown.verdict);
        job.or_else(|| self.watched.view(subject, self.now).map(|view| view.verdict))
    }

    /// What a check has to remember over a restart of the agent; `None` for any other subject.
    #[must_use]
    pub fn check_memory(&self, subject: SubjectId) -> Option<CheckMemory> {
        match self.watched.get(subject)? {
            Subject::Check(check) => Some(check.memory()),
            Subject::Process(_) => None,
        }
    }

    /// The process that was seen last of a watched process; `None` before the first, and for any other subject.
    #[must_use]
    pub fn process_seen(&self, subject: SubjectId) -> Option<ProcessId> {
        match self.watched.get(subject)? {
            Subject::Process(process) => process.seen(),
            Subject::Check(_) => None,
        }
    }

    /// Answers all that is known of every subject: the jobs in the order of their ids, then what is only watched.
    pub fn subjects(&self) -> impl Iterator<Item = SubjectView> + '_ {
        self.jobs.values().map(|entry| self.view(entry)).chain(self.watched.views(self.now))
    }

    /// Answers all alerts that are not over, in the order of their keys.
    pub fn alerts(&self) -> impl Iterator<Item = AlertView> + '_ {
        self.alerts.views(self.now)
    }

    /// Answers all silences that hold, by number.
    pub fn silences(&self) -> impl Iterator<Item = &Silence> {
        self.alerts.silences()
    }

    /// How many events were refused because they came late, twice or with an old epoch. It grows in ordinary life.
    #[must_use]
    pub fn refused_count(&self) -> u64 {
        self.outbox.refused_count + self.alerts.refused_count()
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
        let baseline = self.baseline(now);
        let job = Job::found(subject, settings, found, baseline, now, &mut self.outbox);
        self.jobs.insert(subject, Entry { job, deadline: None, is_attended: false, counted_at: None });
        self.with(subject, now, |_, _| {});
    }

    fn take_alerts(&mut self) {
        self.actions.extend(core::iter::from_fn(|| self.alerts.poll_action()).map(Action::Alert));
    }

    fn tell(&mut self, subject: SubjectId, input: Input, now: Moment) {
        self.with(subject, now, |job, out| job.handle(input, now, out));
    }

    /// Lets a job act, takes out what it gave, moves its deadline, and keeps the queue in line with its state. An event
    /// about a subject that is not known (any more) is refused.
    fn with(&mut self, subject: SubjectId, now: Moment, act: impl FnOnce(&mut Job, &mut Outbox)) {
        let baseline = self.baseline(now);
        let Some(entry) = self.jobs.get_mut(&subject) else { return self.outbox.refuse() };
        entry.job.baseline = baseline;
        act(&mut entry.job, &mut self.outbox);
        self.actions.extend(self.outbox.actions.drain(..));
        let next = entry.job.next(now).map(|(_, moment)| moment);
        self.deadlines.set(subject, entry.deadline, next);
        entry.deadline = next;
        let is_attended = entry.job.state.running().is_some();
        self.attended_count = self.attended_count + u32::from(is_attended) - u32::from(entry.is_attended);
        entry.is_attended = is_attended;
        if !entry.job.waits_in_line() {
            self.outbox.queue.leave(subject);
        }
        if entry.job.state.may_live() {
            self.outbox.queue.hold(subject, entry.job.settings.slots);
        } else {
            self.outbox.queue.release(subject);
        }
    }

    /// Lets those start whose turn it is.
    fn admit(&mut self, now: Moment) {
        while let Some(subject) = self.outbox.queue.first_free(now) {
            self.tell(subject, Input::Asked(Ask::Go), now);
        }
    }

    /// The agent begins to be told of all jobs, or was told of the last one: what is silent is weighed in one sweep.
    fn recover(&mut self, is_recovering: bool, now: Moment) {
        self.is_recovering = is_recovering;
        self.outbox.queue.know_holders(!is_recovering);
        for (&subject, entry) in self.jobs.iter_mut().filter(|(_, entry)| entry.is_attended) {
            self.deadlines.set(subject, entry.deadline, Some(now));
            entry.deadline = Some(now);
        }
    }

    /// No silence of a job from before this moment counts.
    fn baseline(&self, now: Moment) -> Moment {
        if self.is_recovering { now } else { self.blackout.baseline(now) }
    }

    /// Doubts the agent itself before it believes that so many fell silent. Only who was weighed is ended for silence.
    fn doubt(&mut self, due: &[SubjectId], now: Moment) {
        let (baseline, since) = (self.baseline(now), self.blackout.counts_since(Voices::Jobs, now));
        let (mut silent, mut fresh) = (Vec::new(), 0);
        for subject in due {
            let Some(entry) = self.jobs.get_mut(subject) else { continue };
            entry.job.baseline = baseline;
            if entry.job.awaits_sweep(&entry.job.counted_facts(now)) {
                fresh += u32::from(entry.is_fresh(&self.blackout, since));
                silent.push(*subject);
            }
        }
        let ahead = if fresh > 0 { self.count_ahead(since, now) } else { 0 };
        if self.blackout.believes(Voices::Jobs, Silent { fresh, ahead }, self.attended_count, now) {
            for subject in silent {
                let Some(entry) = self.jobs.get_mut(&subject) else { continue };
                entry.job.is_weighed = true;
                entry.counted_at = Some(now);
            }
        }
    }

    /// How many jobs have missed beats as well, and turn stale within an interval.
    fn count_ahead(&self, since: Moment, now: Moment) -> u32 {
        let is_ahead = |subject: &SubjectId| {
            let Some(entry) = self.jobs.get(subject) else { return false };
            entry.is_fresh(&self.blackout, since) && !entry.job.is_weighed && entry.job.is_about_to_fall_silent(now)
        };
        u32::try_from(self.deadlines.until(now.after(TOGETHER_FOR)).filter(is_ahead).count()).unwrap_or(u32::MAX)
    }

    /// The same doubt before workers are declared dead, and their claims given to others.
    fn sweep_workers(&mut self, now: Moment) {
        let baseline = self.blackout.baseline(now);
        let most = Silent { fresh: self.registry.gather_due(baseline, now), ahead: registry::LOOKED_AHEAD_MAX };
        let (watched, ahead) = (self.registry.live_count(), || self.registry.count_ahead(baseline, now));
        self.blackout.weigh(Voices::Workers, most, watched, now, ahead);
        self.registry.sweep(self.blackout.baseline(now), now);
    }

    /// Stands in for the rule `liveness` about everybody.
    fn look_at_all(&mut self, now: Moment) {
        let of_subject = |view: SubjectView| (About::Subject(view.subject), view.verdict, view.phase);
        let of_worker = |view: WorkerView| (About::Worker(view.worker), view.verdict, Phase::Running);
        let all: Vec<_> = self.subjects().map(of_subject).chain(self.registry.workers().map(of_worker)).collect();
        for (about, verdict, phase) in all {
            self.alerts.look(about, verdict, phase, now);
        }
    }

    /// A store that is away is an alert of its own, which the driver tells of.
    fn record_blackout(&mut self, now: Moment) {
        let Some(change) = self.blackout.poll_change() else { return };
        self.actions.push_back(Action::RecordBlackout { change });
        let severity = match change {
            BlackoutChange::Began(BlackoutCause::MassStaleness { .. }) => Some(Severity::Critical),
            BlackoutChange::Began(BlackoutCause::StoreFailed) | BlackoutChange::Ended => None,
        };
        self.alerts.note(Condition::Blackout, About::Agent, severity, now);
    }

    fn view(&self, entry: &Entry) -> SubjectView {
        let job = Job { baseline: self.baseline(self.now), ..entry.job };
        let view = job.view(self.now);
        let Some((place, turn)) = self.outbox.queue.place(view.subject, self.now) else { return view };
        SubjectView { place: Some(place), next: turn.map(|turn| (NextStep::Launch, turn)).or(view.next), ..view }
    }
}
