//! How the process of an attempt is made, and what runs after its ending.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use latido_process::setup::Setup;
use latido_protocol::files::{
    Bound, CgroupPlace, Enforcement, EnvironmentFrom, LaunchSettings, OnEnd, Rlimit, Sigpipe,
};
use latido_protocol::{CountLimit, Span};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use super::text::{Size, Text, Written};

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
    if let Err(error) = Setup::of(settings) {
        found.push(("launch", format!("cannot {error}")));
    }
    if settings.memory_max.is_some_and(|max| max < MEMORY_MIN) {
        found.push(("launch.memory_max", "no program starts in less than 1MiB".to_owned()));
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

/// A file mode creation mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umask(pub u32);

impl Written for Umask {
    const WHAT: &'static str = "a mask in octal such as \"022\"";

    fn read(text: &str) -> Result<Self, String> {
        let mask = u32::from_str_radix(text.trim(), 8).ok().filter(|mask| *mask <= 0o777);
        mask.map(Self).ok_or_else(|| format!("{text:?} is not {}", Self::WHAT))
    }

    fn write(&self) -> String {
        format!("{:03o}", self.0)
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^0?[0-7]{1,3}$", "examples": ["022"] })
    }
}

/// A size, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit(pub Option<u64>);

impl fmt::Display for SizeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write())
    }
}

impl Written for SizeLimit {
    const WHAT: &'static str = "a size such as 2GiB, or `none` for no limit";

    fn read(text: &str) -> Result<Self, String> {
        if text.trim() == "none" { Ok(Self(None)) } else { Size::read(text).map(|size| Self(Some(size.0))) }
    }

    fn write(&self) -> String {
        self.0.map_or_else(|| "none".to_owned(), |size| Size(size).write())
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(none|[0-9]+ ?(B|KiB|MiB|GiB))$",
            "examples": ["none", "2GiB"]
        })
    }
}

/// Where variables come from: a word, or names with commas between them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Variables(EnvironmentFrom);

impl Written for Variables {
    const WHAT: &'static str = "`inherit`, `clean`, or names of variables such as \"LANG,TZ\"";

    fn read(text: &str) -> Result<Self, String> {
        parse_environment(text).map(Self)
    }

    fn write(&self) -> String {
        match &self.0 {
            EnvironmentFrom::Inherit => "inherit".to_owned(),
            EnvironmentFrom::Clean => "clean".to_owned(),
            EnvironmentFrom::List(names) => names.join(","),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "examples": ["inherit", "clean", "LANG,TZ"] })
    }
}

/// One limit of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RlimitText(Rlimit);

impl Written for RlimitText {
    const WHAT: &'static str = "a limit such as 1024, \"1024..4096\" (soft and hard) or \"unlimited\"";

    fn read(text: &str) -> Result<Self, String> {
        let bound = |text: &str| text.trim().parse::<Bound>().map_err(|_| format!("{text:?} is not {}", Self::WHAT));
        let (soft, hard) = match text.split_once("..") {
            Some((soft, hard)) => (bound(soft)?, bound(hard)?),
            None => (bound(text)?, bound(text)?),
        };
        Ok(Self(Rlimit { soft, hard: Some(hard) }))
    }

    fn write(&self) -> String {
        match self.0.hard {
            Some(hard) if hard != self.0.soft => format!("{}..{hard}", self.0.soft),
            Some(_) | None => self.0.soft.to_string(),
        }
    }

    fn schema() -> Schema {
        let bound = "([0-9]+|unlimited)";
        json_schema!({
            "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": format!("^{bound}(\\.\\.{bound})?$") }],
            "examples": [1024, "1024..4096", "unlimited"]
        })
    }
}

impl Written for CgroupPlace {
    const WHAT: &'static str = "`auto`, `none`, or the absolute path of a folder";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            path if path.starts_with('/') => Ok(Self::Under(PathBuf::from(path))),
            other => Err(format!("{other:?} is not {}", Self::WHAT)),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::None => "none".to_owned(),
            Self::Under(path) => path.display().to_string(),
        }
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "pattern": "^(auto|none|/.*)$", "examples": ["auto", "none"] })
    }
}

/// Reads a size, or `none`.
///
/// # Errors
/// In words, when it is neither.
pub fn parse_size_limit(text: &str) -> Result<SizeLimit, String> {
    SizeLimit::read(text)
}

/// Reads a file mode creation mask.
///
/// # Errors
/// In words, when it is none.
pub fn parse_umask(text: &str) -> Result<Umask, String> {
    Umask::read(text)
}

/// Reads where variables come from.
///
/// # Errors
/// In words, when a name is none.
pub fn parse_environment(text: &str) -> Result<EnvironmentFrom, String> {
    match text.trim() {
        "inherit" => Ok(EnvironmentFrom::Inherit),
        "clean" => Ok(EnvironmentFrom::Clean),
        names => {
            let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
            match names.iter().find(|name| name.is_empty() || name.contains(['=', '\0', ' '])) {
                Some(bad) => Err(format!("{bad:?} is not the name of a variable; write {}", Variables::WHAT)),
                None => Ok(EnvironmentFrom::List(names)),
            }
        }
    }
}

/// Reads `NAME=SOFT..HARD`.
///
/// # Errors
/// In words, when it is none.
pub fn parse_rlimit(text: &str) -> Result<(String, Rlimit), String> {
    let (name, limit) = text.split_once('=').ok_or("it has no `=`; write NAME=LIMIT such as nofile=1024")?;
    Ok((name.to_owned(), RlimitText::read(limit)?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Written + PartialEq + fmt::Debug>(text: &str) {
        let value = T::read(text).unwrap();
        assert_eq!(value.write(), text);
    }

    #[test]
    fn what_is_written_reads_back() {
        round_trip::<Umask>("027");
        round_trip::<SizeLimit>("none");
        round_trip::<SizeLimit>("2GiB");
        for text in ["inherit", "clean", "LANG,TZ"] {
            round_trip::<Variables>(text);
        }
        for text in ["1024", "1024..4096", "0..unlimited", "unlimited"] {
            round_trip::<RlimitText>(text);
        }
        for text in ["auto", "none", "/sys/fs/cgroup/jobs"] {
            round_trip::<CgroupPlace>(text);
        }
    }

    #[test]
    fn rubbish_is_refused() {
        for bad in ["", "8", "1777", "-1", "0x1f"] {
            assert!(Umask::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "1024", "-1MiB", "endless"] {
            assert!(SizeLimit::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "A=B", "LANG,,TZ", "LANG TZ"] {
            assert!(Variables::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "-1", "1..", "..5", "1..2..3", "infinity"] {
            assert!(RlimitText::read(bad).is_err(), "{bad}");
        }
        for bad in ["", "jobs", "Auto"] {
            assert!(CgroupPlace::read(bad).is_err(), "{bad}");
        }
        assert!(parse_rlimit("nofile").is_err());
    }

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
