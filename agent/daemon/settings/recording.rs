//! `[agent.recording]`: whether the agent records what it is told and decides, and how much of it is kept.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::{Size, Text};

/// A beginning of a recording with some hundred subjects, and an hour after it, fit into this.
const SIZE_MIN: u64 = 1024 * 1024;

/// How the agent is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingSettings {
    /// it is recorded at all
    pub enabled: bool,
    /// bytes after which `recording.jsonl` is rotated
    pub size_max: u64,
    /// files kept, the current one counted
    pub files_max: NonZeroU32,
}

impl Default for RecordingSettings {
    fn default() -> Self {
        // Off, since every beat would be written a second time; 64 MiB are some 70,000 beats.
        Self { enabled: false, size_max: 16 * 1024 * 1024, files_max: NonZeroU32::MIN.saturating_add(3) }
    }
}

/// `[agent.recording]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct RecordingTable {
    /// Record what the agent is told and decides, for `latido replay`.
    pub(super) enabled: Option<bool>,
    /// Size after which recording.jsonl is rotated.
    pub(super) size_max: Option<Text<Size>>,
    /// Files kept, the current one counted.
    pub(super) files_max: Option<NonZeroU32>,
}

impl RecordingTable {
    /// Decides, and says why a size is refused.
    pub(super) fn decide(self) -> (RecordingSettings, Option<&'static str>) {
        let default = RecordingSettings::default();
        let size_max = self.size_max.map_or(default.size_max, |size| size.0.0);
        let refused = (size_max < SIZE_MIN).then_some("a recording is at least 1MiB, so that its beginning has room");
        let enabled = self.enabled.unwrap_or(default.enabled);
        (RecordingSettings { enabled, size_max, files_max: self.files_max.unwrap_or(default.files_max) }, refused)
    }

    /// The table that reads back as these settings.
    pub(super) fn of(settings: RecordingSettings) -> Self {
        Self {
            enabled: Some(settings.enabled),
            size_max: Some(Text(Size(settings.size_max))),
            files_max: Some(settings.files_max),
        }
    }
}
