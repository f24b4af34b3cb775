//! A driver that is recorded, and what is told to every replay.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use latido_driver::recording::{DriverSettings, Line, Recorder};
use latido_driver::replay::{Conditions, Decided, Replay, Signs, decided_then};
use latido_driver::{AgentLimits, Driver, Fact};
use latido_policy::AlertSettings;
use latido_store::MemoryStore;

use crate::world::{SECOND, World};

/// Keeps lines as texts, as a file does.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) lines: Arc<Mutex<Vec<String>>>,
    /// a new beginning is wanted once, after so many lines
    pub(crate) lines_max: Option<usize>,
}

impl Recorder for Kept {
    fn note(&mut self, line: &Line) {
        let mut lines = self.lines.lock().unwrap();
        if matches!(line, Line::Began(_)) {
            lines.clear();
        }
        lines.push(serde_json::to_string(line).unwrap());
    }

    fn wants_beginning(&self) -> bool {
        let lines = self.lines.lock().unwrap();
        let is_first = lines.first().is_some_and(|line| line.contains("\"is_start\":true"));
        is_first && self.lines_max.is_some_and(|max| lines.len() >= max)
    }
}

impl Kept {
    pub(crate) fn text(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Replays the lines, and answers all that was decided.
    pub(crate) fn replay(&self, conditions: impl Conditions) -> Vec<Decided> {
        let mut replay = Replay::new(conditions);
        for line in self.lines() {
            replay.take(&line).unwrap();
        }
        replay.into_decided()
    }

    /// What was decided when it was recorded.
    pub(crate) fn decided(&self) -> Vec<Decided> {
        let mut signs = Signs::default();
        let mut decided = Vec::new();
        for line in self.lines() {
            signs.take(&line);
            if let Line::Step(step) = &line {
                decided.extend(decided_then(step, signs.listened()));
            }
        }
        decided
    }

    pub(crate) fn signs(&self) -> Signs {
        let mut signs = Signs::default();
        self.lines().iter().for_each(|line| signs.take(line));
        signs
    }
}

pub(crate) fn agent_settings() -> DriverSettings {
    DriverSettings {
        history_every: 300 * SECOND,
        limits: AgentLimits {
            resumes_at_once: NonZeroU32::MIN,
            resume_every: SECOND,
            blackout_share_percent: 50,
            blackout_count_min: 5,
            slots: BTreeMap::new(),
        },
        groups: BTreeMap::new(),
        alerts: AlertSettings::default(),
        rules: Vec::new(),
        confirms: Vec::new(),
    }
}

/// A world whose driver is recorded.
pub(crate) fn recorded(kept: &Kept) -> World {
    let driver = Driver::with_settings(MemoryStore::default(), &agent_settings()).unwrap();
    let mut world = World::around(driver);
    let wall = world.wall();
    world.driver.record_to(Box::new(kept.clone()), agent_settings(), wall).unwrap();
    world
}

/// Other settings for every job.
pub(crate) struct ForJobs<F>(pub(crate) F);

impl<F: FnMut(&mut latido_protocol::files::JobSettings)> Conditions for ForJobs<F> {
    fn settings(&mut self, recorded: DriverSettings) -> DriverSettings {
        recorded
    }

    fn fact(&mut self, mut recorded: Fact) -> Fact {
        if let Fact::JobFound(found) = &mut recorded {
            self.0(&mut found.job.settings);
        }
        recorded
    }
}
