//! Facts with names become the policy's events; whole records are kept and written down on the way.

use std::time::Duration;

use latido_policy::{self as policy, Event, Moment, SubjectId};
use latido_protocol::files::{End, Start, Status, Wanted};
use latido_protocol::journal::Body;
use latido_protocol::registry::{Question, Registration, Reply};
use latido_protocol::{Class, Span, SubjectName, WallTime};
use latido_store::Store;

use crate::fact::{AttemptName, Fact};
use crate::found::NOBODY;
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
            Fact::ActivitySeen { attempt, idle, doing } => self.activity_seen(&attempt, idle, doing, now),
            Fact::SupervisorGone { attempt, process } => {
                self.about(&attempt, now, |subject, attempt| Event::SupervisorGone { subject, attempt, process });
            }
            Fact::AttemptEnded { start, end } => {
                if let (Some(start), Some(id)) = (start, self.book.id(&end.job)) {
                    self.take_start(id, *start, now, wall);
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

    pub(crate) fn about(
        &mut self,
        attempt: &AttemptName,
        now: Moment,
        event: impl Fn(SubjectId, policy::Attempt) -> Event,
    ) {
        if let Some(id) = self.book.id(&attempt.job) {
            self.policy.handle_event(event(id, attempt.to_policy()), now);
        }
    }

    pub(crate) fn remark(&mut self, attempt: &AttemptName, detail: String) {
        if let Some(latest) = self.book.id(&attempt.job).and_then(|id| self.book.latest_mut(id)) {
            latest.remark = (!detail.is_empty()).then_some(detail);
        }
    }

    pub(crate) fn job_removed(&mut self, name: &SubjectName, now: Moment, wall: WallTime) {
        if let Some(id) = self.book.remove_job(name) {
            self.policy.handle_event(Event::JobRemoved { subject: id }, now);
            self.forget_alerts(policy::About::Subject(id));
            self.pending.removed.push(record::text(name));
            self.pending.entries.push(record::entry(wall, &record::removed("job", name)));
        }
    }

    pub(crate) fn want_changed(&mut self, name: &SubjectName, wanted: Wanted, now: Moment, wall: WallTime) {
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

    pub(crate) fn attempt_started(&mut self, start: Start, now: Moment, wall: WallTime) {
        let process = start.process.as_ref().map(translate::process);
        self.attempt_runs(start, now, wall, |subject, attempt, supervisor| Event::AttemptStarted {
            subject,
            attempt,
            supervisor,
            process,
        });
    }

    /// A look is proof that it lives; word of a start may come late.
    pub(crate) fn attempt_seen(&mut self, start: Start, now: Moment, wall: WallTime) {
        self.attempt_runs(start, now, wall, |subject, attempt, supervisor| Event::AttemptSeen {
            subject,
            attempt,
            supervisor,
        });
    }

    pub(crate) fn attempt_runs(
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
        self.take_start(id, start, now, wall);
        // What the strategy proposed was for this attempt.
        if let Some(latest) = self.book.latest_mut(id) {
            latest.command = None;
        }
        self.policy.handle_event(event, now);
    }

    pub(crate) fn heard(&mut self, status: Status, now: Moment, wall: WallTime) {
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

    pub(crate) fn attempt_ended(&mut self, end: End, now: Moment, wall: WallTime) {
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

    /// Takes the record of an attempt whose start or ending is told next. The launch that wrote it may have carried out what
    /// a person asked for after it was ordered.
    fn take_start(&mut self, id: SubjectId, start: Start, now: Moment, wall: WallTime) {
        let known = self.book.latest(id).and_then(|latest| latest.start.as_ref()).map_or(0, |known| known.epoch);
        if start.by_hand && start.epoch > known {
            let attempt = translate::attempt(start.attempt, start.epoch);
            self.policy.handle_event(Event::SeriesBegan { subject: id, attempt }, now);
        }
        self.keep_start(id, start, wall);
    }

    pub(crate) fn keep_start(&mut self, id: SubjectId, start: Start, wall: WallTime) {
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
            latest.doing = None;
            latest.sampled_at = None;
        }
        latest.start = Some(start);
        self.touch(id);
    }

    pub(crate) fn keep_status(&mut self, id: SubjectId, status: Status, now: Moment, wall: WallTime) {
        let history_every = self.history_every;
        let Some(latest) = self.book.latest_mut(id) else { return };
        let due = latest.sampled_at.is_none_or(|sampled| now.since(sampled) >= history_every);
        if due && status.sequence > 0 {
            latest.sampled_at = Some(now);
            self.pending.entries.push(record::entry(wall, &record::beat(&status)));
        }
        latest.status = Some(status);
    }

    pub(crate) fn keep_end(&mut self, id: SubjectId, end: End, lost: Lost, wall: WallTime) {
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
            latest.doing = None;
        }
        self.touch(id);
    }
}

/// What the entry `lease-expired` says beside the ending.
pub(crate) struct Lost {
    /// lost attempts, this one counted
    pub(crate) pickups: u32,
    /// listening time without a beat; `None` where nobody listened
    pub(crate) silence: Option<Duration>,
}
