//! Decides what the agent does next, from what it has been told.
//!
//! This crate has no clock, no files, no processes, no randomness and no names of its own: it is `no_std`, so that
//! they do not exist here. Callers pass `now`; they carry out every [`Action`] and tell the outcome as an [`Event`].
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod action;
mod backoff;
mod claim;
mod deadlines;
mod event;
mod group;
mod job;
mod model;
mod moment;
mod policy;
mod reason;
mod registry;
mod state;
mod transitions;
mod verdict;
mod view;
mod wheel;
mod worker;

pub use action::Action;
pub use claim::{AfterRelease, Claim, ReleasedClaim, Target, TargetId, TargetState};
pub use event::{Ending, Event, Found, FoundAttempt, FoundState, Heard, LaunchFailure, Life, Proposal, Recorded};
pub use group::{GroupId, GroupSettings, Limit};
pub use model::{
    Attempt, AttemptNumber, BeatSource, Class, Epoch, Fingerprint, JobSettings, Lease, Orphans, Phase, ProcessId,
    ResumeOn, ResumePolicy, SubjectId, Verdict, Want,
};
pub use moment::Moment;
pub use policy::Policy;
pub use reason::{Reason, StopReason};
pub use registry::{
    ClaimList, FoundWorker, GroupView, Refusal, Registry, RegistryAction, RegistryAnswer, RegistryEvent, Speaker,
    Sweep, Ticket, WORKERS_MAX, WorkerView,
};
pub use verdict::{Existence, Facts, Judgement, judge, next_change};
pub use view::{NextStep, SubjectView};
pub use worker::{Advice, Death, Standing, WorkerId, WorkerLease, WorkerReport};
