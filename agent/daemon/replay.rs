//! Other settings for a replay: what a config decides for what was recorded.

use std::collections::BTreeSet;

use latido_driver::recording::DriverSettings;
use latido_driver::replay::Conditions;
use latido_driver::{Fact, WatchFact};
use latido_protocol::files::{JobFile, JobSettings};

use crate::settings::{Policy, Settings};

/// A config in the place of the one that was in force.
///
/// A job that it names is judged as it says. Any other is judged by its policy of the same name, without what a command
/// line once said in place of that; strategy and slots stay. Where there is no such policy the job keeps its settings.
#[derive(Debug)]
pub struct UnderSettings {
    settings: Settings,
    kept: BTreeSet<String>,
}

impl UnderSettings {
    /// Takes the config.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, kept: BTreeSet::new() }
    }

    /// Subjects that the config says nothing about, each with what is missing: they keep the settings they had.
    #[must_use]
    pub fn kept(&self) -> &BTreeSet<String> {
        &self.kept
    }

    fn job(&mut self, job: &mut JobFile) {
        let (name, policy) = (&job.name, job.settings.policy.clone());
        let configured = self.settings.jobs.get(name).map(|job| self.settings.configured_job_settings(job));
        if let Some(Ok(settings)) = configured {
            job.settings = settings;
        } else if let Some(policy) = self.settings.policies.get(&policy) {
            job.settings = judged_by(policy, job.settings.clone());
        } else {
            self.kept.insert(format!("job {name}: there is neither [job.{name}] nor [policy.{policy}]"));
        }
    }

    fn watched(&mut self, fact: &mut WatchFact) {
        let (kind, name) = match fact {
            WatchFact::CheckDefined(definition) => match self.settings.checks.get(&definition.name) {
                Some(check) => {
                    **definition = check.definition(&definition.name);
                    return;
                }
                None => ("check", definition.name.clone()),
            },
            WatchFact::ProcessDefined(definition) => match self.settings.processes.get(&definition.name) {
                Some(process) => {
                    // Looks were recorded for what named it then.
                    definition.start_within = process.start_within.0;
                    return;
                }
                None => ("process", definition.name.clone()),
            },
            WatchFact::Signaled(_)
            | WatchFact::Looked { .. }
            | WatchFact::PauseWanted { .. }
            | WatchFact::UnpauseWanted { .. } => return,
        };
        self.kept.insert(format!("{kind} {name}: there is no [{kind}.{name}]"));
    }
}

impl Conditions for UnderSettings {
    fn settings(&mut self, _recorded: DriverSettings) -> DriverSettings {
        self.settings.driver_settings()
    }

    fn fact(&mut self, mut recorded: Fact) -> Fact {
        match &mut recorded {
            Fact::JobFound(found) => self.job(&mut found.job),
            Fact::Watched(fact) => self.watched(fact),
            Fact::JobRemoved { .. }
            | Fact::WantChanged { .. }
            | Fact::AttemptStarted { .. }
            | Fact::LaunchRefused { .. }
            | Fact::Heard { .. }
            | Fact::ActivitySeen { .. }
            | Fact::SupervisorGone { .. }
            | Fact::AttemptEnded { .. }
            | Fact::OrphanEnded { .. }
            | Fact::StrategyAnswered { .. }
            | Fact::LookFailed { .. }
            | Fact::RuleAnswered { .. }
            | Fact::Asked { .. }
            | Fact::GroupLockSeen { .. }
            | Fact::RuleFailed { .. }
            | Fact::Noted { .. } => {}
        }
        recorded
    }
}

fn judged_by(policy: &Policy, settings: JobSettings) -> JobSettings {
    JobSettings {
        beats: policy.beats,
        interval: policy.interval,
        ttl: policy.ttl,
        start_within: policy.start_within,
        hung_after: policy.hung_after,
        run_for: policy.run_for,
        looping_after: policy.looping_after,
        first_output_within: policy.first_output_within,
        excuse_max: policy.excuse_max,
        resume: policy.resume.clone(),
        orphans: policy.orphans,
        grace: policy.grace,
        ..settings
    }
}
