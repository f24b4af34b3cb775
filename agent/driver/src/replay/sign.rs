//! Signs of life in a recording: what became of a subject after a moment.

use std::collections::BTreeMap;
use std::time::Duration;

use latido_policy::Signal;
use latido_protocol::files::{End, Status};
use latido_protocol::registry::Question;
use latido_protocol::{Class, Progress, SubjectName};
use serde::{Deserialize, Serialize};

use super::decision::About;
use crate::fact::{Fact, FoundAttempt, FoundState};
use crate::recording::Line;
use crate::watch_fact::{Look, Signaled, WatchFact};

/// What the recording tells of a subject's attempt after a moment, each with how much later in listening time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sign", rename_all = "kebab-case")]
pub enum Afterwards {
    /// It beat again.
    BeatAgain {
        /// how much later
        #[serde(rename = "after_s", with = "crate::seconds")]
        after: Duration,
    },
    /// Its progress moved on.
    MovedOn {
        /// how much later
        #[serde(rename = "after_s", with = "crate::seconds")]
        after: Duration,
    },
    /// It ended.
    Ended {
        /// how much later
        #[serde(rename = "after_s", with = "crate::seconds")]
        after: Duration,
        /// what the ending meant
        class: Class,
    },
    /// Nothing.
    Nothing,
}

impl Afterwards {
    /// How much later; `None` where nothing came.
    #[must_use]
    pub fn after(self) -> Option<Duration> {
        match self {
            Self::BeatAgain { after } | Self::MovedOn { after } | Self::Ended { after, .. } => Some(after),
            Self::Nothing => None,
        }
    }

    /// Answers whether it lived: it showed that it worked, or it ended well.
    #[must_use]
    pub fn went_on(self) -> bool {
        match self {
            Self::BeatAgain { .. } | Self::MovedOn { .. } | Self::Ended { class: Class::Completed, .. } => true,
            Self::Ended { .. } | Self::Nothing => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Beat,
    Progress,
    Ended(Class),
}

#[derive(Debug, Default)]
struct Told {
    sequence: u64,
    progress: Option<Progress>,
    /// in the order of time
    signs: Vec<(Duration, Sign)>,
}

/// All signs of life of a recording.
#[derive(Debug, Default)]
pub struct Signs {
    told: BTreeMap<(String, u64), Told>,
    listened: Duration,
}

impl Signs {
    /// Takes note of what the next line tells.
    pub fn take(&mut self, line: &Line) {
        let Line::Step(step) = line else { return };
        self.listened += step.passed.listened;
        for fact in &step.facts {
            self.fact(fact);
        }
    }

    /// Listening time up to the last line.
    #[must_use]
    pub fn listened(&self) -> Duration {
        self.listened
    }

    /// What became of it after this moment. What stood still has to have moved on: its beats alone prove nothing.
    #[must_use]
    pub fn after(&self, about: &About, moment: Duration, stood_still: bool) -> Afterwards {
        let Some(told) = self.told.get(&(about.subject.clone(), about.epoch)) else { return Afterwards::Nothing };
        let later = told.signs.iter().filter(|(at, _)| *at > moment);
        let shows = |sign: Sign| match sign {
            Sign::Beat => !stood_still,
            Sign::Progress | Sign::Ended(_) => true,
        };
        let mut later = later.filter(|(_, sign)| shows(*sign));
        let Some((at, sign)) = later.next() else { return Afterwards::Nothing };
        let after = at.saturating_sub(moment);
        match sign {
            Sign::Beat => Afterwards::BeatAgain { after },
            Sign::Progress => Afterwards::MovedOn { after },
            Sign::Ended(class) => Afterwards::Ended { after, class: *class },
        }
    }

    fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Heard { status } => self.heard(status),
            Fact::AttemptEnded { end, .. } => self.ended(end),
            Fact::JobFound(found) => found.attempt.iter().for_each(|attempt| self.found(attempt)),
            Fact::Watched(fact) => self.watched(fact),
            Fact::Asked { question, .. } => {
                if let Question::Beat(beat) = &**question {
                    self.sign(&beat.worker, 0, Sign::Beat);
                }
            }
            Fact::JobRemoved { .. }
            | Fact::WantChanged { .. }
            | Fact::AttemptStarted { .. }
            | Fact::LaunchRefused { .. }
            | Fact::ActivitySeen { .. }
            | Fact::SupervisorGone { .. }
            | Fact::OrphanEnded { .. }
            | Fact::StrategyAnswered { .. }
            | Fact::LookFailed { .. }
            | Fact::RuleAnswered { .. }
            | Fact::GroupLockSeen { .. }
            | Fact::RuleFailed { .. }
            | Fact::Noted { .. } => {}
        }
    }

    fn found(&mut self, attempt: &FoundAttempt) {
        match (&attempt.state, &attempt.status) {
            (FoundState::Ended(end), _) => self.ended(end),
            (FoundState::Running, Some(status)) => self.heard(status),
            (FoundState::Running | FoundState::Launching | FoundState::Unattended(_), _) => {}
        }
    }

    fn heard(&mut self, status: &Status) {
        let told = self.told.entry((status.job.to_string(), status.epoch)).or_default();
        // Who has never beaten by itself shows its presence, which is all that it is judged by.
        if status.sequence > told.sequence || status.sequence == 0 {
            told.sequence = status.sequence;
            let is_new = status.progress.is_some() && status.progress != told.progress;
            told.progress.clone_from(&status.progress);
            told.signs.push((self.listened, if is_new { Sign::Progress } else { Sign::Beat }));
        }
    }

    fn ended(&mut self, end: &End) {
        self.sign(&end.job, end.epoch, Sign::Ended(end.outcome.class));
    }

    fn watched(&mut self, fact: &WatchFact) {
        match fact {
            WatchFact::Signaled(Signaled { check, signal: Signal::Succeeded | Signal::Exited(0), .. }) => {
                self.sign(check, 0, Sign::Beat);
            }
            WatchFact::Looked { process, look: Look::Seen { .. } } => self.sign(process, 0, Sign::Beat),
            WatchFact::Signaled(_)
            | WatchFact::Looked { .. }
            | WatchFact::CheckDefined(_)
            | WatchFact::ProcessDefined(_)
            | WatchFact::PauseWanted { .. }
            | WatchFact::UnpauseWanted { .. } => {}
        }
    }

    fn sign(&mut self, subject: &SubjectName, epoch: u64, sign: Sign) {
        let told = self.told.entry((subject.to_string(), epoch)).or_default();
        told.signs.push((self.listened, sign));
    }
}
