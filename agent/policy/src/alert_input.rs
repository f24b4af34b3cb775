//! What an alert is told, on what terms, and what follows.

use core::time::Duration;

use crate::{AlertSettings, Confirm, Moment, Severity, Telling};

/// What happens to one alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A call found it.
    Found(Severity),
    /// A call that contained its subject did not find it.
    NotFound,
    /// Its deadline may have come, or what muted it may have ended.
    TimeCame,
    /// It is ready, and told by itself.
    Tell,
    /// It is ready, and told as part of a group.
    Join,
    /// Somebody says that it is known.
    Acknowledged,
    /// Its subject is watched no longer.
    Removed,
}

/// What follows beyond the alert itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Nothing,
    /// It may be told: by itself or with others, which is not decided here.
    Ready,
    /// This is told of it.
    Tell(Telling),
    /// It leaves its group.
    Left,
    /// Nobody needs to remember it.
    Over,
    /// It makes no sense in this state.
    Refused,
}

/// What decides beside the alert's own state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) settings: &'a AlertSettings,
    pub(crate) confirm: Confirm,
    /// how long it waits for others of its kind
    pub(crate) group_for: Duration,
    /// something keeps it from being told
    pub(crate) is_muted: bool,
    pub(crate) now: Moment,
}
