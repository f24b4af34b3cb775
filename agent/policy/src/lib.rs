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
mod blackout;
mod budget;
mod check;
mod claim;
mod deadlines;
mod event;
mod found;
mod group;
mod history;
mod job;
mod limit;
mod line;
mod machine;
mod mass;
mod minimum;
mod model;
mod moment;
mod mute;
mod novelty;
mod pacing;
mod policy;
mod process;
mod queue;
mod reason;
mod registry;
mod run;
mod settle;
mod sighting;
mod signal;
mod silence;
mod slots;
mod state;
mod telling;
mod transitions;
mod verdict;
mod view;
mod watched;
mod weighing;
mod wheel;
mod words;
mod worker;

pub use action::{Action, Ground};
pub use alert_event::{AlertAction, AlertEvent, Resolution, SilenceEnd, Telling};
pub use alert_model::{
    About, AlertKey, AlertRecord, AlertSettings, AlertView, Condition, Confirm, Mute, RuleName, Severity, Silence,
    SilenceId, SilenceScope, Standing,
};
pub use blackout::{BlackoutCause, BlackoutChange, BlackoutSettings};
pub use budget::{Budget, Counter, Spent};
pub use claim::{AfterRelease, Claim, ReleasedClaim, Target, TargetId, TargetState};
pub use event::{
    Ending, Event, Excuse, Found, FoundAttempt, FoundState, Heard, LaunchFailure, Life, Missed, Proposal, Recorded,
};
pub use group::{ClaimLimit, GroupId, GroupSettings};
pub use history::{Fruitless, History};
pub use limit::Limit;
pub use model::{
    Attempt, AttemptNumber, BeatSource, Class, Epoch, Fingerprint, JobSettings, Lease, Orphans, Phase, ProcessId,
    ResumeOn, ResumePolicy, SubjectId, Verdict, Want,
};
pub use moment::Moment;
pub use pacing::Pacing;
pub use policy::Policy;
pub use reason::{Reason, StopReason};
pub use registry::{
    ClaimList, FoundWorker, GROUPS_MAX, GroupView, Refusal, Registry, RegistryAction, RegistryAnswer, RegistryEvent,
    Speaker, Sweep, Ticket, WORKERS_MAX, WorkerView,
};
pub use run::{OPEN_RUNS_MAX, OpenRun, Runs};
pub use sighting::{
    Absence, Exit, Naming, ProcessAction, ProcessEvent, ProcessFound, ProcessReason, ProcessSettings, Sighting,
};
pub use signal::{
    CheckAction, CheckEvent, CheckFound, CheckMemory, CheckReason, CheckSchedule, CheckSettings, Expectation, LastRun,
    Signal,
};
pub use slots::{SLOTS_MAX, SlotId, SlotSet};
pub use verdict::{Existence, Facts, Judgement, judge, next_change};
pub use view::{NextStep, SubjectView};
pub use watched::PauseFound;
pub use worker::{Advice, Death, WorkerId, WorkerLease, WorkerReport, WorkerStanding};
