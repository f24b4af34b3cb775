//! Decides what the agent does next, from what it has been told.
//!
//! This crate has no clock, no files, no processes, no randomness and no names of its own: it is `no_std`, so that
//! they do not exist here. Callers pass `now`; they carry out every [`Action`] and tell the outcome as an [`Event`].
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod action;
mod alert;
mod alert_event;
mod alert_input;
mod alert_model;
mod alerts;
mod backoff;
mod deadlines;
mod event;
mod group;
mod job;
mod minimum;
mod model;
mod moment;
mod mute;
mod policy;
mod reason;
mod silence;
mod state;
mod telling;
mod transitions;
mod verdict;
mod view;

pub use action::Action;
pub use alert_event::{AlertAction, AlertEvent, Resolution, SilenceEnd, Telling};
pub use alert_model::{
    About, AlertKey, AlertRecord, AlertSettings, AlertView, Condition, Confirm, Mute, RuleName, Severity, Silence,
    SilenceId, SilenceScope, Standing,
};
pub use event::{Ending, Event, Found, FoundAttempt, FoundState, Heard, LaunchFailure, Life, Proposal, Recorded};
pub use model::{
    Attempt, AttemptNumber, BeatSource, Class, Epoch, Fingerprint, JobSettings, Lease, Orphans, Phase, ProcessId,
    ResumeOn, ResumePolicy, SubjectId, Verdict, Want,
};
pub use moment::Moment;
pub use policy::Policy;
pub use reason::{Reason, StopReason};
pub use verdict::{Existence, Facts, Judgement, judge, next_change};
pub use view::{NextStep, SubjectView};
