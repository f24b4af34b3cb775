//! From a document to the settings in force: defaults filled in, names looked up, contradictions found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use latido_policy::SLOTS_MAX;
use latido_protocol::files::LogLimits;
use latido_protocol::{CountLimit, Redaction, SubjectName};

use super::budget::BudgetTable;
use super::document::{AgentTable, Document, JobTable, PolicyTable, ResumeTable};
use super::group::group;
use super::launch::{LaunchTable, OnEndTable};
use super::model::{
    AgentSettings, ConfiguredJob, DEFAULT_POLICY, DEFAULT_STRATEGY, Overrides, Policy, Settings, TTL_INTERVALS,
};
use super::nearest::nearest;
use super::policy::{check_variable, contradictions, interval_for};
use super::read::{Places, Reading, read};
use super::text::Text;
use super::watched::{CheckTable, Fault, ProcessTable};
use super::{Problem, SettingsError};

mod plugins;

/// The plugins inside the binary, by the kind that each is.
const BUILTIN_SINKS: [&str; 3] = ["sqlite", "jsonl", "webhook"];
const BUILTIN_RULES: [&str; 3] = ["liveness", "threshold", "anomaly"];
const BUILTIN_STRATEGIES: [&str; 1] = ["script"];

/// Settings from the text of a config.
pub(super) fn settings(file: &Path, text: &str) -> Result<Settings, SettingsError> {
    let Reading { document, places, mut problems } = read(file, text);
    // What could not be read is not there: looking for contradictions would find faults that are none.
    if problems.is_empty() {
        let mut check =
            Check { places: &places, base: file.parent().unwrap_or(Path::new("")), problems, warnings: vec![] };
        let settings = check.settings(file, document);
        problems = check.problems;
        if problems.is_empty() {
            return Ok(settings);
        }
    }
    Err(SettingsError::Faults { file: file.to_owned(), problems })
}

struct Check<'r> {
    places: &'r Places,
    base: &'r Path,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Check<'_> {
    fn refuse(&mut self, key: &str, what: impl Into<String>, hint: Option<String>) {
        self.problems.push(self.places.problem(key, what.into(), hint));
    }

    fn settings(&mut self, file: &Path, document: Document) -> Settings {
        let default = Settings::default();
        let policies = self.policies(&document.policy);
        let sinks = document.sink.map_or(default.sinks, |sinks| {
            sinks.into_iter().enumerate().map(|(index, sink)| self.sink(index, sink)).collect()
        });
        let rules = document.rule.map_or(default.rules, |rules| self.plugins("rule", rules, &BUILTIN_RULES));
        let strategies = document
            .strategy
            .map_or(default.strategies, |strategies| self.plugins("strategy", strategies, &BUILTIN_STRATEGIES));
        let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
        let (alerts, refused) = document.alerts.unwrap_or_default().decide(&names);
        for (key, why) in refused {
            self.refuse(&key, why, None);
        }
        let mut settings = Settings {
            file: Some(file.to_owned()),
            agent: self.agent(document.agent.unwrap_or_default()),
            policies,
            sinks,
            rules,
            strategies,
            slots: self.slots(document.slots),
            alerts,
            jobs: BTreeMap::new(),
            groups: BTreeMap::new(),
            checks: BTreeMap::new(),
            processes: BTreeMap::new(),
            warnings: Vec::new(),
        };
        self.refuse_doubles(&settings);
        for (name, job) in document.job {
            let key = format!("job.{name}");
            match name.parse::<SubjectName>() {
                Ok(name) => {
                    let job = self.job(&key, job, &settings);
                    settings.jobs.insert(name, job);
                }
                Err(error) => self.refuse(&key, error.to_string(), None),
            }
        }
        for (name, table) in document.group {
            let key = format!("group.{name}");
            match (name.parse::<SubjectName>(), group(&table)) {
                (Ok(name), Ok(group)) => _ = settings.groups.insert(name, group),
                (Err(error), _) => self.refuse(&key, error.to_string(), None),
                (Ok(_), Err(complaint)) => self.refuse(&format!("{key}.{}", complaint.key), complaint.why, None),
            }
        }
        self.watched(document.check, document.process, &mut settings);
        settings.warnings = std::mem::take(&mut self.warnings);
        settings
    }

    fn watched(
        &mut self,
        checks: BTreeMap<String, CheckTable>,
        processes: BTreeMap<String, ProcessTable>,
        settings: &mut Settings,
    ) {
        let base = self.base;
        for (name, table) in checks {
            if let Some((name, check)) = self.subject("check", &name, settings, || table.decide()) {
                settings.checks.insert(name, check);
            }
        }
        for (name, table) in processes {
            if let Some((name, process)) = self.subject("process", &name, settings, || table.decide(base)) {
                settings.processes.insert(name, process);
            }
        }
    }

    /// One subject that is only watched, under a name that no other has.
    fn subject<T>(
        &mut self,
        kind: &str,
        name: &str,
        settings: &Settings,
        decide: impl FnOnce() -> Result<T, Fault>,
    ) -> Option<(SubjectName, T)> {
        let key = format!("{kind}.{name}");
        let name = match name.parse::<SubjectName>() {
            Ok(name) => name,
            Err(error) => {
                self.refuse(&key, error.to_string(), None);
                return None;
            }
        };
        let is_taken = settings.jobs.contains_key(&name) || settings.checks.contains_key(&name);
        if is_taken {
            self.refuse(
                &key,
                "another subject has this name",
                Some("subjects of all kinds share their names".to_owned()),
            );
            return None;
        }
        match decide() {
            Ok(decided) => Some((name, decided)),
            Err((below, why, hint)) => {
                self.refuse(format!("{key}.{below}").trim_end_matches('.'), why, hint);
                None
            }
        }
    }

    fn agent(&mut self, table: AgentTable) -> AgentSettings {
        let default = AgentSettings::default();
        if table.state_dir.as_ref().is_some_and(|path| !path.is_absolute()) {
            self.refuse("agent.state_dir", "it is not an absolute path", None);
        }
        let history_every = table.history_every.map_or(default.history_every, |text| text.0);
        let presence_every = table.presence_every.map_or(default.presence_every, |text| text.0);
        for (key, span) in [("agent.history_every", history_every), ("agent.presence_every", presence_every)] {
            if span.0.is_zero() {
                self.refuse(key, "0s would write without end", None);
            }
        }
        let entries_max = table.journal.unwrap_or_default().entries_max.unwrap_or(default.journal_entries_max);
        if entries_max == 0 {
            self.refuse(
                "agent.journal.entries_max",
                "a journal of no entries feeds no sink; 100000 is the default",
                None,
            );
        }
        let blackout = table.blackout.unwrap_or_default();
        if blackout.share_percent.is_some_and(|share| !(1..=100).contains(&share)) {
            self.refuse("agent.blackout.share_percent", "a share lies between 1 and 100", None);
        }
        let log = table.log.unwrap_or_default();
        let size_max = log.size_max.map_or(default.log.size_max, |size| size.0.0);
        if size_max < LOG_SIZE_MIN {
            self.refuse("agent.log.size_max", "a log is at least 64KiB, so that a rotation keeps whole lines", None);
        }
        let (recording, refused) = table.recording.unwrap_or_default().decide();
        if let Some(why) = refused {
            self.refuse("agent.recording.size_max", why, None);
        }
        AgentSettings {
            state_dir: table.state_dir,
            history_every,
            presence_every,
            journal_entries_max: entries_max,
            log: LogLimits {
                size_max,
                files_max: log.files_max.map_or(default.log.files_max, |count| count.get()),
                carriage_returns: log.carriage_returns.map_or(default.log.carriage_returns, |text| text.0),
            },
            resumes_at_once: table.resumes_at_once.unwrap_or(default.resumes_at_once),
            resume_every: table.resume_every.map_or(default.resume_every, |text| text.0),
            blackout_share_percent: blackout.share_percent.unwrap_or(default.blackout_share_percent),
            blackout_count_min: blackout.count_min.unwrap_or(default.blackout_count_min),
            reload: table.reload.map_or(default.reload, |text| text.0),
            recording,
            redaction: table.redact.map_or(default.redaction, Redaction::new),
        }
    }

    fn slots(&mut self, table: BTreeMap<String, Text<CountLimit>>) -> BTreeMap<String, CountLimit> {
        for name in table.keys() {
            self.check_name(&format!("slots.{name}"), name);
        }
        table.into_iter().map(|(name, running_max)| (name, running_max.0)).collect()
    }

    /// `default` first, since the others begin with it.
    fn policies(&mut self, tables: &BTreeMap<String, PolicyTable>) -> BTreeMap<String, Policy> {
        let built_in = Policy::default();
        let default = match tables.get(DEFAULT_POLICY) {
            Some(table) => self.policy(DEFAULT_POLICY, table, &built_in),
            None => built_in,
        };
        let mut policies = BTreeMap::new();
        for (name, table) in tables.iter().filter(|(name, _)| *name != DEFAULT_POLICY) {
            self.check_name(&format!("policy.{name}"), name);
            policies.insert(name.clone(), self.policy(name, table, &default));
        }
        policies.insert(DEFAULT_POLICY.to_owned(), default);
        policies
    }

    fn policy(&mut self, name: &str, table: &PolicyTable, base: &Policy) -> Policy {
        let overrides = Overrides {
            strategy: None,
            // A policy says itself which beats count: a ttl in it implies nothing.
            beats: Some(table.beats.map_or(base.beats, |text| text.0)),
            interval: table.interval.map(|text| text.0).or(table.ttl.map(|ttl| interval_for(ttl.0))),
            ttl: table.ttl.map(|text| text.0),
            hung_after: table.hung_after.map(|text| text.0),
            start_within: table.start_within.map(|text| text.0),
            run_for: table.run_for.map(|text| text.0),
            looping_after: table.looping_after.map(|text| text.0),
            first_output_within: table.first_output_within.map(|text| text.0),
            excuse_max: table.excuse_max.map(|text| text.0),
            linger: table.linger.map(|text| text.0),
            launch: table.launch.as_ref().map(LaunchTable::overrides).unwrap_or_default(),
            on_end: table.on_end.as_ref().map(OnEndTable::decide),
            ..resume_overrides(table.resume.as_ref())
        };
        let mut policy = base.with(&overrides);
        policy.orphans = table.orphans.map_or(base.orphans, |text| text.0);
        policy.grace = table.grace.map_or(base.grace, |text| text.0);
        self.refuse_contradictions(&format!("policy.{name}"), &policy);
        if policy.interval < policy.ttl && policy.ttl.0 < policy.interval.0.saturating_mul(TTL_INTERVALS) {
            let what = format!(
                "ttl {} is less than {TTL_INTERVALS} times interval {}: one beat lost on a busy host makes it stale",
                policy.ttl, policy.interval
            );
            self.warnings.push(self.places.problem(&format!("policy.{name}.ttl"), what, None));
        }
        policy
    }

    fn refuse_contradictions(&mut self, path: &str, policy: &Policy) {
        for complaint in contradictions(policy) {
            self.refuse(&format!("{path}.{}", complaint.key), complaint.why, None);
        }
    }

    fn check_name(&mut self, key: &str, name: &str) {
        if let Err(error) = name.parse::<SubjectName>() {
            self.refuse(key, error.to_string(), None);
        }
    }

    fn refuse_doubles(&mut self, settings: &Settings) {
        let mut seen: BTreeMap<&str, String> = BTreeMap::new();
        let kinds = [
            ("sink", settings.sinks.iter().map(|sink| &sink.plugin).collect::<Vec<_>>()),
            ("rule", settings.rules.iter().collect()),
            ("strategy", settings.strategies.iter().collect()),
        ];
        for (kind, plugins) in kinds {
            for (index, plugin) in plugins.into_iter().enumerate() {
                let key = format!("{kind}.{index}.name");
                if let Some(other) = seen.get(plugin.name.as_str()) {
                    let what = format!("`{}` is the name of {other} already", plugin.name);
                    self.refuse(&key, what, Some("no two plugins have the same name".to_owned()));
                }
                seen.insert(&plugin.name, format!("a {kind}"));
            }
        }
    }

    fn job(&mut self, path: &str, table: JobTable, settings: &Settings) -> ConfiguredJob {
        if table.command.first().is_none_or(String::is_empty) {
            self.refuse(&format!("{path}.command"), "it names no program", None);
        }
        for name in table.environment.keys() {
            if let Err(error) = check_variable(name) {
                self.refuse(&format!("{path}.environment.{name}"), error.to_string(), None);
            }
        }
        let policy = table.policy.unwrap_or_else(|| DEFAULT_POLICY.to_owned());
        let overrides = Overrides {
            strategy: table.strategy,
            run_for: table.run_for.map(|text| text.0),
            linger: table.linger.map(|text| text.0),
            launch: table.launch.as_ref().map(LaunchTable::overrides).unwrap_or_default(),
            on_end: table.on_end.as_ref().map(OnEndTable::decide),
            slots: table.slots,
            ..resume_overrides(table.resume.as_ref())
        };
        let known = settings.strategies.iter().map(|strategy| strategy.name.as_str()).collect::<Vec<_>>();
        let strategy = overrides.strategy.as_deref().unwrap_or(DEFAULT_STRATEGY);
        self.check_reference(&format!("{path}.strategy"), "strategy", strategy, &known);
        let known = settings.policies.keys().map(String::as_str).collect::<Vec<_>>();
        self.check_reference(&format!("{path}.policy"), "policy", &policy, &known);
        let known = settings.slots.keys().map(String::as_str).collect::<Vec<_>>();
        for slot in &overrides.slots {
            self.check_reference(&format!("{path}.slots"), "slot", slot, &known);
        }
        if overrides.slots.len() > SLOTS_MAX {
            let what = format!("a job counts against {SLOTS_MAX} slots at most");
            self.refuse(&format!("{path}.slots"), what, None);
        }
        if let Some(base) = settings.policies.get(&policy) {
            let decided = base.with(&overrides);
            // What the policy itself contradicts has been told at the policy.
            let own = contradictions(&decided).into_iter().filter(|found| !contradictions(base).contains(found));
            for complaint in own.collect::<Vec<_>>() {
                self.refuse(&format!("{path}.{}", complaint.key), complaint.why, None);
            }
        }
        ConfiguredJob {
            command: table.command,
            directory: table.directory.map(|directory| absolute(self.base, &directory)),
            environment: table.environment,
            policy,
            overrides,
            start: table.start.map(|text| text.0).unwrap_or_default(),
        }
    }

    fn check_reference(&mut self, key: &str, kind: &str, name: &str, known: &[&str]) {
        if !known.contains(&name) {
            let near = nearest(name, known).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("there are: {}", known.join(", ")));
            self.refuse(key, format!("there is no {kind} `{name}`"), Some(hint));
        }
    }
}

/// A rotation keeps whole lines where it can, and the longest line of a usual log is well below this.
const LOG_SIZE_MIN: u64 = 64 * 1024;
/// The stack of a guest alone takes this much.
const PLUGIN_MEMORY_MIN: u64 = 1024 * 1024;

fn absolute(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

fn resume_overrides(table: Option<&ResumeTable>) -> Overrides {
    let Some(table) = table else { return Overrides::default() };
    Overrides {
        max_attempts: table.max_attempts.map(|text| text.0),
        max_pickups: table.max_pickups,
        resume_on: table.on.as_ref().map(|on| on.iter().map(|text| text.0).collect()),
        backoff: table.backoff.map(|text| text.0),
        max_attempts_without_progress: table.max_attempts_without_progress.map(|text| text.0),
        max_identical_deaths: table.max_identical_deaths.map(|text| text.0),
        wall_time_max: table.wall_time_max.map(|text| text.0),
        spare_busy: table.spare_busy,
        budget: table.budget.map(BudgetTable::overrides).unwrap_or_default(),
        ..Overrides::default()
    }
}
