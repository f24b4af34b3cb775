//! From a policy and what is said in place of it to the settings of a job.

use std::time::Duration;

use latido_driver::AgentLimits;
use latido_driver::recording::DriverSettings;
use latido_policy::SLOTS_MAX;
use latido_protocol::files::{Backoff, Beats, JobSettings, ResumeOn};
use latido_protocol::{CountLimit, Limit, Span};

use super::launch::complaints;
use super::model::{DEFAULT_STRATEGY, INTERVAL_MAX, Overrides, Policy, Settings, TTL_INTERVALS};
use super::nearest::nearest;
use super::{ConfiguredJob, SettingsError};

impl Settings {
    /// Decides everything for one job: what is said in `overrides` goes before what the policy says. An interval or ttl
    /// in `overrides` implies own beats, and an interval that is not given beside a ttl is min(30 s, ttl / 3).
    ///
    /// # Errors
    /// When there is no such policy or strategy, or the values contradict each other.
    pub fn job_settings(&self, policy: &str, overrides: &Overrides) -> Result<JobSettings, SettingsError> {
        let base = self.policies.get(policy).ok_or_else(|| {
            SettingsError::unknown("policy", policy, nearest(policy, self.policies.keys()), self.policies.keys())
        })?;
        let strategy = overrides.strategy.as_deref().unwrap_or(DEFAULT_STRATEGY);
        let strategies = || self.strategies.iter().map(|strategy| &strategy.name);
        if !strategies().any(|name| name == strategy) {
            return Err(SettingsError::unknown("strategy", strategy, nearest(strategy, strategies()), strategies()));
        }
        let decided = base.with(overrides);
        let complaints = contradictions(&decided);
        if !complaints.is_empty() {
            return Err(SettingsError::Contradiction { complaints });
        }
        Ok(JobSettings {
            policy: policy.to_owned(),
            strategy: strategy.to_owned(),
            beats: decided.beats,
            interval: decided.interval,
            ttl: decided.ttl,
            start_within: decided.start_within,
            hung_after: decided.hung_after,
            run_for: decided.run_for,
            looping_after: decided.looping_after,
            first_output_within: decided.first_output_within,
            excuse_max: decided.excuse_max,
            slots: self.slots_of(&overrides.slots)?,
            resume: decided.resume,
            orphans: decided.orphans,
            grace: decided.grace,
            linger: decided.linger,
            log: self.agent.log,
            history_every: self.agent.history_every,
            presence_every: self.agent.presence_every,
            launch: decided.launch,
            on_end: decided.on_end,
        })
    }

    /// Checks that there are these slots.
    fn slots_of(&self, slots: &[String]) -> Result<Vec<String>, SettingsError> {
        let unknown = slots.iter().find(|slot| !self.slots.contains_key(*slot));
        if let Some(slot) = unknown {
            return Err(SettingsError::unknown("slot", slot, nearest(slot, self.slots.keys()), self.slots.keys()));
        }
        if slots.len() > SLOTS_MAX {
            let why = format!("it names {} slots, and a job counts against {SLOTS_MAX} at most", slots.len());
            return Err(SettingsError::Contradiction { complaints: vec![Complaint::new("slots", why)] });
        }
        Ok(slots.to_vec())
    }

    /// What the agent's policy decides by for all jobs together.
    #[must_use]
    pub fn agent_limits(&self) -> AgentLimits {
        AgentLimits {
            resumes_at_once: self.agent.resumes_at_once,
            resume_every: self.agent.resume_every.0,
            blackout_share_percent: self.agent.blackout_share_percent,
            blackout_count_min: self.agent.blackout_count_min,
            slots: self.slots.clone(),
        }
    }

    /// All that is decided for the agent's driver.
    #[must_use]
    pub fn driver_settings(&self) -> DriverSettings {
        DriverSettings {
            history_every: self.agent.history_every.0,
            limits: self.agent_limits(),
            groups: self.groups.clone(),
            alerts: self.alerts.all,
            rules: self.rules.iter().map(|rule| rule.name.clone()).collect(),
            confirms: self.alerts.rules.iter().map(|(rule, confirm)| (rule.clone(), *confirm)).collect(),
        }
    }

    /// Decides everything for a job of the config.
    ///
    /// # Errors
    /// As [`Self::job_settings`].
    pub fn configured_job_settings(&self, job: &ConfiguredJob) -> Result<JobSettings, SettingsError> {
        self.job_settings(&job.policy, &job.overrides)
    }
}

impl Policy {
    /// The same policy with what is said in place of it.
    #[must_use]
    pub fn with(&self, overrides: &Overrides) -> Self {
        let implied = (overrides.interval.is_some() || overrides.ttl.is_some()).then_some(Beats::Own);
        let interval = overrides.interval.or_else(|| overrides.ttl.map(interval_for)).unwrap_or(self.interval);
        let mut policy = self.clone();
        policy.beats = overrides.beats.or(implied).unwrap_or(self.beats);
        policy.interval = interval;
        policy.ttl = overrides.ttl.unwrap_or(self.ttl);
        policy.start_within = overrides.start_within.unwrap_or(self.start_within);
        policy.hung_after = overrides.hung_after.unwrap_or(self.hung_after);
        policy.run_for = overrides.run_for.unwrap_or(self.run_for);
        policy.looping_after = overrides.looping_after.unwrap_or(self.looping_after);
        policy.first_output_within = overrides.first_output_within.unwrap_or(self.first_output_within);
        policy.excuse_max = overrides.excuse_max.unwrap_or(self.excuse_max);
        policy.linger = overrides.linger.unwrap_or(self.linger);
        policy.launch = overrides.launch.over(&self.launch);
        if let Some(on_end) = &overrides.on_end {
            policy.on_end = (!on_end.command.is_empty()).then(|| on_end.clone());
        }
        policy.resume.spare_busy = overrides.spare_busy.unwrap_or(self.resume.spare_busy);
        policy.resume.budget = overrides.budget.over(self.resume.budget);
        policy.resume.wall_time_max = overrides.wall_time_max.unwrap_or(self.resume.wall_time_max);
        if let Some(max) = overrides.max_attempts_without_progress {
            policy.resume.max_attempts_without_progress = max;
        }
        if let Some(on) = &overrides.resume_on {
            policy.resume.on.clone_from(on);
        }
        policy.resume.max_attempts = overrides.max_attempts.unwrap_or(self.resume.max_attempts);
        policy.resume.max_identical_deaths = overrides.max_identical_deaths.unwrap_or(self.resume.max_identical_deaths);
        if let Some(max_pickups) = overrides.max_pickups {
            policy.resume.max_pickups = max_pickups.get();
        }
        if let Some(backoff) = overrides.backoff {
            policy.resume.backoff = backoff;
        }
        policy
    }
}

/// The interval that goes with a ttl when none is given.
pub(super) fn interval_for(ttl: Span) -> Span {
    Span(INTERVAL_MAX.0.min(ttl.0 / TTL_INTERVALS))
}

/// One thing that cannot be: which setting, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// the setting, as a path below its policy (`resume.backoff`)
    pub key: &'static str,
    /// why, with the numbers
    pub why: String,
}

impl Complaint {
    fn new(key: &'static str, why: String) -> Self {
        Self { key, why }
    }
}

/// What in a policy contradicts itself.
pub(super) fn contradictions(policy: &Policy) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut complain = |key, why| found.push(Complaint::new(key, why));
    let named = [("interval", policy.interval), ("ttl", policy.ttl), ("start_within", policy.start_within)];
    for (key, _) in named.into_iter().filter(|(_, span)| span.0.is_zero()) {
        complain(key, format!("{key} is 0s, so no beat could ever be in time"));
    }
    if policy.interval >= policy.ttl {
        complain(
            "ttl",
            format!(
                "ttl {} is not longer than interval {}: healthy work would be called stale; {} or more is sound",
                policy.ttl,
                policy.interval,
                Span(policy.interval.0.saturating_mul(TTL_INTERVALS))
            ),
        );
    }
    if let Limit::After(hung_after) = policy.hung_after
        && hung_after < policy.interval.0
    {
        complain(
            "hung_after",
            format!(
                "hung_after {} is shorter than interval {}: progress is heard with beats only",
                policy.hung_after, policy.interval
            ),
        );
    }
    if policy.run_for == Limit::After(Duration::ZERO) {
        complain("run_for", "run_for is 0s; write `none` for no limit".to_owned());
    }
    resume_contradictions(policy, &mut complain);
    found.extend(
        complaints(&policy.launch, policy.on_end.as_ref()).into_iter().map(|(key, why)| Complaint::new(key, why)),
    );
    found
}

fn resume_contradictions(policy: &Policy, complain: &mut impl FnMut(&'static str, String)) {
    let Backoff { first, longest } = policy.resume.backoff;
    if first > longest {
        complain("resume.backoff", format!("the first delay {first} is longer than the longest {longest}"));
    }
    if policy.resume.max_attempts == CountLimit::At(0) {
        complain("resume.max_attempts", "0 attempts would never run it; the first attempt is counted".to_owned());
    }
    if policy.resume.max_identical_deaths == CountLimit::At(0) {
        let why = "0 would make it stuck at its first ending; write 1 or more, or none";
        complain("resume.max_identical_deaths", why.to_owned());
    }
    if policy.resume.max_pickups == 0 {
        complain("resume.max_pickups", "0 pickups would make it stuck at its first loss; write 1 or more".to_owned());
    }
    let is_ever_hung = policy.hung_after != Limit::None || policy.looping_after != CountLimit::None;
    if policy.resume.on.contains(&ResumeOn::Hung) && !is_ever_hung {
        let why = "it resumes on hung, and hung_after and looping_after are none, so it is never hung";
        complain("resume.on", why.to_owned());
    }
    if policy.resume.on.contains(&ResumeOn::Stale) && policy.beats == Beats::Presence {
        complain("resume.on", "it resumes on stale, and beats is presence, so its beats are never judged".to_owned());
    }
}

/// Why a text is not a pair of delays.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BackoffError {
    /// No `..` between two durations.
    #[error("{0:?} is not two durations such as 5s..5m")]
    Shape(String),
    /// One of them cannot be read.
    #[error("{0}")]
    Span(latido_protocol::SpanError),
    /// The first is the longer one.
    #[error("the first delay {first} is longer than the longest {longest}")]
    Order {
        /// before the `..`
        first: Span,
        /// after it
        longest: Span,
    },
}

/// Reads `5s..5m`.
///
/// # Errors
/// When it is neither, or the first is longer than the second.
pub fn parse_backoff(text: &str) -> Result<Backoff, BackoffError> {
    let (first, longest) = text.split_once("..").ok_or_else(|| BackoffError::Shape(text.to_owned()))?;
    let first: Span = first.parse().map_err(BackoffError::Span)?;
    let longest: Span = longest.parse().map_err(BackoffError::Span)?;
    if first > longest {
        return Err(BackoffError::Order { first, longest });
    }
    Ok(Backoff { first, longest })
}

/// Why a name cannot be a variable of a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VariableError {
    /// Empty, or with a `=` or NUL in it.
    #[error("{0:?} is not the name of a variable")]
    Name(String),
    /// latido sets it for every attempt.
    #[error("{0} is set by latido for every attempt")]
    Reserved(String),
}

/// Checks that a job may be given this variable.
///
/// # Errors
/// When the name is none, or latido's own.
pub fn check_variable(name: &str) -> Result<(), VariableError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(VariableError::Name(name.to_owned()));
    }
    if name.starts_with("LATIDO_") || matches!(name, "NOTIFY_SOCKET" | "WATCHDOG_USEC" | "WATCHDOG_PID") {
        return Err(VariableError::Reserved(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Span {
        Span(Duration::from_secs(count))
    }

    #[test]
    fn an_interval_that_is_not_given_follows_from_the_ttl() {
        assert_eq!(interval_for(seconds(180)), seconds(30));
        assert_eq!(interval_for(seconds(6)), seconds(2));
        let settings = Settings::default();
        let overrides = Overrides { ttl: Some(seconds(6)), ..Overrides::default() };
        let job = settings.job_settings("default", &overrides).unwrap();
        assert_eq!((job.interval, job.ttl, job.beats), (seconds(2), seconds(6), Beats::Own));
    }

    #[test]
    fn presence_can_be_asked_for_beside_a_ttl() {
        let overrides = Overrides { ttl: Some(seconds(6)), beats: Some(Beats::Presence), ..Overrides::default() };
        let job = Settings::default().job_settings("default", &overrides).unwrap();
        assert_eq!(job.beats, Beats::Presence);
    }

    /// Field case C026 (apache/airflow#16573): interval and health limit were the same, and healthy work was killed.
    #[test]
    fn c026_an_interval_as_long_as_the_ttl_is_refused_with_both_numbers() {
        for (interval, ttl) in [(30, 30), (60, 45)] {
            let overrides =
                Overrides { interval: Some(seconds(interval)), ttl: Some(seconds(ttl)), ..Overrides::default() };
            let error = Settings::default().job_settings("default", &overrides).unwrap_err();
            let causes = error.causes().join("\n");
            assert!(causes.contains(&seconds(interval).to_string()), "{causes}");
            assert!(causes.contains(&seconds(ttl).to_string()), "{causes}");
        }
        let policy = Policy::default();
        assert!(policy.ttl.0 >= policy.interval.0 * 3, "the default ratio is at least 3");
    }

    #[test]
    fn an_unknown_policy_or_strategy_is_refused_with_the_nearest() {
        let error = Settings::default().job_settings("defualt", &Overrides::default()).unwrap_err();
        assert!(error.next().contains("`default`"), "{}", error.next());
        let overrides = Overrides { strategy: Some("scirpt".to_owned()), ..Overrides::default() };
        let error = Settings::default().job_settings("default", &overrides).unwrap_err();
        assert!(error.next().contains("`script`"), "{}", error.next());
    }

    #[test]
    fn what_cannot_happen_is_not_resumed_on() {
        let overrides = Overrides { resume_on: Some(vec![ResumeOn::Hung]), ..Overrides::default() };
        let error = Settings::default().job_settings("default", &overrides).unwrap_err();
        assert!(error.causes().join("").contains("never hung"));
    }

    #[test]
    fn a_backoff_is_two_durations_in_order() {
        let backoff = parse_backoff("5s..5m").unwrap();
        assert_eq!((backoff.first, backoff.longest), (seconds(5), seconds(300)));
        for bad in ["5..10", "5s", "..", "5m..5s", "5s..", "-1..5s"] {
            assert!(parse_backoff(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn latidos_own_variables_are_not_given() {
        for bad in ["", "A=B", "LATIDO_EPOCH", "NOTIFY_SOCKET"] {
            assert!(check_variable(bad).is_err(), "{bad}");
        }
        assert!(check_variable("PATH").is_ok());
    }
}
