//! The settings in force, written as a config that reads back as the same.

use std::num::NonZeroU32;

use latido_policy::GroupSettings;
use latido_protocol::Span;

use super::alerts::AlertsTable;
use super::budget::BudgetTable;
use super::document::{
    AgentTable, BlackoutTable, Document, GrantTable, GroupTable, JobTable, JournalTable, LimitsTable, LogTable,
    PluginTable, PolicyTable, ResumeTable, SinkTable, WorkspaceTable,
};
use super::http::HttpSettings;
use super::launch::{LaunchTable, OnEndTable};
use super::model::{ConfiguredJob, PluginSettings, Policy, Settings};
use super::recording::RecordingTable;
use super::text::{Size, Text};

impl Settings {
    /// The settings as a config, with every default written out.
    ///
    /// # Errors
    /// When a plugin's own settings hold what TOML cannot write.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(&self.document())
    }

    fn document(&self) -> Document {
        Document {
            agent: Some(AgentTable {
                state_dir: self.agent.state_dir.clone(),
                history_every: Some(Text(self.agent.history_every)),
                presence_every: Some(Text(self.agent.presence_every)),
                journal: Some(JournalTable { entries_max: Some(self.agent.journal_entries_max) }),
                log: Some(LogTable {
                    size_max: Some(Text(Size(self.agent.log.size_max))),
                    files_max: NonZeroU32::new(self.agent.log.files_max),
                    carriage_returns: Some(Text(self.agent.log.carriage_returns)),
                }),
                resumes_at_once: Some(self.agent.resumes_at_once),
                resume_every: Some(Text(self.agent.resume_every)),
                blackout: Some(BlackoutTable {
                    share_percent: Some(self.agent.blackout_share_percent),
                    count_min: Some(self.agent.blackout_count_min),
                }),
                redact: Some(self.agent.redaction.names().to_vec()),
                reload: Some(Text(self.agent.reload)),
                recording: Some(RecordingTable::of(self.agent.recording)),
            }),
            policy: self.policies.iter().map(|(name, policy)| (name.clone(), policy_table(policy))).collect(),
            sink: Some(
                self.sinks
                    .iter()
                    .map(|sink| {
                        let PluginTable { name, source, digest, key, grant, settings, limits } =
                            plugin_table(&sink.plugin);
                        let entries = Some(sink.entries.iter().copied().map(Text).collect());
                        SinkTable { name, source, digest, key, entries, grant, settings, limits }
                    })
                    .collect(),
            ),
            rule: Some(self.rules.iter().map(plugin_table).collect()),
            strategy: Some(self.strategies.iter().map(plugin_table).collect()),
            slots: self.slots.iter().map(|(name, max)| (name.clone(), Text(*max))).collect(),
            alerts: Some(AlertsTable::of(&self.alerts)),
            job: self.jobs.iter().map(|(name, job)| (name.to_string(), job_table(job))).collect(),
            group: self.groups.iter().map(|(name, group)| (name.to_string(), group_table(group))).collect(),
            check: self.checks.iter().map(|(name, check)| (name.to_string(), check.table())).collect(),
            process: self.processes.iter().map(|(name, process)| (name.to_string(), process.table())).collect(),
        }
    }
}

fn policy_table(policy: &Policy) -> PolicyTable {
    PolicyTable {
        beats: Some(Text(policy.beats)),
        interval: Some(Text(policy.interval)),
        ttl: Some(Text(policy.ttl)),
        start_within: Some(Text(policy.start_within)),
        hung_after: Some(Text(policy.hung_after)),
        run_for: Some(Text(policy.run_for)),
        looping_after: Some(Text(policy.looping_after)),
        first_output_within: Some(Text(policy.first_output_within)),
        excuse_max: Some(Text(policy.excuse_max)),
        resume: Some(ResumeTable {
            on: Some(policy.resume.on.iter().copied().map(Text).collect()),
            max_attempts: Some(Text(policy.resume.max_attempts)),
            max_pickups: NonZeroU32::new(policy.resume.max_pickups),
            backoff: Some(Text(policy.resume.backoff)),
            max_attempts_without_progress: Some(Text(policy.resume.max_attempts_without_progress)),
            max_identical_deaths: Some(Text(policy.resume.max_identical_deaths)),
            wall_time_max: Some(Text(policy.resume.wall_time_max)),
            spare_busy: Some(policy.resume.spare_busy),
            budget: Some(BudgetTable::of(policy.resume.budget)),
        }),
        orphans: Some(Text(policy.orphans)),
        grace: Some(Text(policy.grace)),
        linger: Some(Text(policy.linger)),
        launch: Some(LaunchTable::of(&policy.launch)),
        on_end: policy.on_end.as_ref().map(OnEndTable::of),
    }
}

fn plugin_table(plugin: &PluginSettings) -> PluginTable {
    let grant = GrantTable {
        sql: plugin.grant.sql.clone(),
        files: plugin.grant.files.clone(),
        http: plugin.grant.http.as_ref().map(HttpSettings::table),
        workspace: plugin
            .grant
            .workspace
            .map(|grant| WorkspaceTable { read_max: Some(Text(Size(grant.read_max.into()))) }),
    };
    PluginTable {
        name: plugin.name.clone(),
        source: Text(plugin.source.clone()),
        digest: plugin.trust.digest.map(Text),
        key: plugin.trust.key.clone().map(Text),
        grant: (grant != GrantTable::default()).then_some(grant),
        settings: Some(plugin.settings.clone()),
        limits: Some(LimitsTable {
            memory_max: Some(Text(Size(plugin.limits.memory_max))),
            cpu_for: Some(Text(plugin.limits.cpu_for)),
            call_for: Some(Text(plugin.limits.call_for)),
            batch_max: Some(plugin.limits.batch_max),
        }),
    }
}

fn job_table(job: &ConfiguredJob) -> JobTable {
    let own = &job.overrides;
    let resume = ResumeTable {
        on: own.resume_on.as_ref().map(|on| on.iter().copied().map(Text).collect()),
        max_attempts: own.max_attempts.map(Text),
        max_pickups: own.max_pickups,
        backoff: own.backoff.map(Text),
        max_attempts_without_progress: own.max_attempts_without_progress.map(Text),
        max_identical_deaths: own.max_identical_deaths.map(Text),
        wall_time_max: own.wall_time_max.map(Text),
        spare_busy: own.spare_busy,
        budget: own.budget.table(),
    };
    JobTable {
        command: job.command.clone(),
        directory: job.directory.clone(),
        environment: job.environment.clone(),
        policy: Some(job.policy.clone()),
        strategy: own.strategy.clone(),
        resume: (resume != ResumeTable::default()).then_some(resume),
        run_for: own.run_for.map(Text),
        linger: own.linger.map(Text),
        launch: own.launch.table(),
        on_end: own.on_end.as_ref().map(OnEndTable::of),
        slots: own.slots.clone(),
        start: Some(Text(job.start)),
    }
}

fn group_table(group: &GroupSettings) -> GroupTable {
    GroupTable {
        capacity: group.capacity,
        claims_per_worker: Some(group.claims_max),
        max_pickups: Some(group.max_pickups),
        interval: Some(Text(Span(group.lease.interval()))),
        missed: None,
        ttl: Some(Text(Span(group.lease.ttl()))),
        start_within: Some(Text(Span(group.lease.start_within()))),
    }
}
