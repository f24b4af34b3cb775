//! Jobs as a look at their folders finds them: at the agent's start, and whenever somebody looks again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use latido_policy::{self as policy, Event, Fruitless, Moment, SubjectId};
use latido_protocol::files::{Budget, End, Start, Status};
use latido_protocol::status::SubjectKind;
use latido_protocol::{Class, SubjectName, WallTime};
use latido_store::Store;

use crate::apply::Lost;
use crate::book::Latest;
use crate::fact::{AttemptName, FoundAttempt, FoundJob, FoundState};
use crate::{Driver, StoredRow, record, translate};

impl<S: Store> Driver<S> {
    /// The place in line of a job that waited to start when the store was written last and has not been told of yet.
    /// Whoever tells of jobs in this order keeps the line.
    pub fn line(&self, job: &SubjectName) -> Option<u64> {
        self.stored.get(job).and_then(|stored| stored.state.line)
    }

    /// Forgets subjects that the store remembers and no folder stands for. Called once, after recovery, with the names
    /// whose folders could not be read: they are there, and are found when they can be. What needs a slot is launched from
    /// then on.
    pub fn forget_absent(&mut self, unread: &BTreeSet<SubjectName>, wall: WallTime) {
        self.record_forgetting(unread, wall);
        let (kept, gone) = std::mem::take(&mut self.stored).into_iter().partition(|(name, _)| unread.contains(name));
        self.stored = kept;
        let gone: BTreeMap<SubjectName, StoredRow> = gone;
        for (name, stored) in gone {
            if self.book.id(&name).is_none() {
                self.pending.removed.push(record::text(&name));
                self.pending.entries.push(record::entry(wall, &record::removed(&stored.kind, &name)));
            }
        }
        for id in self.book.take_reserved(unread) {
            self.forget_alerts(latido_policy::About::Subject(id));
        }
        self.end_recovery();
    }

    /// Every job there is was told of.
    pub(crate) fn end_recovery(&mut self) {
        self.policy.handle_event(Event::RecoveryEnded, self.listening.now());
    }

    /// Jobs of whose latest attempt it cannot be told that it is over, or of which an orphan is left: nobody watches these,
    /// so they have to be looked at now and then.
    pub fn in_doubt(&self) -> Vec<SubjectName> {
        let is_in_doubt = |id| {
            matches!(self.policy.verdict(id), Some(latido_policy::Verdict::Unknown | latido_policy::Verdict::Orphaned))
        };
        self.book.iter().filter(|(_, id, _)| is_in_doubt(*id)).map(|(name, _, _)| name.clone()).collect()
    }

    /// A job that is known already is compared with what is known, so that looking again is always harmless.
    pub(crate) fn job_found(&mut self, found: FoundJob, now: Moment, wall: WallTime) {
        let name = found.job.name.clone();
        let known = self.book.id(&name);
        if known.is_some_and(|id| self.book.watched(id).is_some()) {
            tracing::warn!(job = %name, "the config gives the name of this job to another subject; it is not judged");
        } else if known.and_then(|id| self.book.latest(id)).is_some_and(|it| it.job.created_at == found.job.created_at)
        {
            self.job_found_again(&name, found, now, wall);
        } else {
            // It may have been removed and made anew while nobody looked.
            self.job_removed(&name, now, wall);
            self.add_job(name, found, now, wall);
        }
    }

    fn add_job(&mut self, name: SubjectName, found: FoundJob, now: Moment, wall: WallTime) {
        let stored = self.stored.remove(&name).filter(|stored| stored.kind == translate::kind(SubjectKind::Job));
        let mut latest = Latest::new(found.job.clone(), found.wanted.clone());
        let (mut pickups, mut epoch) = (found.pickups, found.epoch);
        let recorded = stored.as_ref().and_then(|stored| stored.recorded);
        let given_up = stored.as_ref().and_then(|stored| stored.state.given_up);
        let is_given_up = given_up.is_some_and(|given_up| given_up.holds(&found));
        let mut history = history(&found);
        if let Some(stored) = stored {
            latest.row_epoch = stored.epoch;
            latest.journaled_start = stored.state.journaled_start;
            latest.journaled_end = stored.state.journaled_end;
            latest.line = stored.state.line;
            history.remember(Fruitless { endings: stored.state.endings, in_a_row: stored.state.fruitless });
            pickups = pickups.max(stored.pickups);
            // An epoch that was ordered and came to no file is spent all the same.
            epoch = epoch.max(stored.epoch);
        }
        let id = self.book.add(latest);
        self.journal_earlier(id, &found.earlier, wall);
        let attempt = found.attempt.as_ref().map(found_attempt);
        let ended_ago = ended_ago(&found, wall);
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
                unpaused_ago: translate::unpaused_ago(&found.wanted, wall),
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
            self.attempts_missed(id, &found, now);
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

    /// Tells of attempts that began without this agent: a person resumed it, or another agent did. An attempt that it
    /// ordered itself and took for refused is among them.
    fn attempts_missed(&mut self, id: SubjectId, found: &FoundJob, now: Moment) {
        let known = self.policy.subject(id).map_or(0, |view| view.attempt.epoch.0);
        let Some(latest) = found.attempt.as_ref().map(|latest| &latest.start).filter(|start| start.epoch > known)
        else {
            return;
        };
        let starts = found.earlier.iter().map(|(start, _)| start).chain([latest]);
        let missed = policy::Missed {
            attempt: translate::attempt(latest.attempt, latest.epoch),
            history: history(found),
            pickups: found.pickups.saturating_sub(u32::from(ended_lost(found))),
            by_hand: starts.filter(|start| start.epoch > known).any(|start| start.by_hand),
        };
        self.policy.handle_event(Event::AttemptsMissed { subject: id, missed }, now);
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
            FoundState::Launching => {
                let begun = AttemptName::of(&attempt.start);
                self.about(&begun, now, |subject, attempt| Event::LaunchSeen { subject, attempt });
            }
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
}

/// What the files tell of the attempts before the latest, and of what stood before that one began.
fn history(found: &FoundJob) -> policy::History {
    let mut history = translate::history(found.spent_before, found.earlier.iter().map(|(start, end)| (start, end)));
    found.attempt.iter().for_each(|latest| translate::begin(&mut history, &latest.start));
    history
}

/// Whether the latest attempt has ended, and was lost.
fn ended_lost(found: &FoundJob) -> bool {
    let state = found.attempt.as_ref().map(|latest| &latest.state);
    matches!(state, Some(FoundState::Ended(end)) if end.outcome.class == Class::Lost)
}

/// How long ago the latest attempt ended; zero where it did not.
fn ended_ago(found: &FoundJob, wall: WallTime) -> Duration {
    match found.attempt.as_ref().map(|latest| &latest.state) {
        Some(FoundState::Ended(end)) => translate::between(end.ended_at, wall),
        Some(FoundState::Launching | FoundState::Running | FoundState::Unattended(_)) | None => Duration::ZERO,
    }
}

/// Stands for a supervisor that is not recorded yet; no process has this identity.
pub(crate) const NOBODY: policy::ProcessId =
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
