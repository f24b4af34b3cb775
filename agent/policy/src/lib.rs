//! Decides what the agent does next, from what it has been told.
//!
//! This crate has no clock, no files, no processes, no randomness and no names of its own: it is `no_std`, so that
//! they do not exist here. Callers pass `now`; they carry out every [`Action`] and tell the outcome as an [`Event`].
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod action;
mod backoff;
mod check;
mod deadlines;
mod event;
mod job;
mod model;
mod moment;
mod policy;
mod process;
mod reason;
mod run;
mod sighting;
mod signal;
mod state;
mod transitions;
mod verdict;
mod view;
mod watched;

pub use action::Action;
pub use event::{Ending, Event, Found, FoundAttempt, FoundState, Heard, LaunchFailure, Life, Proposal, Recorded};
pub use model::{
    Attempt, AttemptNumber, BeatSource, Class, Epoch, Fingerprint, JobSettings, Lease, Orphans, Phase, ProcessId,
    ResumeOn, ResumePolicy, SubjectId, Verdict, Want,
};
pub use moment::Moment;
pub use policy::Policy;
pub use reason::{Reason, StopReason};
pub use run::{OPEN_RUNS_MAX, OpenRun, Runs};
pub use sighting::{
    Absence, Exit, Naming, ProcessAction, ProcessEvent, ProcessFound, ProcessReason, ProcessSettings, Sighting,
};
pub use signal::{
    CheckAction, CheckEvent, CheckFound, CheckMemory, CheckReason, CheckSchedule, CheckSettings, Expectation, LastRun,
    Signal,
};
pub use verdict::{Existence, Facts, Judgement, judge, next_change};
pub use view::{NextStep, SubjectView};
