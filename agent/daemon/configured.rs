//! Jobs of the config: made once, when there is no job of their name.

use std::path::PathBuf;

use latido_protocol::chain;
use latido_protocol::layout::StateDir;

use crate::actions::BY;
use crate::clock;
use crate::jobs::make::{self, MakeError, NewJob};
use crate::settings::{Settings, StartMode};

/// The jobs that an agent launches by itself, and why one cannot be made, in words.
pub(crate) fn jobs(settings: &Settings) -> Vec<Result<NewJob, String>> {
    let automatic = settings.jobs.iter().filter(|(_, job)| job.start == StartMode::Auto);
    automatic
        .map(|(name, job)| {
            let decided = settings.configured_job_settings(job).map_err(|error| chain(&error))?;
            let directory = job.directory.clone().or_else(|| std::env::current_dir().ok());
            let mut environment = make::kept_environment(std::env::vars_os());
            environment.extend(job.environment.clone());
            Ok(NewJob {
                name: name.clone(),
                command: job.command.clone(),
                directory: directory.unwrap_or_else(|| PathBuf::from("/")),
                environment,
                settings: decided,
                by: BY.to_owned(),
            })
        })
        .collect()
}

/// Makes those that are absent and returns what went wrong, in words. A job whose folder is there is left as it is,
/// whatever became of it.
pub(crate) fn make_absent(state: &StateDir, jobs: Vec<Result<NewJob, String>>) -> Vec<String> {
    let made = jobs.into_iter().map(|job| match make::make(state, &job?, clock::wall()) {
        // The lock goes with the answer; the look that follows finds a job without an attempt, and launches it.
        Ok(_) | Err(MakeError::NameInUse { .. }) => Ok(()),
        Err(error) => Err(chain(&error)),
    });
    made.filter_map(Result::err).collect()
}
