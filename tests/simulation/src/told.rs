//! What the agent is told reaches the reference model and the checks as well.

use std::time::Duration;

use latido_driver::{Fact, FoundJob, FoundState};
use latido_policy::{Life, Proposal};
use latido_protocol::files::{Orphans, Want, Wanted};

use crate::checks::Excuse;
use crate::world::World;

/// What a strategy's word excuses.
fn excuse_of(proposal: Proposal) -> Option<Excuse> {
    match proposal {
        Proposal::Hold | Proposal::Failed => Some(Excuse::StrategyHeld),
        Proposal::GiveUp => Some(Excuse::StrategyGaveUp),
        Proposal::Launch | Proposal::Wait(_) => None,
    }
}

impl World {
    /// Takes note of what the agent is told.
    pub(crate) fn tell_reference(&mut self, fact: &Fact, sent_at: Duration) {
        let (name, excuse) = match fact {
            Fact::JobFound(found) => {
                let Some(excuse) = self.tell_found(found, sent_at) else { return };
                (found.job.name.clone(), excuse)
            }
            Fact::Heard { status } => {
                let Some(job) = self.job_of(status.job.as_str()) else { return };
                return self.hear(job, status, sent_at);
            }
            Fact::AttemptStarted { start } => {
                let Some(job) = self.job_of(start.job.as_str()) else { return };
                return self.tell_attempt(job, start.epoch, start.by_hand);
            }
            Fact::AttemptEnded { start, end } => {
                let Some(job) = self.job_of(end.job.as_str()) else { return };
                let by_hand = start.as_ref().is_some_and(|start| start.by_hand);
                return self.tell_attempt(job, end.epoch, by_hand);
            }
            Fact::LaunchRefused { attempt, .. } => {
                let Some(job) = self.job_of(attempt.job.as_str()) else { return };
                self.reference.jobs[job].refusals += 1;
                return;
            }
            Fact::SupervisorGone { attempt, process } => {
                let Some(job) = self.job_of(attempt.job.as_str()) else { return };
                (attempt.job.clone(), self.doubt(job, *process))
            }
            Fact::OrphanEnded { attempt, survivors } => {
                (attempt.job.clone(), (!survivors.is_empty()).then_some(Excuse::Survivors))
            }
            Fact::StrategyAnswered { attempt, proposal, .. } => (attempt.job.clone(), excuse_of(*proposal)),
            Fact::WantChanged { job, wanted } => {
                let Some(job) = self.job_of(job.as_str()) else { return };
                let next = self.reference.jobs[job].next_epoch();
                return self.tell_want(job, wanted, next);
            }
            Fact::JobRemoved { job } => {
                let Some(job) = self.job_of(job.as_str()) else { return };
                return self.seen[job].unsee();
            }
            Fact::LookFailed { .. }
            | Fact::ActivitySeen { .. }
            | Fact::RuleAnswered { .. }
            | Fact::RuleFailed { .. }
            | Fact::Watched(_)
            | Fact::Asked { .. }
            | Fact::GroupLockSeen { .. }
            | Fact::Noted { .. } => return,
        };
        if let (Some(job), Some(excuse)) = (self.job_of(name.as_str()), excuse) {
            self.reference.jobs[job].excuses.insert(excuse);
        }
    }

    fn doubt(&self, job: usize, life: Life) -> Option<Excuse> {
        match life {
            Life::Alive if self.specs[job].settings.orphans == Orphans::Hold => Some(Excuse::OrphanLeft),
            Life::Alive | Life::Gone | Life::Unknown => None,
        }
    }

    fn hear(&mut self, job: usize, status: &latido_protocol::files::Status, sent_at: Duration) {
        let now = self.now();
        self.reference.hear(job, status, sent_at, now);
    }

    fn tell_attempt(&mut self, job: usize, epoch: u64, by_hand: bool) {
        let now = self.now();
        self.reference.jobs[job].tell(epoch, now);
        if epoch > self.seen[job].epoch {
            self.seen[job].is_over = false;
        }
        if by_hand {
            self.reference.jobs[job].begin_anew(epoch);
        }
    }

    /// What is wanted; a resume asks for the attempt after the latest, also where that one's epoch is given already.
    fn tell_want(&mut self, job: usize, wanted: &Wanted, next: u64) {
        let told = Some((wanted.want, wanted.at));
        let before = self.seen[job].wanted;
        if before == told {
            return;
        }
        self.seen[job].wanted = told;
        let by_hand = wanted.want == Want::Resume || before.is_some_and(|(want, _)| want != Want::Run);
        let now = self.now();
        let of = &mut self.reference.jobs[job];
        // A stop is undone by a resume; one that died before its attempt was there undid nothing for an agent that was told.
        let stands = wanted.want == Want::Run && before.is_some_and(|(want, _)| want == Want::Stop);
        if !stands {
            (of.told, of.told_at) = (Some(wanted.want), now);
        }
        if by_hand && wanted.want != Want::Stop {
            self.seen[job].is_over = false;
        }
        if wanted.want == Want::Resume {
            self.reference.jobs[job].begin_anew(next);
        }
    }

    /// Takes note of a job that was found; answers why it may wait for a person, where nobody looks after it.
    fn tell_found(&mut self, found: &FoundJob, sent_at: Duration) -> Option<Option<Excuse>> {
        let job = self.job_of(found.job.name.as_str())?;
        let next = found.attempt.as_ref().map_or(0, |latest| latest.start.epoch) + 1;
        // What is wanted stands beside the latest attempt, and may be about it: a resume was ordered to stop since.
        if let Some(latest) = &found.attempt {
            self.tell_attempt(job, latest.start.epoch, latest.start.by_hand);
        }
        self.tell_want(job, &found.wanted, next);
        let attempt = found.attempt.as_ref()?;
        if let Some(status) = attempt.status.as_ref().filter(|_| matches!(attempt.state, FoundState::Running)) {
            self.hear(job, status, sent_at);
        }
        match attempt.state {
            FoundState::Unattended(life) => Some(self.doubt(job, life)),
            FoundState::Launching | FoundState::Running | FoundState::Ended(_) => None,
        }
    }
}
