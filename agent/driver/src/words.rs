//! The policy's words as the recording writes them. The policy knows no format, so its words are written out here.

use std::time::Duration;

use latido_policy as policy;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::seconds;

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::LaunchFailure", rename_all = "kebab-case")]
pub(crate) enum LaunchFailure {
    Locked,
    Superseded,
    NotWanted,
    Failed,
    Unreadable,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::Life", rename_all = "kebab-case")]
pub(crate) enum Life {
    Alive,
    Gone,
    Unknown,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::Proposal", rename_all = "kebab-case")]
pub(crate) enum Proposal {
    Launch,
    #[serde(rename = "wait_s")]
    Wait(#[serde(with = "seconds")] Duration),
    Hold,
    GiveUp,
    Failed,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::Signal", rename_all = "kebab-case")]
pub(crate) enum Signal {
    Started,
    Succeeded,
    Failed,
    Exited(u8),
    Logged,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::Absence", rename_all = "kebab-case")]
pub(crate) enum Absence {
    Unnamed,
    NoProcess,
    Reused,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::Naming", rename_all = "kebab-case")]
pub(crate) enum Naming {
    Pid,
    File {
        #[serde(rename = "written_ago_s", with = "seconds")]
        written_ago: Duration,
    },
    Name,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "policy::Exit", rename_all = "kebab-case")]
enum Exit {
    Status(i32),
    Signal(i32),
}

/// How a process ended, where the system tells.
pub(crate) mod exit {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Told(#[serde(with = "Exit")] policy::Exit);

    pub(crate) fn serialize<S: Serializer>(exit: &Option<policy::Exit>, serializer: S) -> Result<S::Ok, S::Error> {
        exit.map(Told).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<policy::Exit>, D::Error> {
        Option::<Told>::deserialize(deserializer).map(|told| told.map(|told| told.0))
    }
}
