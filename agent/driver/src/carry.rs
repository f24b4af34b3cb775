//! The policy's actions become rows, entries and orders with names. No choice is left here.

use std::collections::BTreeSet;

use latido_policy::{About, Action, Attempt, CheckAction, Moment, Phase, ProcessAction, Reason, SubjectId};
use latido_protocol::journal::Body;
use latido_protocol::{SubjectName, WallTime};
use latido_store::{Store, SubjectRow};

use crate::fact::{AttemptName, Order};
use crate::record::{GivenUp, RowState};
use crate::registry::Carried;
use crate::{Driver, record, translate};

impl<S: Store> Driver<S> {
    pub(crate) fn carry(&mut self, action: Action, wall: WallTime) {
        match action {
            Action::RecordVerdict { subject, attempt, previous, current, because } => {
                let Some(name) = self.name(subject) else { return };
                let body = Body::Transition {
                    subject: name,
                    kind: self.book.kind(subject),
                    attempt: attempt.number.0,
                    epoch: attempt.epoch.0,
                    previous: translate::verdict(previous),
                    current: translate::verdict(current),
                    reason: self.reason(subject, current, because),
                };
                self.write(subject, &body, wall);
            }
            Action::RecordPhase { subject, attempt, phase, because } => {
                let Some(name) = self.name(subject) else { return };
                let body = Body::Phase {
                    subject: name,
                    attempt: attempt.number.0,
                    epoch: attempt.epoch.0,
                    phase: translate::phase(phase),
                    reason: because.to_string(),
                };
                self.note_line(subject, phase);
                self.note_unpaused(subject, phase);
                self.write(subject, &body, wall);
            }
            Action::RecordLost { subject, attempt, pickups: _, because } => {
                if let Some((attempt, holder)) = self.holder(subject, attempt) {
                    self.sweep.note_lost(attempt, holder, &because);
                }
                self.order(subject, attempt, |attempt| Order::RecordLost { attempt, because: because.to_string() });
            }
            Action::EndOrphan { subject, attempt, grace, because } => {
                self.order(subject, attempt, |attempt| Order::EndOrphan {
                    attempt,
                    grace,
                    because: because.to_string(),
                });
            }
            Action::EndAttempt { subject, attempt, supervisor: _, grace, ground, because } => {
                if let Some((attempt, holder)) = self.holder(subject, attempt) {
                    self.sweep.note_ended(attempt, holder, &because);
                }
                self.order(subject, attempt, |attempt| Order::EndAttempt {
                    attempt,
                    grace,
                    ground: ground.map(translate::ground),
                    reason: translate::stop_reason(&because),
                    because: because.to_string(),
                });
            }
            Action::AskStrategy { subject, attempt, because } => {
                let Some(strategy) = self.book.latest(subject).map(|latest| latest.job.settings.strategy.clone())
                else {
                    return;
                };
                self.order(subject, attempt, |attempt| Order::AskStrategy {
                    attempt,
                    strategy,
                    by_hand: because == Reason::ResumedByHand,
                    because: because.to_string(),
                });
            }
            Action::Launch { subject, attempt, because } => {
                // A launch that is refused is ordered again, and then it is the same one.
                let command = self.book.latest(subject).and_then(|latest| latest.command.clone());
                self.order(subject, attempt, |attempt| Order::Launch {
                    attempt,
                    by_hand: because == Reason::ResumedByHand,
                    because: because.to_string(),
                    command,
                });
            }
            Action::Check(CheckAction::RecordUnended { subject, run: _, open_for }) => {
                let Some(name) = self.name(subject) else { return };
                let detail = format!("check {name}: a run of {:.0} s never told its end", open_for.as_secs_f64());
                self.pending.entries.push(record::entry(wall, &record::noted("run-unended", detail)));
            }
            Action::Process(ProcessAction::RecordReplaced { subject, previous, current }) => {
                let Some(name) = self.name(subject) else { return };
                let detail = format!("process {name}: pid {} took the place of pid {}", current.pid, previous.pid);
                self.pending.entries.push(record::entry(wall, &record::noted("process-replaced", detail)));
                self.touch(subject);
            }
            Action::Alert(action) => self.carry_alert(action, wall),
            Action::RecordGap { length } => {
                let detail = format!("could not hear for {:.1} s; nobody is judged by it", length.as_secs_f64());
                self.pending.entries.push(record::entry(wall, &record::noted("gap", detail)));
            }
            Action::Registry(action) => self.registrar.carry(action, self.policy.registry(), &mut self.carried),
            Action::RecordBlackout { change } => {
                let (what, detail) = record::blackout(change);
                tracing::warn!(what, "{detail}");
                self.pending.entries.push(record::entry(wall, &record::noted(what, detail)));
            }
        }
    }

    /// Puts what came of the registry's actions, and what is to be written of it without one, where it belongs.
    pub(crate) fn carry_registry(&mut self, now: Moment, wall: WallTime) {
        for worker in self.registrar.settle(self.policy.registry()) {
            self.forget_alerts(About::Worker(worker));
        }
        let registry = self.policy.registry();
        let Carried { writes, entries, replies, locks, changed } = std::mem::take(&mut self.carried);
        self.changed.extend(changed);
        self.pending.registry.extend(writes);
        self.pending.registry.extend(self.registrar.flush(registry, now));
        self.pending.entries.extend(entries.iter().map(|body| record::entry(wall, body)));
        self.replies.extend(replies);
        self.orders.extend(locks.into_iter().map(|(ticket, group)| Order::CheckGroupLock { ticket, group }));
    }

    /// The attempt by its name, and who holds it.
    fn holder(&self, subject: SubjectId, attempt: Attempt) -> Option<(AttemptName, Option<String>)> {
        let latest = self.book.latest(subject)?;
        let name = AttemptName { job: latest.job.name.clone(), number: attempt.number.0, epoch: attempt.epoch.0 };
        let start = latest.start.as_ref().filter(|start| start.epoch == attempt.epoch.0);
        Some((name, start.and_then(record::holder)))
    }

    fn name(&self, subject: SubjectId) -> Option<SubjectName> {
        self.book.name(subject).cloned()
    }

    fn order(&mut self, subject: SubjectId, attempt: Attempt, order: impl FnOnce(AttemptName) -> Order) {
        let Some(job) = self.name(subject) else { return };
        self.orders.push(order(AttemptName { job, number: attempt.number.0, epoch: attempt.epoch.0 }));
        // The intent and its epoch are in the row before anybody acts on the order.
        self.touch(subject);
    }

    fn write(&mut self, subject: SubjectId, body: &Body, wall: WallTime) {
        self.pending.entries.push(record::entry(wall, body));
        self.ask_rules(subject);
        self.touch(subject);
    }

    /// Lets rules be asked about the subject: after each change, and once after it was found, since a start finds what a
    /// rule's first call may have missed and changes nothing where the verdict is the recorded one.
    pub(crate) fn ask_rules(&mut self, subject: SubjectId) {
        self.changed.extend(self.name(subject));
    }

    /// Lets the subject's row be written with the next commit, as it is then.
    pub(crate) fn touch(&mut self, subject: SubjectId) {
        if let (Some(view), Some(latest)) = (self.policy.subject(subject), self.book.latest_mut(subject)) {
            latest.row_epoch = latest.row_epoch.max(view.attempt.epoch.0);
        }
        self.touched.insert(subject);
    }

    /// Puts the rows of all that was touched into what is written next. Whoever is there again under the name of what was
    /// removed replaces its row.
    pub(crate) fn put_rows(&mut self) {
        let row = |id: &SubjectId| match self.book.watched(*id) {
            Some(watched) => self.watched_row(*id, watched),
            None => self.job_row(*id),
        };
        self.pending.subjects = self.touched.iter().filter_map(row).collect();
        if !self.pending.removed.is_empty() {
            let names: BTreeSet<&str> = self.pending.subjects.iter().map(|row| row.name.as_str()).collect();
            self.pending.removed.retain(|name| !names.contains(name.as_str()));
        }
    }

    /// Gives who begins to wait its place in line, which its row keeps for the next agent.
    fn note_line(&mut self, subject: SubjectId, phase: Phase) {
        let Some(latest) = self.book.latest_mut(subject) else { return };
        if phase != Phase::Queued {
            latest.line = None;
        } else if latest.line.is_none() {
            self.line += 1;
            latest.line = Some(self.line);
        }
    }

    fn job_row(&self, subject: SubjectId) -> Option<SubjectRow> {
        let (view, latest) = (self.policy.subject(subject)?, self.book.latest(subject)?);
        let state = RowState {
            journaled_start: latest.journaled_start,
            journaled_end: latest.journaled_end,
            given_up: GivenUp::of(&view, &latest.wanted),
            fruitless: view.fruitless.in_a_row,
            endings: view.fruitless.endings,
            line: latest.line,
        };
        Some(SubjectRow {
            name: record::text(&latest.job.name),
            kind: "job".to_owned(),
            verdict: translate::verdict(view.verdict).to_string(),
            phase: translate::phase(view.phase).to_string(),
            reason: view.because.to_string(),
            since_ms: self.moment_to_wall(view.since).as_millis(),
            attempt: view.attempt.number.0,
            epoch: latest.row_epoch,
            pickups: view.pickups,
            last_beat_ms: latest.status.as_ref().and_then(|status| status.last_beat).map(WallTime::as_millis),
            sequence: latest.status.as_ref().map_or(0, |status| status.sequence),
            state: serde_json::to_string(&state).unwrap_or_default(),
            deadline_ms: None,
        })
    }
}
