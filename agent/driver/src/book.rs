//! Who is who: names on one side, the policy's dense ids on the other, and the latest whole record of each subject.

use std::collections::BTreeMap;

use latido_policy::{Moment, SubjectId};
use latido_protocol::SubjectName;
use latido_protocol::files::{End, JobFile, Start, Status, Wanted};

use crate::fact::AttemptName;

/// The latest of one job.
#[derive(Clone, Debug)]
pub struct Latest {
    /// `job.json`
    pub job: JobFile,
    /// `wanted.json`
    pub wanted: Wanted,
    /// `start.json` of the latest attempt
    pub start: Option<Start>,
    /// its latest beat
    pub status: Option<Status>,
    /// its ending
    pub end: Option<End>,
    /// when a beat was last put into the journal
    pub(crate) sampled_at: Option<Moment>,
    /// the highest epoch whose start is in the journal
    pub(crate) journaled_start: u64,
    /// the highest epoch whose ending is in the journal
    pub(crate) journaled_end: u64,
    /// what the strategy or a launch said last
    pub(crate) remark: Option<String>,
    /// the highest epoch that its row has had: a refused launch spends one, and no row goes back
    pub(crate) row_epoch: u64,
    /// the command that the strategy proposed for the next attempt
    pub(crate) command: Option<Vec<String>>,
}

impl Latest {
    pub(crate) fn new(job: JobFile, wanted: Wanted) -> Self {
        Self {
            job,
            wanted,
            start: None,
            status: None,
            end: None,
            sampled_at: None,
            journaled_start: 0,
            journaled_end: 0,
            remark: None,
            row_epoch: 0,
            command: None,
        }
    }

    /// The latest attempt, where there is one.
    pub fn attempt(&self) -> Option<AttemptName> {
        self.start.as_ref().map(AttemptName::of)
    }
}

/// All subjects. An id is never given twice, so that a late answer for a removed job meets nobody.
#[derive(Debug, Default)]
pub(crate) struct Book {
    ids: BTreeMap<SubjectName, SubjectId>,
    latest: BTreeMap<SubjectId, Latest>,
    next: u32,
}

impl Book {
    pub(crate) fn id(&self, name: &SubjectName) -> Option<SubjectId> {
        self.ids.get(name).copied()
    }

    pub(crate) fn add(&mut self, latest: Latest) -> SubjectId {
        let id = SubjectId(self.next);
        self.next += 1;
        self.ids.insert(latest.job.name.clone(), id);
        self.latest.insert(id, latest);
        id
    }

    pub(crate) fn remove(&mut self, name: &SubjectName) -> Option<SubjectId> {
        let id = self.ids.remove(name)?;
        self.latest.remove(&id);
        Some(id)
    }

    pub(crate) fn latest(&self, id: SubjectId) -> Option<&Latest> {
        self.latest.get(&id)
    }

    pub(crate) fn latest_mut(&mut self, id: SubjectId) -> Option<&mut Latest> {
        self.latest.get_mut(&id)
    }

    /// By name, so that documents come in one order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SubjectName, SubjectId, &Latest)> {
        self.ids.iter().filter_map(|(name, id)| self.latest.get(id).map(|latest| (name, *id, latest)))
    }
}
