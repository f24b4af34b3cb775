//! What truly happened to a job, written down as it happens: its attempts, their endings, what was said of them to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use latido_protocol::Class;
use latido_protocol::files::{JobSettings, Want};

use crate::checks::Excuse;
use crate::measure::Measure;

/// Deaths as quick as this are too many when they come three in a row.
pub(crate) const QUICK: Duration = Duration::from_secs(1);

/// One attempt as it truly is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    pub(crate) supervisor_lives: bool,
    pub(crate) work_lives: bool,
    pub(crate) started_at: Duration,
    /// when the last of its processes was gone
    pub(crate) gone_at: Duration,
    pub(crate) end: Option<End>,
    /// lines in the ledger
    pub(crate) lines: u32,
    /// when the agent first learned of it
    pub(crate) told_at: Option<Duration>,
    /// the agent that lives ordered its end for want of beats or progress, and did not take that back
    pub(crate) is_given_up: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) class: Class,
    /// stands for exit status or signal
    pub(crate) how: i64,
    pub(crate) ran_for: Duration,
    /// its supervisor saw it die at its start
    pub(crate) is_quick: bool,
    /// its supervisor ended it for want of beats or progress
    pub(crate) by_policy: bool,
}

/// The newest word of an attempt that reached the agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    pub(crate) epoch: u64,
    pub(crate) sequence: u64,
    /// what its supervisor had measured when it sent it
    pub(crate) measure: Measure,
    /// how far it was, and the first beat that said so
    pub(crate) done: Option<u64>,
    pub(crate) done_since: u64,
    /// on the longest line that the agent may go by
    pub(crate) sent_at: Duration,
    pub(crate) arrived_at: Duration,
    /// the agent that lives was told of it: one that begins knows what is written, and a full disk takes nothing
    pub(crate) is_known: bool,
}

/// One job under its name, through all that was made under it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) settings: JobSettings,
    pub(crate) attempts: BTreeMap<u64, Truth>,
    pub(crate) highest_epoch: u64,
    /// the first epoch since a person asked for more
    series_from: u64,
    pub(crate) word: Option<Word>,
    /// what the agent was told that is wanted
    pub(crate) told: Option<Want>,
    pub(crate) told_at: Duration,
    pub(crate) excuses: BTreeSet<Excuse>,
    /// launches refused in a row
    pub(crate) refusals: u32,
}

impl Job {
    pub(crate) fn new(settings: JobSettings) -> Self {
        Self {
            settings,
            attempts: BTreeMap::new(),
            highest_epoch: 0,
            series_from: 0,
            word: None,
            told: None,
            told_at: Duration::ZERO,
            excuses: BTreeSet::new(),
            refusals: 0,
        }
    }

    /// Another job is made under its name.
    pub(crate) fn made(&mut self) {
        self.attempts.clear();
        self.word = None;
        self.begin_anew(0);
    }

    /// A person asked for another attempt, and a series begins with this epoch.
    pub(crate) fn begin_anew(&mut self, epoch: u64) {
        if epoch != 0 && epoch <= self.series_from {
            return;
        }
        self.series_from = epoch;
        self.told = self.told.filter(|want| *want != Want::Stop);
        self.excuses.clear();
        self.refusals = 0;
    }

    pub(crate) fn attempt(&mut self, epoch: u64) -> &mut Truth {
        self.attempts.entry(epoch).or_default()
    }

    pub(crate) fn lost_count(&self) -> u32 {
        let lost = |truth: &&Truth| truth.end.is_some_and(|end| end.class == Class::Lost);
        u32::try_from(self.attempts.values().filter(lost).count()).unwrap_or(u32::MAX)
    }

    /// The agent is told of everything up to this epoch.
    pub(crate) fn tell(&mut self, epoch: u64, now: Duration) {
        self.attempts.range_mut(..=epoch).for_each(|(_, truth)| _ = truth.told_at.get_or_insert(now));
    }

    /// An agent begins, which knows what was carried out and not what was ordered, and no word until it is told.
    pub(crate) fn another_agent(&mut self) {
        self.attempts.values_mut().for_each(|truth| truth.is_given_up = false);
        self.word.iter_mut().for_each(|word| word.is_known = false);
    }

    /// The last attempt of its series that ended.
    pub(crate) fn last_ended(&self) -> Option<&Truth> {
        self.attempts.range(self.series_from..).map(|(_, truth)| truth).rfind(|truth| truth.end.is_some())
    }

    pub(crate) const fn next_epoch(&self) -> u64 {
        self.highest_epoch + 1
    }

    /// Whether something of it lives that the agent knew of before this pass.
    pub(crate) fn is_known_to_live(&self, now: Duration) -> bool {
        let is_known = |truth: &Truth| truth.told_at.is_some_and(|told_at| told_at < now);
        self.attempts.values().any(|truth| is_known(truth) && (truth.work_lives || truth.supervisor_lives))
    }

    /// The endings since a person asked for more.
    pub(crate) fn ends(&self) -> Vec<End> {
        self.attempts.range(self.series_from..).filter_map(|(_, truth)| truth.end).collect()
    }

    /// How long the attempts of its series ran before this epoch.
    pub(crate) fn ran(&self, epoch: u64) -> Duration {
        let before = self.attempts.range(self.series_from.min(epoch)..epoch);
        before.filter_map(|(_, truth)| Some(truth.end?.ran_for)).sum()
    }
}
