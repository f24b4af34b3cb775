//! What a job does by itself: it starts when it is its turn, ends at its limits, and is resumed up to its limits.

use alloc::vec::Vec;

use crate::job::{Goal, Job, Outbox};
use crate::state::{Running, State};
use crate::verdict::end_because;
use crate::{Action, Class, Ending, Ground, Heard, Lease, Moment, Reason, Spent, StopReason};

impl Job {
    /// Starts what waits if it is its turn, and ends what runs if that is wanted or its own policy says so.
    pub(crate) fn settle(&mut self, now: Moment, commands: &mut Vec<Action>, out: &mut Outbox) {
        self.is_weighed = self.is_weighed && self.is_silent(&self.counted_facts(now));
        match self.state {
            State::Queued { past, because } if self.pause.is_none() => {
                match out.queue.enter(self.request(because), now) {
                    Ok(()) => self.start(past, because, now, commands),
                    Err(awaits) => self.because = awaits,
                }
            }
            State::Running(running) => {
                if let Some(because) = self.end_because(&running, now) {
                    commands.push(self.end_attempt(&running, because));
                    self.turn(State::Draining { running, order: because.stop_reason() }, because);
                }
            }
            State::Pending
            | State::Queued { .. }
            | State::Launching { .. }
            | State::Draining { .. }
            | State::EndingOrphan(_)
            | State::RecordingLost(_)
            | State::BackingOff { .. }
            | State::Asking { .. }
            | State::Held(_)
            | State::Unproven(..)
            | State::Stuck(_)
            | State::Ended(_) => {}
        }
    }

    pub(crate) fn end_because(&self, running: &Running, now: Moment) -> Option<Reason> {
        match (self.goal, self.pause) {
            (Goal::Stop, _) => return Some(Reason::Commanded),
            (Goal::Run | Goal::Resume, Some(_)) => return None,
            (Goal::Run | Goal::Resume, None) => {}
        }
        if let Some(used_up) = self.budget_used_up(running.spent) {
            return Some(used_up);
        }
        let facts = self.counted_facts(now);
        let because = end_because(&self.lease(), &self.settings.resume, &facts, self.is_weighed)?;
        let all = self.history.ran().saturating_add(facts.running);
        match (because, self.settings.resume.wall_time_max.reached(all)) {
            (Reason::RanTooLong { .. }, Some(wall_time_max)) => Some(Reason::WallTimeSpent { ran: all, wall_time_max }),
            (because, _) => Some(because),
        }
    }

    /// Answers whether an order that was given for want of beats or progress would be given again as it is. What else
    /// speaks against it is another order; and one that rests on the last beat is void with the next.
    pub(crate) fn stands(&self, running: &Running, order: StopReason, has_beaten: bool, now: Moment) -> bool {
        match self.end_because(running, now) {
            Some(Reason::Looping { .. }) if has_beaten => false,
            because => because.and_then(Reason::stop_reason) == Some(order),
        }
    }

    /// An order to end what runs, with what it rests on.
    pub(crate) fn end_attempt(&self, running: &Running, because: Reason) -> Action {
        let Running { attempt, supervisor, heard, .. } = *running;
        let (subject, grace) = (self.subject, self.settings.grace);
        let Lease { ttl, start_within, .. } = self.settings.lease;
        let ground = match because.stop_reason() {
            Some(StopReason::Stale) if heard.sequence == 0 => Some(Ground::Silent(ttl.max(start_within))),
            Some(StopReason::Stale) => Some(Ground::Silent(ttl)),
            Some(StopReason::Hung) => Some(hung_ground(because, &heard)),
            Some(StopReason::Commanded | StopReason::Limit | StopReason::Superseded) | None => None,
        };
        Action::EndAttempt { subject, attempt, supervisor, grace, ground, because }
    }

    /// Answers whether an ending of this class is resumed. What the policy itself ended for want of beats or progress
    /// is, since it is ended for that purpose alone.
    pub(crate) fn resumes(&self, class: Class, order: Option<StopReason>) -> bool {
        let on = self.settings.resume.on;
        let ended_to_resume = order.is_some_and(StopReason::is_for_want);
        match class {
            Class::Stopped => false,
            Class::Completed => on.completed,
            Class::Failed => on.failed || ended_to_resume,
            Class::Lost => on.lost || ended_to_resume,
            Class::Limit => on.limit,
        }
    }

    /// Answers which limit is reached, if one is.
    pub(crate) fn limit(&self, ending: &Ending) -> Option<Reason> {
        let policy = self.settings.resume;
        let (attempts, pickups, ran) = (self.history.attempts(), self.history.pickups(), self.history.ran());
        let without_progress = self.history.without_progress();
        if let Some(max_attempts) = policy.max_attempts.reached(attempts) {
            Some(Reason::AttemptsSpent { attempts, max_attempts })
        } else if ending.class == Class::Lost && pickups >= policy.max_pickups {
            Some(Reason::PickupsSpent { pickups, max_pickups: policy.max_pickups })
        } else if let Some(attempts_max) = policy.max_attempts_without_progress.reached(without_progress) {
            Some(Reason::NoProgress { attempts: without_progress, attempts_max })
        } else if let Some(wall_time_max) = policy.wall_time_max.reached(ran) {
            Some(Reason::WallTimeSpent { ran, wall_time_max })
        } else if let Some(used_up) = self.budget_used_up(Spent::default()) {
            Some(used_up)
        } else {
            let deaths = self.history.identical_deaths(policy.max_identical_deaths)?;
            Some(Reason::IdenticalDeaths { deaths, ran_for: ending.ran_for })
        }
    }

    /// Answers which counter is used up by all attempts that ended and one that spent this.
    pub(crate) fn budget_used_up(&self, spent: Spent) -> Option<Reason> {
        self.settings.resume.budget.used_up(self.history.spent().plus(spent))
    }
}

/// What an order for want of progress rests on.
fn hung_ground(because: Reason, heard: &Heard) -> Ground {
    if let Reason::ProgressStill { hung_after, .. } = because {
        Ground::Still(hung_after)
    } else if heard.broken {
        Ground::Broken
    } else {
        Ground::Repeating { beats: heard.sequence }
    }
}
