//! Decides what the agent does next, from what it has been told.
//!
//! This crate has no clock, no files, no processes, no randomness and no names of its own: it is `no_std`, so that
//! they do not exist here. Callers pass `now`; they carry out every [`Action`] and tell the outcome as an [`Event`].
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod action;
mod backoff;
mod blackout;
mod budget;
mod deadlines;
mod event;
mod history;
mod job;
mod limit;
mod model;
mod moment;
mod novelty;
mod pacing;
mod policy;
mod queue;
mod reason;
mod slots;
mod state;
mod transitions;
mod verdict;
mod view;

pub use action::Action;
pub use blackout::{BlackoutCause, BlackoutChange, BlackoutSettings};
pub use budget::{Budget, Counter, Spent};
pub use event::{
    Ending, Event, Excuse, Found, FoundAttempt, FoundState, Heard, LaunchFailure, Life, Proposal, Recorded,
};
pub use history::History;
pub use limit::Limit;
pub use model::{
    Attempt, AttemptNumber, BeatSource, Class, Epoch, Fingerprint, JobSettings, Lease, Orphans, Phase, ProcessId,
    ResumeOn, ResumePolicy, SubjectId, Verdict, Want,
};
pub use moment::Moment;
pub use pacing::Pacing;
pub use policy::Policy;
pub use reason::{Reason, StopReason};
pub use slots::{SLOTS_MAX, SlotId, SlotSet};
pub use verdict::{Existence, Facts, Judgement, judge, next_change};
pub use view::{NextStep, SubjectView};
