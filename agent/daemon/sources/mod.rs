//! What the agent learns from: supervisors, the jobs' folders and clients. Sources translate, they never decide.

pub(crate) mod activity;
pub(crate) mod attempt;
pub(crate) mod control;
pub(crate) mod database;
pub(crate) mod jobs;
pub(crate) mod kept_signals;
mod processes;
pub(crate) mod saved;
mod second_look;
pub(crate) mod watched;
