//! What the registry answers when it is looked at.

use core::time::Duration;

use crate::{Epoch, Fingerprint, GroupId, Moment, Reason, Verdict, WorkerId, WorkerLease, WorkerStanding};

/// All that is known of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// which
    pub worker: WorkerId,
    /// its group
    pub group: GroupId,
    /// the life of the executor that it belongs to
    pub instance: Epoch,
    /// its registration's fencing number
    pub epoch: Epoch,
    /// where it stands
    pub standing: WorkerStanding,
    /// its verdict
    pub verdict: Verdict,
    /// why
    pub because: Reason,
    /// the verdict that was recorded last
    pub recorded: Verdict,
    /// its lease
    pub lease: WorkerLease,
    /// when it registered
    pub registered_at: Moment,
    /// when it last beat; `None` before the first
    pub heard_at: Option<Moment>,
    /// listening time since it last beat, or registered, or since `baseline`
    pub silence: Duration,
    /// no silence from before this moment counts, where that cuts its silence
    pub baseline: Option<Moment>,
    /// its newest beat's number; 0 before the first
    pub sequence: u64,
    /// stands for its loop state
    pub state: Option<Fingerprint>,
    /// stands for what it works on
    pub active_job: Option<Fingerprint>,
    /// errors it has counted
    pub errors: u32,
    /// claims it holds
    pub claims_count: u32,
    /// when it is judged again, if it stays silent
    pub next: Option<Moment>,
    /// the moment of which all this holds
    pub at: Moment,
}

/// All that is known of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// which
    pub group: GroupId,
    /// the life of its executor; 0 while nobody has opened it
    pub instance: Epoch,
    /// what was decided for it
    pub settings: crate::GroupSettings,
    /// claims that its workers hold
    pub claims_count: u32,
}
