//! How the process of an attempt is made, and what runs after its ending.

use std::collections::BTreeMap;

use latido_process::setup::Setup;
use latido_protocol::files::{
    CgroupPlace, Enforcement, EnvironmentFrom, GitLocks, LaunchSettings, OnEnd, Rlimit, Sigpipe,
};
use latido_protocol::{CountLimit, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::Text;

mod text;

use text::{RlimitText, Variables};
pub use text::{SizeLimit, Umask, parse_environment, parse_rlimit, parse_size_limit, parse_umask};

/// How long the command after an ending may take where nothing is said.
const ON_END_FOR: Span = Span(std::time::Duration::from_secs(60));

/// `[policy.NAME.launch]`, and `launch = { … }` of a job
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LaunchTable {
    /// File mode creation mask, in octal. Without it: that of whoever launches.
    umask: Option<Text<Umask>>,
    /// Variables beside those of the job and of the attempt: all of the supervisor's (inherit), none (clean), or those
    /// of these names.
    environment: Option<Text<Variables>>,
    /// Niceness, from -20 to 19. Without it: that of whoever launches.
    nice: Option<i32>,
    /// Limits of the kernel's by their names in setrlimit(2): `nofile = "1024..4096"` is soft and hard, a number is both.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rlimits: BTreeMap<String, Text<RlimitText>>,
    /// Runs as this user, by name or uid; only where root launches.
    user: Option<String>,
    /// The group in place of the user's own.
    group: Option<String>,
    /// What a write into a closed pipe does to the job: it ends it (default), or it fails (ignore).
    sigpipe: Option<Text<Sigpipe>>,
    /// Memory that all its processes may use together, or `none`. Needs a cgroup.
    memory_max: Option<Text<SizeLimit>>,
    /// Processes and threads at a time, or `none`. Needs a cgroup.
    pids_max: Option<Text<CountLimit>>,
    /// Where a limit of the cgroup cannot be enforced: nothing is launched (required), or it is launched without and noted
    /// (best-effort).
    limits: Option<Text<Enforcement>>,
    /// Where its cgroup is made: where one can be (auto), nowhere (none), or below this folder.
    cgroup: Option<Text<CgroupPlace>>,
    /// What is done about locks that a killed git left in the work tree of its directory: they are noted (report), removed
    /// where nobody can hold them (remove), or not looked for (ignore).
    git_locks: Option<Text<GitLocks>>,
}

/// `on_end = { … }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct OnEndTable {
    /// The program and its arguments; an empty list is none.
    command: Vec<String>,
    /// How long it may take; after that it is killed.
    run_for: Option<Text<Span>>,
}

/// What is said in place of how a policy launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchOverrides {
    /// file mode creation mask
    pub umask: Option<Umask>,
    /// variables beside those of the job and of the attempt
    pub environment: Option<EnvironmentFrom>,
    /// niceness
    pub nice: Option<i32>,
    /// limits of the kernel's, each by itself
    pub rlimits: BTreeMap<String, Rlimit>,
    /// the user
    pub user: Option<String>,
    /// the group in place of the user's own
    pub group: Option<String>,
    /// what a write into a closed pipe does
    pub sigpipe: Option<Sigpipe>,
    /// memory of all its processes together
    pub memory_max: Option<SizeLimit>,
    /// processes and threads at a time
    pub pids_max: Option<CountLimit>,
    /// what happens where a limit cannot be enforced
    pub limits: Option<Enforcement>,
    /// where its cgroup is made
    pub cgroup: Option<CgroupPlace>,
    /// what is done about locks that a killed git left
    pub git_locks: Option<GitLocks>,
}

impl LaunchOverrides {
    /// The same settings with what is said in place of them.
    #[must_use]
    pub fn over(&self, base: &LaunchSettings) -> LaunchSettings {
        let mut rlimits = base.rlimits.clone();
        rlimits.extend(self.rlimits.iter().map(|(name, limit)| (name.clone(), *limit)));
        LaunchSettings {
            umask: self.umask.map_or(base.umask, |umask| Some(umask.0)),
            environment: self.environment.clone().unwrap_or_else(|| base.environment.clone()),
            nice: self.nice.or(base.nice),
            rlimits,
            user: self.user.clone().or_else(|| base.user.clone()),
            group: self.group.clone().or_else(|| base.group.clone()),
            sigpipe: self.sigpipe.unwrap_or(base.sigpipe),
            memory_max: self.memory_max.map_or(base.memory_max, |max| max.0),
            pids_max: self.pids_max.map_or(base.pids_max, number),
            limits: self.limits.unwrap_or(base.limits),
            cgroup: self.cgroup.clone().unwrap_or_else(|| base.cgroup.clone()),
            git_locks: self.git_locks.unwrap_or(base.git_locks),
        }
    }

    pub(super) fn table(&self) -> Option<LaunchTable> {
        let table = LaunchTable {
            umask: self.umask.map(Text),
            environment: self.environment.clone().map(|from| Text(Variables(from))),
            nice: self.nice,
            rlimits: self.rlimits.iter().map(|(name, limit)| (name.clone(), Text(RlimitText(*limit)))).collect(),
            user: self.user.clone(),
            group: self.group.clone(),
            sigpipe: self.sigpipe.map(Text),
            memory_max: self.memory_max.map(Text),
            pids_max: self.pids_max.map(Text),
            limits: self.limits.map(Text),
            cgroup: self.cgroup.clone().map(Text),
            git_locks: self.git_locks.map(Text),
        };
        (table != LaunchTable::default()).then_some(table)
    }
}

impl LaunchTable {
    /// Everything that has a value written out.
    pub(super) fn of(settings: &LaunchSettings) -> Self {
        Self {
            umask: settings.umask.map(|umask| Text(Umask(umask))),
            environment: Some(Text(Variables(settings.environment.clone()))),
            nice: settings.nice,
            rlimits: settings.rlimits.iter().map(|(name, limit)| (name.clone(), Text(RlimitText(*limit)))).collect(),
            user: settings.user.clone(),
            group: settings.group.clone(),
            sigpipe: Some(Text(settings.sigpipe)),
            memory_max: Some(Text(SizeLimit(settings.memory_max))),
            pids_max: Some(Text(settings.pids_max.map_or(CountLimit::None, CountLimit::At))),
            limits: Some(Text(settings.limits)),
            cgroup: Some(Text(settings.cgroup.clone())),
            git_locks: Some(Text(settings.git_locks)),
        }
    }

    pub(super) fn overrides(&self) -> LaunchOverrides {
        LaunchOverrides {
            umask: self.umask.map(|text| text.0),
            environment: self.environment.as_ref().map(|text| text.0.0.clone()),
            nice: self.nice,
            rlimits: self.rlimits.iter().map(|(name, limit)| (name.clone(), limit.0.0)).collect(),
            user: self.user.clone(),
            group: self.group.clone(),
            sigpipe: self.sigpipe.map(|text| text.0),
            memory_max: self.memory_max.map(|text| text.0),
            pids_max: self.pids_max.map(|text| text.0),
            limits: self.limits.map(|text| text.0),
            cgroup: self.cgroup.as_ref().map(|text| text.0.clone()),
            git_locks: self.git_locks.map(|text| text.0),
        }
    }
}

impl OnEndTable {
    pub(super) fn of(on_end: &OnEnd) -> Self {
        Self { command: on_end.command.clone(), run_for: Some(Text(on_end.run_for)) }
    }

    pub(super) fn decide(&self) -> OnEnd {
        OnEnd { command: self.command.clone(), run_for: self.run_for.map_or(ON_END_FOR, |text| text.0) }
    }
}

/// The command after an ending that is given without anything else.
pub fn on_end(command: Vec<String>) -> OnEnd {
    OnEnd { command, run_for: ON_END_FOR }
}

/// What cannot be in how a policy or a job launches: which setting, and why.
pub(super) fn complaints(settings: &LaunchSettings, on_end: Option<&OnEnd>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    // Who is there to run as is a matter of the machine that launches: it is told at the launch.
    let anybody = LaunchSettings { user: None, group: None, ..settings.clone() };
    if let Err(error) = Setup::of(&anybody) {
        found.push(("launch", format!("cannot {error}")));
    }
    if settings.group.is_some() && settings.user.is_none() {
        found.push(("launch.group", "it counts beside `user` alone".to_owned()));
    }
    if let Some(max) = settings.memory_max.filter(|max| *max < MEMORY_MIN) {
        let given = SizeLimit(Some(max));
        found.push(("launch.memory_max", format!("memory_max is {given}, and no program starts in less than 1MiB")));
    }
    if settings.pids_max == Some(0) {
        found.push(("launch.pids_max", "0 processes would run nothing; write `none` for no limit".to_owned()));
    }
    let needs_cgroup = settings.memory_max.is_some() || settings.pids_max.is_some();
    if needs_cgroup && settings.cgroup == CgroupPlace::None && settings.limits == Enforcement::Required {
        let why = "memory_max and pids_max need a cgroup, and cgroup is \"none\"; nothing would be launched";
        found.push(("launch.cgroup", why.to_owned()));
    }
    if on_end.is_some_and(|on_end| on_end.run_for.0.is_zero()) {
        found.push(("on_end.run_for", "0s would kill it at once".to_owned()));
    }
    found
}

/// Below this not even a shell starts.
const MEMORY_MIN: u64 = 1024 * 1024;

fn number(limit: CountLimit) -> Option<u64> {
    match limit {
        CountLimit::None => None,
        CountLimit::At(number) => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_says_goes_before_its_policy_and_the_rest_stays() {
        let nofile = |text| parse_rlimit(text).unwrap();
        let base = LaunchOverrides {
            memory_max: Some(SizeLimit(Some(1 << 30))),
            nice: Some(5),
            rlimits: BTreeMap::from([nofile("nofile=64"), nofile("core=0")]),
            ..LaunchOverrides::default()
        }
        .over(&LaunchSettings::default());
        let own = LaunchOverrides {
            memory_max: Some(SizeLimit(None)),
            rlimits: BTreeMap::from([nofile("nofile=128")]),
            ..LaunchOverrides::default()
        };
        let decided = own.over(&base);
        assert_eq!((decided.memory_max, decided.nice), (None, Some(5)));
        assert_eq!(decided.rlimits["nofile"].soft.number(), Some(128));
        assert_eq!(decided.rlimits["core"].soft.number(), Some(0));
    }

    #[test]
    fn what_could_never_be_launched_is_told_before() {
        let limited =
            LaunchSettings { memory_max: Some(1 << 30), cgroup: CgroupPlace::None, ..LaunchSettings::default() };
        assert_eq!(complaints(&limited, None)[0].0, "launch.cgroup");
        let bare = LaunchSettings { limits: Enforcement::BestEffort, ..limited };
        assert_eq!(complaints(&bare, None), []);
        let none = LaunchSettings { pids_max: Some(0), ..LaunchSettings::default() };
        assert_eq!(complaints(&none, None)[0].0, "launch.pids_max");
    }
}
