//! What is done to a job's process between its fork and its program: cgroup, limits, user.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use latido_protocol::files::{LaunchSettings, Rlimit, Sigpipe};
use nix::unistd::{Gid, Group, Uid};
use rustix::process::Resource;

use crate::cgroup::{CgroupError, Entrance};

/// The highest mask there is.
const UMASK_MAX: u32 = 0o777;

/// What the kernel takes as niceness.
const NICE: std::ops::RangeInclusive<i32> = -20..=19;

/// Limits by their names in `setrlimit(2)`, in lower case and without the prefix.
const RLIMITS: [(&str, Resource); 16] = [
    ("as", Resource::As),
    ("core", Resource::Core),
    ("cpu", Resource::Cpu),
    ("data", Resource::Data),
    ("fsize", Resource::Fsize),
    ("locks", Resource::Locks),
    ("memlock", Resource::Memlock),
    ("msgqueue", Resource::Msgqueue),
    ("nice", Resource::Nice),
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("rss", Resource::Rss),
    ("rtprio", Resource::Rtprio),
    ("rttime", Resource::Rttime),
    ("sigpending", Resource::Sigpending),
    ("stack", Resource::Stack),
];

/// Why a process cannot be made as it was asked for. The text tells a person what to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Only root may become another user.
    #[error("run as {user}: only an agent or command of root's can; leave `user` out, or launch it as root")]
    NotRoot {
        /// the user that was asked for
        user: String,
    },
    /// No such user.
    #[error("run as {user}: there is no such user")]
    NoUser {
        /// the user that was asked for
        user: String,
    },
    /// No such group.
    #[error("run with the group {group}: there is no such group")]
    NoGroup {
        /// the group that was asked for
        group: String,
    },
    /// A group without a user.
    #[error("run with the group {group}: it counts beside `user` alone, and none is given")]
    GroupWithoutUser {
        /// the group that was asked for
        group: String,
    },
    /// The user database could not be asked.
    #[error("look up {name} in the user database")]
    Lookup {
        /// a user or group
        name: String,
        /// what the system said
        source: io::Error,
    },
    /// Its identity could not be taken on.
    #[error("become the user {user}")]
    Become {
        /// the user
        user: String,
        /// what the kernel said
        source: io::Error,
    },
    /// No such mask.
    #[error("set the umask {umask:o}: the highest is 777")]
    Umask {
        /// what was asked for
        umask: u32,
    },
    /// A niceness out of range, or below what this user may have.
    #[error("run with niceness {nice}: it is from -20 to 19")]
    NoSuchNice {
        /// what was asked for
        nice: i32,
    },
    /// The kernel refused the niceness.
    #[error("run with niceness {nice}: less than that of the launching process asks for privilege")]
    Nice {
        /// what was asked for
        nice: i32,
        /// what the kernel said
        source: io::Error,
    },
    /// No such limit.
    #[error("set the limit {name}: there is none of this name; there are {}", names())]
    NoLimit {
        /// what was asked for
        name: String,
    },
    /// A soft limit above its hard one.
    #[error("set the limit {name} to {soft}: its hard limit is {hard}")]
    AboveHard {
        /// which limit
        name: String,
        /// what was asked for
        soft: String,
        /// what it may not be above
        hard: String,
    },
    /// Only root may raise a hard limit.
    #[error("raise the hard limit {name} to {hard}: it is {now}, and only root may raise it")]
    RaisesHard {
        /// which limit
        name: String,
        /// what was asked for
        hard: String,
        /// what it is
        now: String,
    },
    /// The kernel refused a limit.
    #[error("set the limits of the process")]
    Limit {
        /// what the kernel said
        source: io::Error,
    },
    /// Its cgroup could not be made or entered.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// Limits that its cgroup cannot enforce.
    #[error("enforce {}; `limits = \"best-effort\"` launches it without", limits.join("; "))]
    Unenforced {
        /// each limit with the cause
        limits: Vec<String>,
    },
    /// Its cgroup was there and would not take it.
    #[error("put the process into its cgroup")]
    Enter {
        /// what the kernel said
        source: io::Error,
    },
}

/// Another user to run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// its name
    pub name: String,
    /// its number
    pub uid: u32,
    /// its group, or the one that was asked for
    pub gid: u32,
    /// all its groups
    pub groups: Vec<u32>,
    /// its home
    pub home: PathBuf,
}

/// What is done to the process. Empty, it stays as its parent is.
#[derive(Debug, Default)]
pub struct Setup {
    /// the ways into its cgroup
    pub cgroup: Vec<Entrance>,
    /// its file mode creation mask
    pub umask: Option<u32>,
    /// its niceness
    pub nice: Option<i32>,
    /// limits of the kernel's
    pub rlimits: Vec<(Resource, rustix::process::Rlimit)>,
    /// whom it runs as
    pub user: Option<User>,
    /// it ignores SIGPIPE
    pub ignores_sigpipe: bool,
}

impl Setup {
    /// Reads it from a job's settings, without a cgroup: everything that can be known before the fork to be refused is
    /// refused here.
    ///
    /// # Errors
    /// Each cause by its name.
    pub fn of(settings: &LaunchSettings) -> Result<Self, SetupError> {
        if let Some(umask) = settings.umask.filter(|umask| *umask > UMASK_MAX) {
            return Err(SetupError::Umask { umask });
        }
        if let Some(nice) = settings.nice.filter(|nice| !NICE.contains(nice)) {
            return Err(SetupError::NoSuchNice { nice });
        }
        let user = match (&settings.user, &settings.group) {
            (None, None) => None,
            (None, Some(group)) => return Err(SetupError::GroupWithoutUser { group: group.clone() }),
            (Some(user), group) => Some(User::find(user, group.as_deref())?),
        };
        Ok(Self {
            cgroup: Vec::new(),
            umask: settings.umask,
            nice: settings.nice,
            rlimits: rlimits(&settings.rlimits)?,
            user,
            ignores_sigpipe: settings.sigpipe == Sigpipe::Ignore,
        })
    }
}

impl User {
    /// Looks a user up by name or uid, and its groups.
    fn find(wanted: &str, group: Option<&str>) -> Result<Self, SetupError> {
        let refuse = |error: nix::Error| SetupError::Lookup { name: wanted.to_owned(), source: error.into() };
        let no_user = || SetupError::NoUser { user: wanted.to_owned() };
        let found = match wanted.parse::<u32>() {
            Ok(uid) => nix::unistd::User::from_uid(Uid::from_raw(uid)),
            Err(_) => nix::unistd::User::from_name(wanted),
        };
        let found = found.map_err(refuse)?.ok_or_else(no_user)?;
        if !rustix::process::geteuid().is_root() {
            return Err(SetupError::NotRoot { user: wanted.to_owned() });
        }
        let gid = match group {
            None => found.gid,
            Some(group) => {
                let known = match group.parse::<u32>() {
                    Ok(gid) => Group::from_gid(Gid::from_raw(gid)),
                    Err(_) => Group::from_name(group),
                };
                known.map_err(refuse)?.ok_or_else(|| SetupError::NoGroup { group: group.to_owned() })?.gid
            }
        };
        let name = CString::new(found.name.clone()).map_err(|_| no_user())?;
        let groups = nix::unistd::getgrouplist(&name, gid).map_err(refuse)?;
        Ok(Self {
            name: found.name,
            uid: found.uid.as_raw(),
            gid: gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            home: found.dir,
        })
    }
}

fn rlimits(wanted: &BTreeMap<String, Rlimit>) -> Result<Vec<(Resource, rustix::process::Rlimit)>, SetupError> {
    let shown = |bound: Option<u64>| bound.map_or_else(|| "unlimited".to_owned(), |number| number.to_string());
    let is_above = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(one), Some(other)) => one > other,
    };
    let is_root = rustix::process::geteuid().is_root();
    let mut list = Vec::new();
    for (name, limit) in wanted {
        let known = RLIMITS.iter().find(|(known, _)| known == name);
        let (_, resource) = *known.ok_or_else(|| SetupError::NoLimit { name: name.clone() })?;
        let now = rustix::process::getrlimit(resource).maximum;
        let soft = limit.soft.number();
        let hard = limit.hard.map_or(now, |bound| bound.number());
        if is_above(soft, hard) {
            return Err(SetupError::AboveHard { name: name.clone(), soft: shown(soft), hard: shown(hard) });
        }
        if is_above(hard, now) && !is_root {
            return Err(SetupError::RaisesHard { name: name.clone(), hard: shown(hard), now: shown(now) });
        }
        list.push((resource, rustix::process::Rlimit { current: soft, maximum: hard }));
    }
    Ok(list)
}

fn names() -> String {
    RLIMITS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
