//! How an attempt's process is made, beside its command: what it is given, what it may use up, and what runs after it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Span, WallTime};

/// Everything of a launch that was decided when the job was made. What is not said is as whoever launches has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchSettings {
    /// file mode creation mask, at most 0o777
    pub umask: Option<u32>,
    /// which variables there are beside those of the job and of the attempt
    pub environment: EnvironmentFrom,
    /// the process's niceness, from -20 to 19; less than that of whoever launches asks for privilege
    pub nice: Option<i32>,
    /// limits of the kernel's, by their names in `setrlimit(2)` without the prefix: `nofile`, `core`, `nproc` …
    pub rlimits: BTreeMap<String, Rlimit>,
    /// runs as this user (a name or a uid), with its groups, `HOME`, `USER` and `LOGNAME`; only where root launches. Its
    /// sockets then lie under `/run/latido-jobs`; `LATIDO_DIR` stays a name that it cannot enter
    pub user: Option<String>,
    /// the group in place of the user's own (a name or a gid); only beside `user`
    pub group: Option<String>,
    /// what a write into a closed pipe does to the job; its own output never is one while any process of it lives
    pub sigpipe: Sigpipe,
    /// bytes of memory that all its processes may use together
    pub memory_max: Option<u64>,
    /// processes and threads that it may have at a time
    pub pids_max: Option<u64>,
    /// what happens where a limit of its cgroup cannot be enforced
    pub limits: Enforcement,
    /// where its cgroup is made
    pub cgroup: CgroupPlace,
    /// what is done about locks that a killed git left in the work tree of its directory
    pub git_locks: GitLocks,
}

/// Where a job's variables come from. Those of the job and of the attempt are always set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnvironmentFrom {
    /// all that the supervisor has
    #[default]
    Inherit,
    /// none of it
    Clean,
    /// these of it
    List(Vec<String>),
}

/// One limit of the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    /// what holds
    pub soft: Bound,
    /// what the job may raise it to; not given: the same as now, and a `soft` above it is refused
    #[serde(default)]
    pub hard: Option<Bound>,
}

/// A number, or the word `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// at most this
    At(u64),
    /// the word
    Unlimited(Unlimited),
}

/// The word `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unlimited {
    /// no bound
    Unlimited,
}

/// Why a text is no bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a number such as 1024, or `unlimited`")]
pub struct BoundError(String);

impl FromStr for Bound {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Self, BoundError> {
        match text {
            "unlimited" => Ok(Self::Unlimited(Unlimited::Unlimited)),
            number => number.parse().map(Self::At).map_err(|_| BoundError(text.to_owned())),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(number) => number.fmt(f),
            Self::Unlimited(Unlimited::Unlimited) => f.write_str("unlimited"),
        }
    }
}

impl Bound {
    /// The number, if it is one.
    pub fn number(self) -> Option<u64> {
        match self {
            Self::At(number) => Some(number),
            Self::Unlimited(Unlimited::Unlimited) => None,
        }
    }
}

/// What SIGPIPE does to a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sigpipe {
    /// It ends the process, as in a shell.
    #[default]
    Default,
    /// The write fails with EPIPE.
    Ignore,
}

/// What happens where a limit cannot be enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// Nothing is launched.
    #[default]
    Required,
    /// It is launched without the limit, and `start.json` notes it.
    BestEffort,
}

/// What is done before a launch about locks (`index.lock` …) that a git left behind in the work tree of the job's directory.
/// One that somebody may hold is never removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GitLocks {
    /// They are told of, in the notes of `start.json`.
    #[default]
    Report,
    /// Those that are proven to be left behind are removed, and that is told of.
    Remove,
    /// Nobody looks.
    Ignore,
}

/// Where the cgroup of an attempt is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupPlace {
    /// in the highest folder on the way to the supervisor's own cgroup that it may write to; without one, nowhere
    #[default]
    Auto,
    /// nowhere
    None,
    /// under this folder, which holds hierarchies as `/sys/fs/cgroup` does
    Under(PathBuf),
}

/// The cgroup of an attempt: one folder, or several where controllers are spread over hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// its folders; the first that is of version 2 says who is in it
    pub folders: Vec<CgroupFolder>,
}

/// One folder of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupFolder {
    /// where it lies
    pub path: PathBuf,
    /// of the hierarchy: 1 or 2
    pub version: u32,
    /// which controllers of it are used: `memory`, `pids`; none: it only says who is in it
    pub controllers: Vec<String>,
}

/// A command that is run once after the ending of each attempt that ran was recorded, before the job's lock is free.
///
/// It runs in the job's directory as the job's user, with its variables, `LATIDO_JOB`, `LATIDO_ATTEMPT`, `LATIDO_EPOCH`,
/// `LATIDO_DIR`, and these of the ending, empty where there is none: `LATIDO_OUTCOME` (`exited`, `signaled`,
/// `out-of-memory` …), `LATIDO_CODE`, `LATIDO_SIGNAL`, `LATIDO_CLASS` (`completed`, `failed` …), `LATIDO_DETAIL`, and
/// `LATIDO_CHECKPOINT`, the last there is. What it prints goes to `on_end.log`, what became of it to `on_end.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnEnd {
    /// the program and its arguments
    pub command: Vec<String>,
    /// how long it may take; after that it is killed
    #[serde(default = "on_end_for")]
    pub run_for: Span,
}

/// What a hook has that was asked for without a limit: a commit or an upload, and no second job.
fn on_end_for() -> Span {
    Span(std::time::Duration::from_secs(60))
}

/// `on_end.json`: what became of the command after the ending. It exists before the command runs, and while it exists
/// the command is not run (again): at most once, whoever is killed when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnEndRecord {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// the program and its arguments
    pub command: Vec<String>,
    /// when it was about to be run
    pub started_at: WallTime,
    /// when it was over; `null`: it runs, or its supervisor was killed before it could tell
    pub ended_at: Option<WallTime>,
    /// its exit status, where it ended by itself
    pub code: Option<i32>,
    /// how it ended, in words: `exit status 0`, `killed after 60s`, `cannot run …`
    pub detail: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_before_mean_what_was_done_before() {
        let settings: LaunchSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings, LaunchSettings::default());
        assert_eq!(settings.environment, EnvironmentFrom::Inherit);
        assert_eq!(settings.limits, Enforcement::Required);
    }

    #[test]
    fn limits_and_lists_have_a_plain_form() {
        let text = r#"{"environment":{"list":["LANG"]},"rlimits":{"nofile":{"soft":64,"hard":"unlimited"}},"limits":"best-effort","cgroup":{"under":"/x"},"sigpipe":"ignore"}"#;
        let settings: LaunchSettings = serde_json::from_str(text).unwrap();
        assert_eq!(settings.environment, EnvironmentFrom::List(vec!["LANG".into()]));
        let nofile = settings.rlimits["nofile"];
        assert_eq!((nofile.soft.number(), nofile.hard.map(Bound::number)), (Some(64), Some(None)));
        assert_eq!(settings.cgroup, CgroupPlace::Under("/x".into()));
        let again = serde_json::from_str(&serde_json::to_string(&settings).unwrap()).unwrap();
        assert_eq!(settings, again);
        assert!(serde_json::from_str::<LaunchSettings>(r#"{"rlimits":{"core":{"soft":"endless"}}}"#).is_err());
    }
}
