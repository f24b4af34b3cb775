//! `[check.NAME]` and `[process.NAME]`: tables to settings and back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use latido_driver::{CheckDefinition, ProcessDefinition, Schedule, Timing};
use latido_protocol::{Limit, Span, SubjectName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::nearest::nearest;
use super::text::Text;

/// A check that says nothing else may be this much later than expected: busy hosts start their timed work late.
const GRACE: Span = Span(Duration::from_secs(5 * 60));

/// A process that says nothing else is to be seen within this time.
const START_WITHIN: Span = Span(Duration::from_secs(60));

/// `[check.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct CheckTable {
    /// It is expected this long after its last signal. Either this or `cron`.
    pub(super) every: Option<Text<Span>>,
    /// It is expected at these times: minute, hour, day of the month, month, day of the week, or `@daily` and its like.
    pub(super) cron: Option<String>,
    /// The time zone of `cron`, such as `America/Santiago`. Without it: the host's.
    pub(super) zone: Option<String>,
    /// How much later than expected its signal may come.
    pub(super) grace: Option<Text<Span>>,
    /// Longest time of one run, from its start signal to its end, or `none`.
    pub(super) run_for: Option<Text<Limit>>,
}

/// `[process.NAME]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ProcessTable {
    /// A file that holds its pid; a relative path begins at this file's folder. One of these four names the process.
    pub(super) pid_file: Option<PathBuf>,
    /// Its pid: the process that has this number when it is looked at first, and no other afterwards.
    pub(super) pid: Option<u32>,
    /// Its program's name, as `ps -o comm` shows it.
    pub(super) name: Option<String>,
    /// A text in its command line, as `ps -o args` shows it.
    pub(super) command: Option<String>,
    /// Time for it to be seen the first time.
    pub(super) start_within: Option<Text<Span>>,
}

/// A check of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredCheck {
    /// when it is expected
    pub timing: ConfiguredTiming,
    /// how much later than expected its signal may come
    pub grace: Span,
    /// longest time of one run
    pub run_for: Limit,
}

/// When a check of the config is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfiguredTiming {
    /// So long after its last signal.
    Every(Span),
    /// By the calendar.
    Cron {
        /// the pattern as it was written
        pattern: String,
        /// the zone as it was written; `None`: the host's
        zone: Option<String>,
        /// both, read
        schedule: Schedule,
    },
}

/// A process of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredProcess {
    /// what names it
    pub named_by: NamedBy,
    /// time for it to be seen the first time
    pub start_within: Span,
}

/// What names a process of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A file that holds its pid.
    PidFile(PathBuf),
    /// Its pid.
    Pid(u32),
    /// Its program's name.
    Name(String),
    /// A text in its command line.
    Command(String),
}

/// What is wrong with a table: the key below it, why, and a hint.
pub(super) type Fault = (&'static str, String, Option<String>);

impl CheckTable {
    pub(super) fn decide(self) -> Result<ConfiguredCheck, Fault> {
        let timing = match (self.every, self.cron, self.zone) {
            (Some(_), Some(_), _) => {
                return Err(("cron", "it has `every` as well".to_owned(), Some("keep one of the two".to_owned())));
            }
            (None, None, _) => {
                let hint = "write `every = \"1h\"`, or `cron = \"0 3 * * *\"`".to_owned();
                return Err(("", "it does not say when it is expected".to_owned(), Some(hint)));
            }
            (Some(_), None, Some(_)) => {
                return Err(("zone", "it means something beside `cron` alone".to_owned(), None));
            }
            (Some(every), None, None) if every.0.0.is_zero() => {
                return Err(("every", "0s is expected without end".to_owned(), None));
            }
            (Some(every), None, None) => ConfiguredTiming::Every(every.0),
            (None, Some(pattern), zone) => {
                let in_zone = zone.as_deref().map_or_else(|| Ok(TimeZone::system()), time_zone)?;
                let schedule = Schedule::parse(&pattern, in_zone)
                    .map_err(|error| ("cron", format!("{pattern:?} is no pattern: {error}"), None))?;
                ConfiguredTiming::Cron { pattern, zone, schedule }
            }
        };
        Ok(ConfiguredCheck {
            timing,
            grace: self.grace.map_or(GRACE, |text| text.0),
            run_for: self.run_for.map_or(Limit::None, |text| text.0),
        })
    }
}

impl ProcessTable {
    /// `base`: where relative paths begin.
    pub(super) fn decide(self, base: &Path) -> Result<ConfiguredProcess, Fault> {
        let file = self.pid_file.map(|file| NamedBy::PidFile(base.join(file)));
        let named =
            [file, self.pid.map(NamedBy::Pid), self.name.map(NamedBy::Name), self.command.map(NamedBy::Command)];
        let mut named = named.into_iter().flatten();
        let hint = || Some("name it by one of pid_file, pid, name, command".to_owned());
        let named_by = named.next().ok_or_else(|| ("", "nothing names the process".to_owned(), hint()))?;
        if named.next().is_some() {
            return Err(("", "more than one key names the process".to_owned(), hint()));
        }
        match &named_by {
            NamedBy::Pid(0) => return Err(("pid", "no process has the number 0".to_owned(), None)),
            NamedBy::Name(text) if text.is_empty() => return Err(("name", "it is empty".to_owned(), None)),
            NamedBy::Command(text) if text.is_empty() => return Err(("command", "it is empty".to_owned(), None)),
            NamedBy::PidFile(_) | NamedBy::Pid(_) | NamedBy::Name(_) | NamedBy::Command(_) => {}
        }
        Ok(ConfiguredProcess { named_by, start_within: self.start_within.map_or(START_WITHIN, |text| text.0) })
    }
}

impl ConfiguredCheck {
    /// As the driver is told of it.
    pub(crate) fn definition(&self, name: &SubjectName) -> CheckDefinition {
        let timing = match &self.timing {
            ConfiguredTiming::Every(every) => Timing::Every(every.0),
            ConfiguredTiming::Cron { schedule, .. } => Timing::Calendar(schedule.clone()),
        };
        CheckDefinition { name: name.clone(), timing, grace: self.grace.0, run_for: self.run_for.duration() }
    }

    pub(super) fn table(&self) -> CheckTable {
        let (every, cron, zone) = match &self.timing {
            ConfiguredTiming::Every(every) => (Some(Text(*every)), None, None),
            ConfiguredTiming::Cron { pattern, zone, .. } => (None, Some(pattern.clone()), zone.clone()),
        };
        CheckTable { every, cron, zone, grace: Some(Text(self.grace)), run_for: Some(Text(self.run_for)) }
    }
}

impl ConfiguredProcess {
    /// As the driver is told of it.
    pub(crate) fn definition(&self, name: &SubjectName) -> ProcessDefinition {
        let definition = match &self.named_by {
            NamedBy::PidFile(file) => format!("pid_file {}", file.display()),
            NamedBy::Pid(pid) => format!("pid {pid}"),
            NamedBy::Name(text) => format!("name {text}"),
            NamedBy::Command(text) => format!("command {text}"),
        };
        ProcessDefinition { name: name.clone(), definition, start_within: self.start_within.0 }
    }

    pub(super) fn table(&self) -> ProcessTable {
        let table = ProcessTable { start_within: Some(Text(self.start_within)), ..ProcessTable::default() };
        match self.named_by.clone() {
            NamedBy::PidFile(file) => ProcessTable { pid_file: Some(file), ..table },
            NamedBy::Pid(pid) => ProcessTable { pid: Some(pid), ..table },
            NamedBy::Name(text) => ProcessTable { name: Some(text), ..table },
            NamedBy::Command(text) => ProcessTable { command: Some(text), ..table },
        }
    }
}

/// The zone of this name: as the system has it, whose rules are kept up to date, or as latido was built with it.
fn time_zone(name: &str) -> Result<TimeZone, Fault> {
    if let Ok(zone) = TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)) {
        return Ok(zone);
    }
    let known: Vec<String> = TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect();
    let near = nearest(name, known.iter()).map(|near| format!("did you mean `{near}`?"));
    let hint = near.unwrap_or_else(|| "zones are named like `Europe/Berlin`".to_owned());
    Err(("zone", format!("there is no time zone `{name}`"), Some(hint)))
}
