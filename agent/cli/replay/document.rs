//! What `latido replay --json` prints.

use std::path::{Path, PathBuf};

use latido_driver::replay::{Decided, Difference, What};
use latido_protocol::WallTime;
use serde::Serialize;

use super::{Replayed, compare};

/// A replay as a document.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    /// the format of all documents
    version: u32,
    /// the recording
    pub(super) recording: PathBuf,
    /// the version of the latido that wrote it
    pub(super) recorded_by: String,
    /// the calendar at its first line
    pub(super) from: Option<WallTime>,
    /// and at its last
    pub(super) until: Option<WallTime>,
    /// steps of the agent's driver
    pub(super) steps: u64,
    /// how often it begins
    pub(super) beginnings: u64,
    /// how often it begins in the middle of an agent's life, from what a restart would know
    pub(super) in_the_middle: u64,
    /// the recorded settings decide what was recorded
    pub(super) as_recorded: bool,
    /// the other config; `None`: the recorded settings alone
    pub(super) config: Option<PathBuf>,
    /// subjects that the other config says nothing about
    pub(super) kept: Vec<String>,
    /// attempts that went on, and that the other config would have ended
    pub(super) ended_alive: usize,
    /// what was decided then; left out beside another config
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decisions: Option<Vec<Decided>>,
    /// what this latido, or the other config, decides otherwise
    pub(super) differences: Vec<Shown>,
}

/// A difference, and what it means for what it is about.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    /// the difference
    #[serde(flatten)]
    pub(super) difference: Difference,
    /// what it is about showed afterwards that it was alive
    pub(super) went_on: bool,
}

impl Document {
    pub(super) fn of(replayed: Replayed, recording: &Path, config: Option<&Path>) -> Self {
        let Replayed { then, again, other, signs, .. } = replayed;
        let as_recorded = then == again;
        let (differences, kept) = match &other {
            Some((other, kept)) => (compare(&again, other, &signs), kept.clone()),
            None => (compare(&then, &again, &signs), Vec::new()),
        };
        let differences: Vec<Shown> = differences
            .into_iter()
            .map(|difference| Shown { went_on: difference.afterwards.went_on(), difference })
            .collect();
        let is_ended_alive = |shown: &&Shown| {
            shown.went_on && shown.difference.is_sooner() && matches!(shown.difference.what, What::End(_))
        };
        Self {
            version: latido_protocol::FORMAT_VERSION,
            recording: recording.to_owned(),
            recorded_by: replayed.recorded_by,
            from: replayed.at.map(|(from, _)| from),
            until: replayed.at.map(|(_, until)| until),
            steps: replayed.steps,
            beginnings: replayed.beginnings,
            in_the_middle: replayed.in_the_middle,
            as_recorded,
            config: config.map(Path::to_owned),
            kept,
            ended_alive: differences.iter().filter(is_ended_alive).count(),
            decisions: other.is_none().then_some(then),
            differences,
        }
    }

    /// Answers whether anything is decided otherwise.
    pub(super) fn differs(&self) -> bool {
        match self.config {
            Some(_) => !self.differences.is_empty(),
            None => !self.as_recorded,
        }
    }
}
