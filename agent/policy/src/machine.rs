//! The state machine of a job: which attempt an input is about, and what each state makes of it.

use alloc::vec::Vec;

use crate::job::{Aim, Ask, Goal, Input, Job, Outbox};
use crate::state::{Doubt, Lost, Past, State};
use crate::{Action, Attempt, Life, Moment, Reason};

impl Job {
    fn aim(&self, attempt: Attempt) -> Aim {
        let known = self.state.attempt();
        if attempt == known && self.state != State::Pending {
            Aim::Current
        } else if attempt.epoch > self.epoch {
            Aim::Newer
        } else if attempt.epoch > known.epoch {
            Aim::Refused
        } else {
            Aim::Older
        }
    }

    /// Sorts out what names another attempt than the one that is known: what is over is refused; what nobody told of is
    /// unexpected, but for its start and its ending, which somebody else may have brought about.
    pub(crate) fn sort(&mut self, input: Input, now: Moment, commands: &mut Vec<Action>, out: &mut Outbox) {
        use Input as I;
        let aim = match input {
            I::Asked(_) => Aim::Current,
            I::Started { attempt, .. }
            | I::Seen { attempt, .. }
            | I::Refused { attempt, .. }
            | I::Heard { attempt, .. }
            | I::ActivitySeen { attempt, .. }
            | I::SupervisorGone { attempt, .. }
            | I::Ended { attempt, .. }
            | I::OrphanEnded { attempt, .. }
            | I::Answered { attempt, .. }
            | I::LookFailed { attempt } => self.aim(attempt),
        };
        match (aim, input) {
            (Aim::Current, input) => self.step(input, now, commands, out),
            (Aim::Refused | Aim::Newer, I::Started { attempt, supervisor } | I::Seen { attempt, supervisor }) => {
                self.adopt(attempt, supervisor, now, commands);
            }
            (Aim::Refused | Aim::Newer, I::Ended { attempt, ending }) => {
                self.take_over(attempt, ending, now, commands, out);
            }
            (Aim::Newer, I::Asked(_) | I::Heard { .. } | I::ActivitySeen { .. })
            | (Aim::Newer, I::Refused { .. } | I::SupervisorGone { .. } | I::OrphanEnded { .. })
            | (Aim::Newer, I::Answered { .. } | I::LookFailed { .. }) => out.unexpected(),
            (Aim::Older | Aim::Refused, _) => out.refuse(),
        }
    }

    /// The first half of the state machine: what each state makes of what is wanted, and of the passing of time.
    fn asked(&mut self, ask: Ask, now: Moment, commands: &mut Vec<Action>) {
        use Ask as A;
        use State as S;
        match (self.state, ask) {
            // What is wanted. It is noted already; `settle` ends what runs and starts whose turn it is, and what ends
            // comes back by itself.
            (S::Pending, A::Run | A::Resume) => self.launch(Past::NONE, Reason::FirstAttempt),
            (S::Pending, A::Stop) => self.turn(S::Ended(Past::NONE), Reason::Commanded),
            (
                S::Queued { past, .. }
                | S::BackingOff { past, .. }
                | S::Asking { past, .. }
                | S::Held(past)
                | S::Stuck(past),
                A::Stop,
            ) => self.turn(S::Ended(past), Reason::Commanded),
            (
                S::Queued { past, .. } | S::BackingOff { past, .. } | S::Held(past) | S::Stuck(past) | S::Ended(past),
                A::Resume,
            ) => self.resume_by_hand(past, now, commands),
            (S::Launching { .. } | S::Running(_) | S::Asking { .. }, A::Resume) => self.goal = Goal::Run,
            (S::BackingOff { .. }, A::Run | A::Go) => self.go_on(now, commands),
            (S::Unproven(lost, doubt), A::Run | A::Stop | A::Resume) => {
                self.reconsider(lost, doubt, commands);
            }
            (S::Launching { .. } | S::Running(_), A::Run | A::Stop | A::Go)
            | (S::Draining { .. }, A::Run | A::Stop | A::Resume | A::Go)
            | (S::EndingOrphan(_), A::Run | A::Stop | A::Resume | A::Go)
            | (S::RecordingLost(_), A::Run | A::Stop | A::Resume | A::Go)
            | (S::Queued { .. } | S::Asking { .. } | S::Held(_) | S::Stuck(_), A::Run | A::Go)
            | (S::Ended(_), A::Run | A::Stop | A::Go)
            | (S::Pending | S::Unproven(..), A::Go) => {}
        }
    }

    /// The other half, and the way into both: what each state makes of each input about its own attempt.
    pub(crate) fn step(&mut self, input: Input, now: Moment, commands: &mut Vec<Action>, out: &mut Outbox) {
        use Input as I;
        use State as S;
        match (self.state, input) {
            (_, I::Asked(ask)) => self.asked(ask, now, commands),
            // How a launch went.
            (S::Launching { .. }, I::Started { attempt, supervisor })
            | (S::Launching { .. } | S::Unproven(_, Doubt::Unknown), I::Seen { attempt, supervisor }) => {
                self.run(attempt, supervisor, now);
            }
            (S::Running(_) | S::Draining { .. }, I::Started { supervisor, .. } | I::Seen { supervisor, .. }) => {
                self.see_again(supervisor);
            }
            (S::Launching { starter, .. }, I::Refused { failure, .. }) => self.refuse_launch(starter, failure, now),
            // What is heard and seen of it.
            (S::Running(_) | S::Draining { .. }, I::Heard { heard, .. }) => self.hear(heard, now, out),
            (S::Running(_) | S::Draining { .. }, I::ActivitySeen { idle, .. }) => self.see_activity(idle),
            (S::Running(_) | S::Draining { .. }, I::LookFailed { .. }) => self.look_in_vain(),
            (S::Launching { .. } | S::Running(_), I::SupervisorGone { attempt, process }) => {
                self.lose(Lost { attempt, order: None }, process, commands);
            }
            (S::Draining { order, .. }, I::SupervisorGone { attempt, process }) => {
                self.lose(Lost { attempt, order }, process, commands);
            }
            (S::Unproven(lost, doubt), I::SupervisorGone { process, .. }) => match (doubt, process) {
                (Doubt::Unknown, Life::Alive | Life::Gone | Life::Unknown)
                | (Doubt::Orphan | Doubt::Survivors, Life::Gone) => self.lose(lost, process, commands),
                (Doubt::Orphan | Doubt::Survivors, Life::Alive | Life::Unknown) => {}
            },
            // How it ended.
            (S::Launching { .. } | S::Running(_), I::Ended { attempt, ending }) => {
                self.finish(attempt, ending, None, now, commands);
            }
            (S::Draining { order, .. }, I::Ended { attempt, ending }) => {
                self.finish(attempt, ending, order, now, commands);
            }
            (S::RecordingLost(lost) | S::Unproven(lost, _), I::Ended { attempt, ending }) => {
                self.finish(attempt, ending, lost.order, now, commands);
            }
            (S::EndingOrphan(lost), I::OrphanEnded { survivors, .. }) => {
                self.count_survivors(lost, survivors, commands)
            }
            // What was ordered could not be done: it is held, and looked at again.
            (S::EndingOrphan(lost), I::LookFailed { .. }) => {
                self.turn(S::Unproven(lost, Doubt::Unknown), Reason::CannotTell);
            }
            (S::Asking { past, by_hand }, I::Answered { proposal, .. }) => {
                self.take_answer(past, by_hand, proposal, now);
            }
            // What changes nothing: it is told for the second time, or says less than what is known. An ending that is
            // there while its orphan is being ended is told again by `RecordLost`, when nothing lives of it.
            (S::EndingOrphan(_) | S::RecordingLost(_), I::SupervisorGone { .. })
            | (S::RecordingLost(_), I::LookFailed { .. })
            | (S::EndingOrphan(_), I::Ended { .. })
            | (S::Launching { .. }, I::Heard { .. } | I::ActivitySeen { .. } | I::LookFailed { .. })
            | (S::Unproven(..), I::LookFailed { .. }) => {}
            // What comes too late: the attempt has gone on without it. What has ended never changes.
            (S::EndingOrphan(_) | S::RecordingLost(_) | S::Unproven(..), I::Started { .. } | I::Heard { .. })
            | (S::EndingOrphan(_) | S::RecordingLost(_) | S::Unproven(..), I::ActivitySeen { .. })
            | (S::EndingOrphan(_) | S::RecordingLost(_), I::Seen { .. })
            | (S::Unproven(_, Doubt::Orphan | Doubt::Survivors), I::Seen { .. })
            | (S::RecordingLost(_) | S::Unproven(..), I::OrphanEnded { .. })
            | (S::Queued { .. } | S::BackingOff { .. } | S::Held(_) | S::Stuck(_) | S::Ended(_), I::Answered { .. })
            | (
                S::Queued { .. } | S::BackingOff { .. } | S::Asking { .. } | S::Held(_) | S::Stuck(_) | S::Ended(_),
                I::Started { .. } | I::Seen { .. } | I::Heard { .. } | I::SupervisorGone { .. } | I::LookFailed { .. },
            )
            | (
                S::Queued { .. } | S::BackingOff { .. } | S::Asking { .. } | S::Held(_) | S::Stuck(_) | S::Ended(_),
                I::Ended { .. } | I::OrphanEnded { .. } | I::Refused { .. } | I::ActivitySeen { .. },
            ) => out.refuse(),
            // The refusal of a launch that somebody else won under the same number and epoch.
            (
                S::Running(_) | S::Draining { .. } | S::EndingOrphan(_) | S::RecordingLost(_) | S::Unproven(..),
                I::Refused { .. },
            ) => out.refuse(),
            // What cannot be: nothing of it was ordered, or it contradicts what was told.
            (S::Pending, I::Started { .. } | I::Seen { .. } | I::Refused { .. } | I::Heard { .. })
            | (S::Pending, I::SupervisorGone { .. } | I::ActivitySeen { .. })
            | (S::Pending, I::Ended { .. } | I::OrphanEnded { .. } | I::Answered { .. } | I::LookFailed { .. })
            | (S::Launching { .. } | S::Running(_) | S::Draining { .. }, I::OrphanEnded { .. } | I::Answered { .. })
            | (S::EndingOrphan(_) | S::RecordingLost(_) | S::Unproven(..), I::Answered { .. }) => out.unexpected(),
        }
    }
}
