//! Who is who: names on one side, the policy's dense ids on the other, and the latest whole record of each subject.

use std::collections::{BTreeMap, BTreeSet};

use latido_policy::{Moment, SubjectId};
use latido_protocol::SubjectName;
use latido_protocol::files::{End, JobFile, Start, Status, Wanted};
use latido_protocol::status::SubjectKind;

use crate::fact::AttemptName;
use crate::watched::{OfKind, Watched};

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
    /// its place among all that ever waited to start, while it waits: the order is that in which they came
    pub(crate) line: Option<u64>,
    /// what the strategy or a launch said last
    pub(crate) remark: Option<String>,
    /// what its first process was last seen to wait in, while the attempt runs
    pub(crate) doing: Option<String>,
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
            line: None,
            remark: None,
            doing: None,
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
    watched: BTreeMap<SubjectId, Watched>,
    /// ids of names that an alert or a silence knows from before the agent's start, and nobody has been found for yet
    reserved: BTreeMap<SubjectName, SubjectId>,
    next: u32,
}

impl Book {
    pub(crate) fn id(&self, name: &SubjectName) -> Option<SubjectId> {
        self.ids.get(name).copied()
    }

    pub(crate) fn add(&mut self, latest: Latest) -> SubjectId {
        let id = self.new_id(latest.job.name.clone());
        self.latest.insert(id, latest);
        id
    }

    pub(crate) fn add_watched(&mut self, watched: Watched) -> SubjectId {
        let id = self.new_id(watched.name.clone());
        self.watched.insert(id, watched);
        id
    }

    fn new_id(&mut self, name: SubjectName) -> SubjectId {
        let id = self.reserved.remove(&name).unwrap_or_else(|| self.free_id());
        self.ids.insert(name, id);
        id
    }

    pub(crate) fn remove_job(&mut self, name: &SubjectName) -> Option<SubjectId> {
        let id = self.id(name)?;
        self.latest.remove(&id)?;
        self.ids.remove(name)
    }

    pub(crate) fn name(&self, id: SubjectId) -> Option<&SubjectName> {
        let job = self.latest.get(&id).map(|latest| &latest.job.name);
        job.or_else(|| self.watched.get(&id).map(|watched| &watched.name))
    }

    pub(crate) fn kind(&self, id: SubjectId) -> SubjectKind {
        self.watched.get(&id).map_or(SubjectKind::Job, Watched::kind)
    }

    pub(crate) fn watched(&self, id: SubjectId) -> Option<&Watched> {
        self.watched.get(&id)
    }

    pub(crate) fn watched_mut(&mut self, id: SubjectId) -> Option<&mut Watched> {
        self.watched.get_mut(&id)
    }

    /// What is only watched, in the order of ids.
    pub(crate) fn all_watched(&self) -> impl Iterator<Item = (SubjectId, &Watched)> {
        self.watched.iter().map(|(id, watched)| (*id, watched))
    }

    pub(crate) fn checks(&self) -> Vec<SubjectId> {
        let checks = self.all_watched().filter(|(_, watched)| matches!(watched.of_kind, OfKind::Check(_)));
        checks.map(|(id, _)| id).collect()
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

    /// Ids of names that nobody was found for, but for those who may be found later.
    pub(crate) fn take_reserved(&mut self, but: &BTreeSet<SubjectName>) -> Vec<SubjectId> {
        let (kept, taken) = std::mem::take(&mut self.reserved).into_iter().partition(|(name, _)| but.contains(name));
        self.reserved = kept;
        let taken: BTreeMap<SubjectName, SubjectId> = taken;
        taken.into_values().collect()
    }

    fn free_id(&mut self) -> SubjectId {
        let id = SubjectId(self.next);
        self.next += 1;
        id
    }

    pub(crate) fn latest(&self, id: SubjectId) -> Option<&Latest> {
        self.latest.get(&id)
    }

    pub(crate) fn latest_mut(&mut self, id: SubjectId) -> Option<&mut Latest> {
        self.latest.get_mut(&id)
    }

    /// All subjects, by name.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SubjectId> {
        self.ids.values().copied()
    }

    /// The jobs by name, so that documents come in one order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SubjectName, SubjectId, &Latest)> {
        self.ids.iter().filter_map(|(name, id)| self.latest.get(id).map(|latest| (name, *id, latest)))
    }
}
