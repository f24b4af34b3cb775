//! Values of options as they are typed.

use std::num::NonZeroU32;
use std::str::FromStr;

use clap::ValueEnum;
use latido::settings::Overrides;
use latido_protocol::CountLimit;
use latido_protocol::files::{Backoff, Beats, ResumeOn};

use super::RunArgs;

impl RunArgs {
    /// What was given on the command line in place of the policy's settings.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            strategy: self.strategy.clone(),
            beats: self.beats.map(Beats::from),
            interval: self.interval,
            ttl: self.ttl,
            hung_after: self.hung_after,
            start_within: self.start_within,
            run_for: self.run_for,
            looping_after: self.looping_after,
            first_output_within: self.first_output_within,
            slots: self.slots.clone(),
            max_attempts: self.max_attempts,
            resume_on: self.resume_on.as_ref().map(|on| on.iter().map(|on| ResumeOn::from(*on)).collect()),
            backoff: self.backoff.map(|backoff| backoff.0),
            budget: self.budget.overrides(),
            linger: self.linger,
            launch: self.launch.overrides(),
            on_end: self.on_end.clone().map(|program| latido::settings::on_end(vec![program])),
            ..Overrides::default()
        }
    }
}

/// [`Beats`] as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BeatsArg {
    /// presence until the first own beat, own beats from then on
    Auto,
    /// own beats from the start
    Own,
    /// presence alone
    Presence,
}

impl From<BeatsArg> for Beats {
    fn from(beats: BeatsArg) -> Self {
        match beats {
            BeatsArg::Auto => Self::Auto,
            BeatsArg::Own => Self::Own,
            BeatsArg::Presence => Self::Presence,
        }
    }
}

/// [`ResumeOn`] as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResumeOnArg {
    /// killed from outside, supervisor or machine gone
    Lost,
    /// its own fault
    Failed,
    /// alive, and its lease ran out: it is ended first
    Stale,
    /// alive, and without new progress: it is ended first
    Hung,
    /// a limit of its own
    Limit,
    /// a good end of what is to run on
    Completed,
}

impl From<ResumeOnArg> for ResumeOn {
    fn from(on: ResumeOnArg) -> Self {
        match on {
            ResumeOnArg::Lost => Self::Lost,
            ResumeOnArg::Failed => Self::Failed,
            ResumeOnArg::Stale => Self::Stale,
            ResumeOnArg::Hung => Self::Hung,
            ResumeOnArg::Limit => Self::Limit,
            ResumeOnArg::Completed => Self::Completed,
        }
    }
}

/// `D..D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackoffArg(pub(crate) Backoff);

impl FromStr for BackoffArg {
    type Err = latido::settings::BackoffError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        latido::settings::parse_backoff(text).map(Self)
    }
}

/// `K=V`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    /// before the first `=`
    pub(crate) name: String,
    /// after it
    pub(crate) value: String,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("it has no `=`; write NAME=VALUE")?;
        latido::settings::check_variable(name).map_err(|error| error.to_string())?;
        Ok(Self { name: name.to_owned(), value: value.to_owned() })
    }
}

pub(super) fn attempts_max(text: &str) -> Result<CountLimit, String> {
    match text.parse() {
        Ok(CountLimit::At(0)) => {
            Err("0 attempts would never run it; the first attempt is counted, so 1 means no resume".to_owned())
        }
        Ok(limit) => Ok(limit),
        Err(_) => Err("not a number of attempts such as 5, or `none`".to_owned()),
    }
}

pub(super) fn attempt_number(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "attempts are counted from 1".to_owned())
}
