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
    /// ids of names that an alert or a silence knows from before the agent's start, and nobody has been found for yet
    reserved: BTreeMap<SubjectName, SubjectId>,
    next: u32,
}

impl Book {
    pub(crate) fn id(&self, name: &SubjectName) -> Option<SubjectId> {
        self.ids.get(name).copied()
    }

    pub(crate) fn add(&mut self, latest: Latest) -> SubjectId {
        let id = self.reserved.remove(&latest.job.name).unwrap_or_else(|| self.free_id());
        self.ids.insert(latest.job.name.clone(), id);
        self.latest.insert(id, latest);
        id
    }

    /// The id of a name, or the one that it will have if it is found.
    pub(crate) fn reserve(&mut self, name: SubjectName) -> SubjectId {
        if let Some(id) = self.id(&name).or_else(|| self.reserved.get(&name).copied()) {
            return id;
        }
        let id = self.free_id();
        self.reserved.insert(name, id);
        id
    }

    /// Ids of names that nobody was found for.
    pub(crate) fn take_reserved(&mut self) -> impl Iterator<Item = SubjectId> + use<> {
        std::mem::take(&mut self.reserved).into_values()
    }

    fn free_id(&mut self) -> SubjectId {
        let id = SubjectId(self.next);
        self.next += 1;
        id
    }

    pub(crate) fn remove(&mut self, name: &SubjectName) -> Option<SubjectId> {
        let id = self.ids.remove(name)?;
        self.latest.remove(&id);
        Some(id)
    }

    pub(crate) fn name(&self, id: SubjectId) -> Option<&SubjectName> {
        self.latest.get(&id).map(|latest| &latest.job.name)
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
