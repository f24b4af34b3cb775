//! Facts with names become the policy's events; whole records are kept and written down on the way.

use std::time::Duration;

use latido_policy::{self as policy, Event, Moment, SubjectId};
use latido_protocol::files::{Budget, End, Start, Status, Wanted};
use latido_protocol::journal::Body;
use latido_protocol::registry::{Question, Registration, Reply};
use latido_protocol::status::SubjectKind;
use latido_protocol::{Class, Span, SubjectName, WallTime};
use latido_store::Store;

use crate::book::Latest;
use crate::fact::{AttemptName, Fact, FoundAttempt, FoundJob, FoundState};
use crate::{Driver, record, translate};

impl<S: Store> Driver<S> {
    pub(crate) fn apply(&mut self, fact: Fact, now: Moment, wall: WallTime) {
        match fact {
            Fact::JobFound(found) => self.job_found(*found, now, wall),
            Fact::JobRemoved { job } => self.job_removed(&job, now, wall),
            Fact::WantChanged { job, wanted } => self.want_changed(&job, *wanted, now, wall),
            Fact::AttemptStarted { start } => self.attempt_started(*start, now, wall),
            Fact::LaunchRefused { attempt, failure, detail } => {
                self.remark(&attempt, detail);
                self.about(&attempt, now, |subject, attempt| Event::LaunchRefused { subject, attempt, failure });
            }
            Fact::Heard { status } => self.heard(*status, now, wall),
            Fact::SupervisorGone { attempt, process } => {
                self.about(&attempt, now, |subject, attempt| Event::SupervisorGone { subject, attempt, process });
            }
            Fact::AttemptEnded { start, end } => {
                if let (Some(start), Some(id)) = (start, self.book.id(&end.job)) {
                    self.keep_start(id, *start, wall);
                }
                self.attempt_ended(*end, now, wall);
            }
            Fact::OrphanEnded { attempt, survivors } => {
                if !survivors.is_empty() {
                    let pids: Vec<String> = survivors.iter().map(u32::to_string).collect();
                    self.remark(&attempt, format!("could not end pid {}", pids.join(", ")));
                }
                let survivors = u32::try_from(survivors.len()).unwrap_or(u32::MAX);
                self.about(&attempt, now, |subject, attempt| Event::OrphanEnded { subject, attempt, survivors });
            }
            Fact::StrategyAnswered { attempt, proposal, detail, command } => {
                self.remark(&attempt, detail);
                if let Some(latest) = self.book.id(&attempt.job).and_then(|id| self.book.latest_mut(id)) {
                    latest.command = command;
                }
                self.about(&attempt, now, |subject, attempt| Event::StrategyAnswered { subject, attempt, proposal });
            }
            Fact::LookFailed { attempt, detail } => {
                self.remark(&attempt, detail);
                self.about(&attempt, now, |subject, attempt| Event::LookFailed { subject, attempt });
            }
            Fact::RuleAnswered { rule, subjects, findings } => {
                self.rule_answered(&rule, &subjects, findings);
            }
            Fact::Asked { ticket, question } => self.asked(ticket, *question, now, wall),
            Fact::GroupLockSeen { ticket, group, is_held } => {
                if let Some(event) = self.registrar.lock_seen(ticket, &group, is_held) {
                    self.policy.handle_event(Event::Registry(event), now);
                }
            }
            Fact::Watched(fact) => self.apply_watched(*fact, now, wall),
            Fact::RuleFailed { rule, detail } => self.rule_failed(&rule, &detail),
            Fact::Noted { what, detail } => {
                self.pending.entries.push(record::entry(wall, &record::noted(&what, detail)));
            }
        }
    }

    fn asked(&mut self, ticket: u64, question: Question, now: Moment, wall: WallTime) {
        let events = match self.name_taken(&question) {
            Some(reply) => Err(reply),
            None => self.registrar.ask(ticket, question, wall),
        };
        match events {
            Ok(events) => events.into_iter().for_each(|event| self.policy.handle_event(Event::Registry(event), now)),
            Err(reply) => self.replies.push((ticket, reply)),
        }
    }

    /// A worker that had the name of a job could not be told from it in any list.
    fn name_taken(&self, question: &Question) -> Option<Reply> {
        let Question::Register(Registration { worker, .. }) = question else { return None };
        let kind = self.book.kind(self.book.id(worker)?);
        Some(Reply::Refused { because: format!("a {} has this name", translate::kind(kind)) })
    }

    fn about(&mut self, attempt: &AttemptName, now: Moment, event: impl Fn(SubjectId, policy::Attempt) -> Event) {
        if let Some(id) = self.book.id(&attempt.job) {
            self.policy.handle_event(event(id, attempt.to_policy()), now);
        }
    }

    fn remark(&mut self, attempt: &AttemptName, detail: String) {
        if let Some(latest) = self.book.id(&attempt.job).and_then(|id| self.book.latest_mut(id)) {
            latest.remark = (!detail.is_empty()).then_some(detail);
        }
    }

    /// A job that is known already is compared with what is known, so that looking again is always harmless.
    fn job_found(&mut self, found: FoundJob, now: Moment, wall: WallTime) {
        let name = found.job.name.clone();
        if let Some(id) = self.book.id(&name) {
            if self.book.watched(id).is_some() {
                tracing::warn!(job = %name, "the config gives the name of this job to another subject; it is not judged");
                return;
            }
            let same = self.book.latest(id).is_some_and(|latest| latest.job.created_at == found.job.created_at);
            if same {
                self.job_found_again(&name, found, now, wall);
                return;
            }
            // Removed and made anew while nobody looked.
            self.job_removed(&name, now, wall);
        }
        let stored = self.stored.remove(&name).filter(|stored| stored.kind == translate::kind(SubjectKind::Job));
        let mut latest = Latest::new(found.job.clone(), found.wanted.clone());
        let (mut pickups, mut epoch) = (found.pickups, found.epoch);
        let recorded = stored.as_ref().and_then(|stored| stored.recorded);
        let given_up = stored.as_ref().and_then(|stored| stored.state.given_up);
        let is_given_up = given_up.is_some_and(|given_up| given_up.holds(&found));
        if let Some(stored) = stored {
            latest.row_epoch = stored.epoch;
            latest.journaled_start = stored.state.journaled_start;
            latest.journaled_end = stored.state.journaled_end;
            latest.line = stored.state.line;
            pickups = pickups.max(stored.pickups);
            // An epoch that was ordered and came to no file is spent all the same.
            epoch = epoch.max(stored.epoch);
        }
        let id = self.book.add(latest);
        self.journal_earlier(id, &found.earlier, wall);
        let attempt = found.attempt.as_ref().map(found_attempt);
        let (history, ended_ago) = past(&found, wall);
        if let Some(found) = found.attempt {
            self.keep_start(id, found.start, wall);
            if let Some(status) = found.status {
                self.keep_status(id, status, now, wall);
            }
            if let FoundState::Ended(end) = found.state {
                self.keep_end(id, *end, Lost { pickups, silence: None }, wall);
            }
        }
        let slots = self.slots.set(&found.job.settings.slots);
        let event = Event::JobAdded {
            subject: id,
            settings: translate::settings(&found.job.settings, slots, translate::fingerprint(&found.job.name).0),
            found: policy::Found {
                want: translate::want(&found.wanted, wall),
                epoch: policy::Epoch(epoch),
                pickups,
                history,
                attempt,
                ended_ago,
                recorded,
                is_given_up,
            },
        };
        self.policy.handle_event(event, now);
        self.ask_rules(id);
        self.touch(id);
    }

    fn job_found_again(&mut self, name: &SubjectName, found: FoundJob, now: Moment, wall: WallTime) {
        if let Some(id) = self.book.id(name) {
            self.journal_earlier(id, &found.earlier, wall);
            if self.was_resumed_by_hand(id, &found) {
                self.policy.handle_event(Event::ResumedElsewhere { subject: id }, now);
            }
        }
        self.budget_found(name, found.job.settings.resume.budget, now);
        // The attempt first: a resume that somebody else has carried out already orders no launch.
        if let Some(attempt) = found.attempt {
            self.attempt_found_again(attempt, now, wall);
        }
        self.want_changed(name, found.wanted, now, wall);
    }

    /// A person may have given it more, or less, since.
    fn budget_found(&mut self, name: &SubjectName, budget: Budget, now: Moment) {
        let Some(id) = self.book.id(name) else { return };
        let Some(latest) = self.book.latest_mut(id) else { return };
        if latest.job.settings.resume.budget != budget {
            latest.job.settings.resume.budget = budget;
            let event = Event::BudgetChanged { subject: id, budget: translate::budget(budget) };
            self.policy.handle_event(event, now);
        }
    }

    /// Answers whether a person launched what is found, and this agent did not order it.
    fn was_resumed_by_hand(&self, id: SubjectId, found: &FoundJob) -> bool {
        let start = found.attempt.as_ref().map(|attempt| &attempt.start).filter(|start| start.by_hand);
        let known = self.policy.subject(id).map_or(0, |view| view.attempt.epoch.0);
        start.is_some_and(|start| start.epoch > known)
    }

    /// Tells the journal of attempts that began and ended while nobody watched.
    fn journal_earlier(&mut self, id: SubjectId, earlier: &[(Start, End)], wall: WallTime) {
        let Some(latest) = self.book.latest_mut(id) else { return };
        for (start, end) in earlier {
            if start.epoch > latest.journaled_start {
                latest.journaled_start = start.epoch;
                self.pending.entries.push(record::entry(wall, &record::attempt_started(start)));
            }
            if end.epoch > latest.journaled_end {
                latest.journaled_end = end.epoch;
                self.pending.entries.push(record::entry(wall, &record::attempt_ended(end)));
            }
        }
    }

    fn attempt_found_again(&mut self, attempt: FoundAttempt, now: Moment, wall: WallTime) {
        match attempt.state {
            FoundState::Launching => {}
            FoundState::Running => {
                self.attempt_seen(attempt.start, now, wall);
                if let Some(status) = attempt.status {
                    self.heard(status, now, wall);
                }
            }
            FoundState::Unattended(process) => {
                let gone = AttemptName::of(&attempt.start);
                self.attempt_started(attempt.start, now, wall);
                self.about(&gone, now, |subject, attempt| Event::SupervisorGone { subject, attempt, process });
            }
            FoundState::Ended(end) => {
                self.attempt_started(attempt.start, now, wall);
                self.attempt_ended(*end, now, wall);
            }
        }
    }

    fn job_removed(&mut self, name: &SubjectName, now: Moment, wall: WallTime) {
        if let Some(id) = self.book.remove_job(name) {
            self.policy.handle_event(Event::JobRemoved { subject: id }, now);
            self.forget_alerts(policy::About::Subject(id));
            self.pending.subjects.retain(|row| row.name != name.as_str());
            self.pending.removed.push(record::text(name));
            self.pending.entries.push(record::entry(wall, &record::removed("job", name)));
        }
    }

    fn want_changed(&mut self, name: &SubjectName, wanted: Wanted, now: Moment, wall: WallTime) {
        let Some(id) = self.book.id(name) else { return };
        let Some(latest) = self.book.latest_mut(id) else { return };
        // An epoch alone is no change of what is wanted: every launch writes one.
        let changed = (latest.wanted.want, latest.wanted.at) != (wanted.want, wanted.at);
        let want = translate::want(&wanted, wall);
        latest.wanted = wanted;
        if changed {
            self.policy.handle_event(Event::WantChanged { subject: id, want }, now);
        }
    }

    fn attempt_started(&mut self, start: Start, now: Moment, wall: WallTime) {
        let process = start.process.as_ref().map(translate::process);
        self.attempt_runs(start, now, wall, |subject, attempt, supervisor| Event::AttemptStarted {
            subject,
            attempt,
            supervisor,
            process,
        });
    }

    /// A look is proof that it lives; word of a start may come late.
    fn attempt_seen(&mut self, start: Start, now: Moment, wall: WallTime) {
        self.attempt_runs(start, now, wall, |subject, attempt, supervisor| Event::AttemptSeen {
            subject,
            attempt,
            supervisor,
        });
    }

    fn attempt_runs(
        &mut self,
        start: Start,
        now: Moment,
        wall: WallTime,
        event: impl Fn(SubjectId, policy::Attempt, policy::ProcessId) -> Event,
    ) {
        let Some(id) = self.book.id(&start.job) else { return };
        let known = self.book.latest(id).and_then(|latest| latest.start.as_ref());
        if known.is_some_and(|known| known.epoch > start.epoch) {
            return;
        }
        let supervisor = start.supervisor.as_ref().map_or(NOBODY, translate::process);
        let event = event(id, translate::attempt(start.attempt, start.epoch), supervisor);
        self.keep_start(id, start, wall);
        // What the strategy proposed was for this attempt.
        if let Some(latest) = self.book.latest_mut(id) {
            latest.command = None;
        }
        self.policy.handle_event(event, now);
    }

    fn heard(&mut self, status: Status, now: Moment, wall: WallTime) {
        let Some(id) = self.book.id(&status.job) else { return };
        let Some(latest) = self.book.latest(id) else { return };
        // What has ended never changes: a late beat of it is nobody's.
        let runs = |start: &&Start| start.epoch == status.epoch && latest.end.is_none();
        if latest.start.as_ref().filter(runs).is_none() {
            return;
        }
        let event = Event::Heard {
            subject: id,
            attempt: translate::attempt(status.attempt, status.epoch),
            heard: translate::heard(&status),
        };
        self.keep_status(id, status, now, wall);
        self.policy.handle_event(event, now);
    }

    fn attempt_ended(&mut self, end: End, now: Moment, wall: WallTime) {
        let Some(id) = self.book.id(&end.job) else { return };
        let event = Event::AttemptEnded {
            subject: id,
            attempt: translate::attempt(end.attempt, end.epoch),
            ending: translate::ending(&end),
        };
        let view = self.policy.subject(id);
        let pickups = view.map_or(0, |view| view.pickups) + u32::from(end.outcome.class == Class::Lost);
        let silence = view.and_then(|view| Some(view.silence? + now.since(view.at)));
        self.keep_end(id, end, Lost { pickups, silence }, wall);
        self.policy.handle_event(event, now);
    }

    fn keep_start(&mut self, id: SubjectId, start: Start, wall: WallTime) {
        let Some(latest) = self.book.latest_mut(id) else { return };
        // A launch that is under way has no process yet; it is written down when it runs or ends.
        if start.epoch > latest.journaled_start && start.supervisor.is_some() {
            latest.journaled_start = start.epoch;
            self.pending.entries.push(record::entry(wall, &record::attempt_started(&start)));
        }
        let newer = latest.start.as_ref().is_none_or(|known| known.epoch < start.epoch);
        if newer {
            latest.status = None;
            latest.end = None;
            latest.sampled_at = None;
        }
        latest.start = Some(start);
        self.touch(id);
    }

    fn keep_status(&mut self, id: SubjectId, status: Status, now: Moment, wall: WallTime) {
        let history_every = self.history_every;
        let Some(latest) = self.book.latest_mut(id) else { return };
        let due = latest.sampled_at.is_none_or(|sampled| now.since(sampled) >= history_every);
        if due && status.sequence > 0 {
            latest.sampled_at = Some(now);
            self.pending.entries.push(record::entry(wall, &record::beat(&status)));
        }
        latest.status = Some(status);
    }

    fn keep_end(&mut self, id: SubjectId, end: End, lost: Lost, wall: WallTime) {
        let Some(latest) = self.book.latest_mut(id) else { return };
        if end.epoch > latest.journaled_end {
            latest.journaled_end = end.epoch;
            self.pending.entries.push(record::entry(wall, &record::attempt_ended(&end)));
            if end.outcome.class == Class::Lost {
                // Nobody watched: what the supervisor wrote last is all that is known.
                let told = latest.status.as_ref().map(|status| status.silence_s).unwrap_or_default();
                let silence_s = lost.silence.map_or(told, Span);
                let expired = Body::LeaseExpired {
                    subject: end.job.clone(),
                    attempt: end.attempt,
                    epoch: end.epoch,
                    previous_holder: latest.start.as_ref().and_then(record::holder),
                    target: None,
                    silence_s,
                    pickups: lost.pickups,
                };
                self.pending.entries.push(record::entry(wall, &expired));
            }
        }
        // The late ending of an older attempt is not the latest one's: that goes on to be heard.
        if latest.start.as_ref().is_none_or(|start| start.epoch <= end.epoch) {
            latest.end = Some(end);
        }
        self.touch(id);
    }
}

/// What the entry `lease-expired` says beside the ending.
struct Lost {
    /// lost attempts, this one counted
    pickups: u32,
    /// listening time without a beat; `None` where nobody listened
    silence: Option<Duration>,
}

/// What the files tell of the attempts before the latest, and how long ago that one ended.
fn past(found: &FoundJob, wall: WallTime) -> (policy::History, Duration) {
    let mut history = translate::history(found.spent_before, found.earlier.iter().map(|(start, end)| (start, end)));
    let Some(latest) = &found.attempt else { return (history, Duration::ZERO) };
    translate::begin(&mut history, &latest.start);
    match &latest.state {
        FoundState::Ended(end) => {
            (history, Duration::from_millis(wall.as_millis().saturating_sub(end.ended_at.as_millis())))
        }
        FoundState::Launching | FoundState::Running | FoundState::Unattended(_) => (history, Duration::ZERO),
    }
}

/// Stands for a supervisor that is not recorded yet; no process has this identity.
const NOBODY: policy::ProcessId =
    policy::ProcessId { boot: policy::Fingerprint(0), namespace: 0, pid: 0, start_time: 0 };

fn found_attempt(found: &FoundAttempt) -> policy::FoundAttempt {
    policy::FoundAttempt {
        attempt: translate::attempt(found.start.attempt, found.start.epoch),
        state: match &found.state {
            FoundState::Launching => policy::FoundState::Launching,
            FoundState::Running => running(&found.start, found.status.as_ref()),
            FoundState::Unattended(process) => policy::FoundState::Unattended { process: *process },
            FoundState::Ended(end) => policy::FoundState::Ended(translate::ending(end)),
        },
    }
}

fn running(start: &Start, status: Option<&Status>) -> policy::FoundState {
    policy::FoundState::Running {
        supervisor: start.supervisor.as_ref().map_or(NOBODY, translate::process),
        process: start.process.as_ref().map(translate::process),
        heard: status.map(translate::heard).unwrap_or_default(),
    }
}
