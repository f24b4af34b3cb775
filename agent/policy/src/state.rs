//! The states of a job. Each holds what is true in it and nothing else, so that wrong combinations cannot be written.

use core::time::Duration;

use crate::novelty::Novelty;
use crate::{Attempt, Class, Existence, Facts, Heard, Lease, Moment, Phase, ProcessId, Reason, Spent, StopReason};

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No attempt yet, and none is ordered.
    Pending,
    /// Its next attempt may start, and waits until it is its turn.
    Queued { past: Past, because: Reason },
    /// An attempt is being started.
    Launching { attempt: Attempt, starter: Starter, since: Moment },
    /// An attempt runs under its supervisor.
    Running(Running),
    /// Its supervisor ends it; the order is `None` where the stop came from elsewhere.
    Draining { running: Running, order: Option<StopReason> },
    /// `EndOrphan` was given out.
    EndingOrphan(Lost),
    /// Proven gone; `RecordLost` was given out.
    RecordingLost(Lost),
    /// Waits before what follows.
    BackingOff { past: Past, until: Moment, then: Then },
    /// `AskStrategy` was given out.
    Asking { past: Past, by_hand: bool },
    /// Its last attempt ended, and a person must act.
    Held(Past),
    /// Held as well: its last attempt may live, and nothing is started before it is proven over.
    Unproven(Lost, Doubt),
    /// Given up at a limit.
    Stuck(Past),
    /// Over.
    Ended(Past),
}

/// Who starts an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starter {
    /// This agent, by `Launch`; what it goes back to if the launch is refused.
    Agent { past: Past, because: Reason },
    /// Somebody else.
    Other,
}

/// An attempt under a live supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) attempt: Attempt,
    pub(crate) supervisor: ProcessId,
    pub(crate) heard: Heard,
    pub(crate) heard_at: Moment,
    /// the end of its last pause: no silence from before it counts
    pub(crate) unpaused_at: Option<Moment>,
    /// the last look at it failed
    pub(crate) is_unknown: bool,
    /// since its CPU time or I/O last grew, as it was seen from outside last
    pub(crate) seen_idle: Option<Duration>,
    pub(crate) novelty: Novelty,
    /// the most it ever told to have used up
    pub(crate) spent: Spent,
}

/// An attempt whose supervisor is gone, and the order under which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) attempt: Attempt,
    pub(crate) order: Option<StopReason>,
}

/// The last attempt that ended, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) attempt: Attempt,
    /// `None` before the first ending
    pub(crate) class: Option<Class>,
    /// for want of what latido ended it, where it did
    pub(crate) order: Option<StopReason>,
}

/// What follows a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The strategy is asked.
    Ask { by_hand: bool },
    /// A refused launch is ordered again. It may have come further than was told, but for one that nobody wanted any more.
    Launch { because: Reason, may_live: bool },
}

/// Why an attempt is not proven over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// An orphan lives, and nobody has tried to end it.
    Orphan,
    /// An orphan could not be ended.
    Survivors,
    /// Whether it lives cannot be told.
    Unknown,
}

impl Past {
    /// Before the first attempt.
    pub(crate) const NONE: Self =
        Self { attempt: Attempt { number: crate::AttemptNumber(0), epoch: crate::Epoch(0) }, class: None, order: None };

    /// What it means where no attempt follows by itself: `otherwise` if there was none.
    fn existence(self, otherwise: Existence) -> Existence {
        self.class.map_or(otherwise, Existence::Ended)
    }
}

impl Running {
    /// An attempt of which nothing but its start is known.
    pub(crate) fn fresh(attempt: Attempt, supervisor: ProcessId, now: Moment) -> Self {
        Self {
            attempt,
            supervisor,
            heard: Heard::default(),
            heard_at: now,
            unpaused_at: None,
            is_unknown: false,
            seen_idle: None,
            novelty: Novelty::default(),
            spent: Spent::default(),
        }
    }

    /// Takes in what its supervisor told and answers whether it was news.
    ///
    /// The newest replaces. Beats are numbered, and silence grows between two of them, so these two tell which is newer;
    /// how long it ran may come from a wall clock and does not. The same told again keeps its place on the time line and
    /// renews nothing.
    pub(crate) fn hear(&mut self, heard: Heard, now: Moment) -> bool {
        let (told, known) = ((heard.sequence, heard.silence), (self.heard.sequence, self.heard.silence));
        if told < known {
            return false;
        }
        if heard != self.heard {
            self.heard_at = now;
        }
        self.novelty.hear(heard.sequence, heard.progress);
        self.spent = self.spent.highest(heard.spent);
        self.heard = heard;
        self.is_unknown = false;
        true
    }

    /// When its last beat came, or when it started where there was none.
    pub(crate) fn last_heard_at(&self) -> Moment {
        self.heard_at.before(self.heard.silence)
    }

    fn facts(&self, lease: &Lease, now: Moment) -> Facts {
        if self.is_unknown {
            return Facts::bare(Existence::Unknown);
        }
        let facts = Facts::told(&self.heard, lease).later(now.since(self.heard_at));
        let idle = facts.idle.into_iter().chain(self.seen_idle).min();
        let facts = Facts { idle, repeated: self.novelty.repeated(), ..facts };
        self.unpaused_at.map_or(facts, |moment| facts.listened_for(now.since(moment)))
    }
}

impl State {
    /// The latest attempt; number 0 before the first.
    pub(crate) fn attempt(&self) -> Attempt {
        match *self {
            Self::Pending => Attempt::default(),
            Self::Launching { attempt, .. } => attempt,
            Self::Running(running) | Self::Draining { running, .. } => running.attempt,
            Self::EndingOrphan(lost) | Self::RecordingLost(lost) | Self::Unproven(lost, _) => lost.attempt,
            Self::Queued { past, .. }
            | Self::BackingOff { past, .. }
            | Self::Asking { past, .. }
            | Self::Held(past)
            | Self::Stuck(past)
            | Self::Ended(past) => past.attempt,
        }
    }

    /// The last attempt that ended, where none has begun since.
    pub(crate) fn past(&self) -> Option<Past> {
        match *self {
            Self::Queued { past, .. }
            | Self::BackingOff { past, .. }
            | Self::Asking { past, .. }
            | Self::Held(past)
            | Self::Stuck(past)
            | Self::Ended(past) => Some(past),
            Self::Pending
            | Self::Launching { .. }
            | Self::Running(_)
            | Self::Draining { .. }
            | Self::EndingOrphan(_)
            | Self::RecordingLost(_)
            | Self::Unproven(..) => None,
        }
    }

    /// The attempt that runs, if it does.
    pub(crate) fn running(&self) -> Option<&Running> {
        match self {
            Self::Running(running) | Self::Draining { running, .. } => Some(running),
            Self::Pending
            | Self::Queued { .. }
            | Self::Launching { .. }
            | Self::EndingOrphan(_)
            | Self::RecordingLost(_)
            | Self::BackingOff { .. }
            | Self::Asking { .. }
            | Self::Held(_)
            | Self::Unproven(..)
            | Self::Stuck(_)
            | Self::Ended(_) => None,
        }
    }

    /// The phase, as it is without a pause.
    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Pending => Phase::Pending,
            Self::Queued { .. } => Phase::Queued,
            Self::Launching { .. } => Phase::Launching,
            Self::Running(_) => Phase::Running,
            Self::Draining { .. } | Self::EndingOrphan(_) | Self::RecordingLost(_) => Phase::Draining,
            Self::BackingOff { .. } | Self::Asking { .. } => Phase::BackingOff,
            Self::Held(_) | Self::Unproven(..) => Phase::Held,
            Self::Stuck(_) => Phase::Stuck,
            Self::Ended(_) => Phase::Ended,
        }
    }

    /// Whether something of its latest attempt may live, or is being started: also where a launch that was refused may have
    /// come further than was told.
    pub(crate) fn may_live(&self) -> bool {
        match self {
            Self::Launching { .. }
            | Self::Running(_)
            | Self::Draining { .. }
            | Self::EndingOrphan(_)
            | Self::RecordingLost(_)
            | Self::BackingOff { then: Then::Launch { may_live: true, .. }, .. }
            | Self::Unproven(..) => true,
            Self::Pending
            | Self::Queued { .. }
            | Self::BackingOff { then: Then::Ask { .. } | Then::Launch { may_live: false, .. }, .. }
            | Self::Asking { .. }
            | Self::Held(_)
            | Self::Stuck(_)
            | Self::Ended(_) => false,
        }
    }

    /// What is known of the latest attempt.
    pub(crate) fn facts(&self, lease: &Lease, now: Moment) -> Facts {
        match self {
            Self::Pending => Facts::bare(Existence::NotStarted),
            Self::Launching { since, .. } => Facts::bare(Existence::Launching).later(now.since(*since)),
            Self::Running(running) | Self::Draining { running, .. } => running.facts(lease, now),
            Self::EndingOrphan(_) | Self::Unproven(_, Doubt::Orphan | Doubt::Survivors) => {
                Facts::bare(Existence::Orphaned)
            }
            Self::RecordingLost(_) => Facts::bare(Existence::Gone),
            Self::Unproven(_, Doubt::Unknown) => Facts::bare(Existence::Unknown),
            Self::Queued { past, .. } | Self::BackingOff { past, .. } | Self::Asking { past, .. } => {
                Facts::bare(past.existence(Existence::NotStarted))
            }
            // A job that could never be launched has failed, and one that was never to be launched is stopped.
            Self::Held(past) | Self::Stuck(past) => Facts::bare(past.existence(Existence::Ended(Class::Failed))),
            Self::Ended(past) => Facts::bare(past.existence(Existence::Ended(Class::Stopped))),
        }
    }
}
