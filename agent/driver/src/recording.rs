//! The recording: what the driver is told and what it decides, as lines from which it can be replayed.
//!
//! A recording is a file of JSON objects, one a line. `began` comes first: the version of the format, the settings in
//! force and the rows that the driver began with. After it stands one line for each call of the driver, in order: `step`
//! with the time that passed, the facts and what was decided, `alert-asked`, and `absent-forgotten`. Nothing else reaches
//! the driver, so the same lines lead to the same decisions. A recording may begin anew at any line, by another `began`:
//! the driver was started again, or the lines before went to another file.
//!
//! Of a job its settings are written down, and neither its command nor its environment: they may hold secrets, and
//! decide nothing. Facts have the form that they have in memory, so a line is read by the version that wrote it and by
//! later ones of the same format version.

mod settings;

use std::collections::BTreeSet;

use latido_protocol::alerts::AlertRequest;
use latido_protocol::files::Start;
use latido_protocol::journal::Body;
use latido_protocol::{SubjectName, WallTime};
use latido_store::{NewEntry, Rows, Store, StoreError};
use serde::{Deserialize, Serialize};

pub use settings::DriverSettings;

use crate::fact::{Fact, FoundJob, Order};
use crate::listening::Passed;
use crate::watch_fact::WatchFact;
use crate::{Driver, Output, seconds};

/// The version of the format; a reader refuses a higher one.
pub const RECORDING_VERSION: u32 = 1;

/// Takes the lines of a recording. It must not wait: the driver does.
pub trait Recorder: Send {
    /// Takes the next line.
    fn note(&mut self, line: &Line);

    /// Answers whether the recording is to begin anew: its file is full, or a line could not be kept.
    fn wants_beginning(&self) -> bool;
}

/// One line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// It begins, or begins anew.
    Began(Box<Beginning>),
    /// One step of the driver.
    Step(Box<Step>),
    /// Something was asked about alerts, between two steps.
    AlertAsked {
        /// what
        request: AlertRequest,
        /// the calendar then
        wall: WallTime,
        /// the store took no records
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        store_is_away: bool,
    },
    /// Subjects that nobody stands for were forgotten, between two steps.
    AbsentForgotten {
        /// those that could not be read, and were kept
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        unread: BTreeSet<SubjectName>,
        /// the calendar then
        wall: WallTime,
    },
}

/// From where the lines that follow go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// [`RECORDING_VERSION`]
    pub version: u32,
    /// the version of the program
    pub latido: String,
    /// the calendar then
    pub at: WallTime,
    /// an agent's life begins here. Otherwise it goes on, and what follows is replayed from what a restart would know: the
    /// rows, and the folders of the jobs, which are told at once.
    pub is_start: bool,
    /// what was decided for the agent
    pub settings: DriverSettings,
    /// what the store held
    pub rows: Rows,
}

/// One step: what the driver was told, and what it answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// the time since the step before
    #[serde(flatten)]
    pub passed: Passed,
    /// what sources had learned
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// the store took no records
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub store_is_away: bool,
    /// when it wanted to be called again
    #[serde(rename = "wake_in_s", with = "seconds")]
    pub wake_in: std::time::Duration,
    /// what was to be done
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    /// what was written into the journal
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<Body>,
}

/// A recording under way.
pub(crate) struct Recording {
    recorder: Box<dyn Recorder>,
    settings: DriverSettings,
    /// what the config watches, as it was told: a new beginning tells it again
    definitions: Vec<WatchFact>,
}

impl<S: Store> Driver<S> {
    /// Makes a driver and tells it all that was decided for the agent.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn with_settings(store: S, settings: &DriverSettings) -> Result<Self, StoreError> {
        let mut driver = Self::new(store, settings.history_every)?;
        driver.set_groups(settings.groups.clone());
        driver.configure(&settings.limits);
        driver.set_alerts(settings.alerts, &settings.rules, &settings.confirms);
        Ok(driver)
    }

    /// Records from here on. To be called before the first step; `settings` are those that the driver was made with.
    ///
    /// # Errors
    /// The store cannot be read; nothing is recorded.
    pub fn record_to(
        &mut self,
        recorder: Box<dyn Recorder>,
        settings: DriverSettings,
        wall: WallTime,
    ) -> Result<(), StoreError> {
        let rows = Rows::of(&self.store)?;
        let mut recording = Recording { recorder, settings, definitions: Vec::new() };
        recording.begin(rows, wall, true);
        self.recording = Some(recording);
        Ok(())
    }

    /// The facts as they are recorded, where they are.
    pub(crate) fn to_record(&self, facts: &[Fact]) -> Option<Vec<Fact>> {
        self.recording.is_some().then(|| facts.iter().map(withheld).collect())
    }

    pub(crate) fn record_step(&mut self, facts: Vec<Fact>, passed: Passed, output: &Output) {
        let Some(recording) = &mut self.recording else { return };
        recording.learn(&facts);
        let step = Step {
            passed,
            facts,
            store_is_away: output.store_error.is_some(),
            wake_in: output.wake_in,
            orders: output.orders.iter().cloned().map(without_command).collect(),
            entries: bodies(&output.entries),
        };
        recording.recorder.note(&Line::Step(Box::new(step)));
        if recording.recorder.wants_beginning()
            && let Ok(rows) = Rows::of(&self.store)
        {
            recording.begin(rows, passed.wall, false);
        }
    }

    pub(crate) fn record_alert_request(&mut self, request: AlertRequest, wall: WallTime, store_is_away: bool) {
        if let Some(recording) = &mut self.recording {
            recording.recorder.note(&Line::AlertAsked { request, wall, store_is_away });
        }
    }

    pub(crate) fn record_forgetting(&mut self, unread: &BTreeSet<SubjectName>, wall: WallTime) {
        if let Some(recording) = &mut self.recording {
            recording.recorder.note(&Line::AbsentForgotten { unread: unread.clone(), wall });
        }
    }
}

impl Recording {
    fn begin(&mut self, rows: Rows, at: WallTime, is_start: bool) {
        let beginning = Beginning {
            version: RECORDING_VERSION,
            latido: env!("CARGO_PKG_VERSION").to_owned(),
            at,
            is_start,
            settings: self.settings.clone(),
            rows,
        };
        self.recorder.note(&Line::Began(Box::new(beginning)));
        if is_start {
            return;
        }
        // At an agent's start its sources tell this; in the middle of its life nobody tells it twice.
        let step = Step {
            passed: Passed { listened: std::time::Duration::ZERO, gap: None, wall: at },
            facts: self.definitions.iter().cloned().map(|fact| Fact::Watched(Box::new(fact))).collect(),
            store_is_away: false,
            wake_in: crate::PASS_EVERY,
            orders: Vec::new(),
            entries: Vec::new(),
        };
        self.recorder.note(&Line::Step(Box::new(step)));
    }

    fn learn(&mut self, facts: &[Fact]) {
        for fact in facts {
            let Fact::Watched(fact) = fact else { continue };
            let Some(name) = defined(fact) else { continue };
            self.definitions.retain(|known| defined(known) != Some(name));
            self.definitions.push((**fact).clone());
        }
    }
}

/// The name that a definition defines.
fn defined(fact: &WatchFact) -> Option<&SubjectName> {
    match fact {
        WatchFact::CheckDefined(definition) => Some(&definition.name),
        WatchFact::ProcessDefined(definition) => Some(&definition.name),
        WatchFact::Signaled(_)
        | WatchFact::Looked { .. }
        | WatchFact::PauseWanted { .. }
        | WatchFact::UnpauseWanted { .. } => None,
    }
}

/// Entries as the journal has them. What the driver has just written can be read.
pub(crate) fn bodies(entries: &[NewEntry]) -> Vec<Body> {
    entries.iter().filter_map(|entry| serde_json::from_str(&entry.body).ok()).collect()
}

/// The fact without what may hold a secret.
fn withheld(fact: &Fact) -> Fact {
    let mut fact = fact.clone();
    match &mut fact {
        Fact::JobFound(found) => withhold_job(found),
        Fact::AttemptStarted { start } => withhold_start(start),
        Fact::AttemptEnded { start, .. } => start.iter_mut().for_each(|start| withhold_start(start)),
        Fact::StrategyAnswered { command, .. } => *command = None,
        Fact::JobRemoved { .. }
        | Fact::WantChanged { .. }
        | Fact::LaunchRefused { .. }
        | Fact::Heard { .. }
        | Fact::ActivitySeen { .. }
        | Fact::SupervisorGone { .. }
        | Fact::OrphanEnded { .. }
        | Fact::LookFailed { .. }
        | Fact::RuleAnswered { .. }
        | Fact::Asked { .. }
        | Fact::GroupLockSeen { .. }
        | Fact::Watched(_)
        | Fact::RuleFailed { .. }
        | Fact::Noted { .. } => {}
    }
    fact
}

fn withhold_job(found: &mut FoundJob) {
    found.job.command.clear();
    found.job.environment.clear();
    found.earlier.iter_mut().for_each(|(start, _)| withhold_start(start));
    found.attempt.iter_mut().for_each(|attempt| withhold_start(&mut attempt.start));
}

fn withhold_start(start: &mut Start) {
    start.command.clear();
}

/// The order without the command, which decides nothing.
pub(crate) fn without_command(mut order: Order) -> Order {
    match &mut order {
        Order::Launch { command, .. } => *command = None,
        Order::AskStrategy { .. }
        | Order::EndAttempt { .. }
        | Order::EndOrphan { .. }
        | Order::CheckGroupLock { .. }
        | Order::RecordLost { .. } => {}
    }
    order
}
