//! All the registry can be told.

use crate::{
    Claim, Epoch, Fingerprint, GroupId, GroupSettings, Moment, TargetId, TargetState, Verdict, WorkerId, WorkerLease,
    WorkerReport, WorkerStanding,
};

/// Names a question, so that its answer finds whoever asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Who speaks: a worker, and which registration of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// the worker
    pub worker: WorkerId,
    /// its registration's epoch; `None` trusts the name alone
    pub epoch: Option<Epoch>,
}

/// Something that has happened to workers, groups or targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryEvent {
    /// A group is known from now on, or its settings have changed. An instance never falls.
    GroupAdded {
        /// which
        group: GroupId,
        /// what was decided for it
        settings: GroupSettings,
        /// its instance as it was recorded; 0 where nobody opened it
        instance: Epoch,
    },
    /// Somebody begins a new life of the group's executor.
    GroupOpenAsked {
        /// the question
        ticket: Ticket,
        /// which
        group: GroupId,
    },
    /// The group's exclusive lock is held by whoever asked.
    GroupLockTaken {
        /// the question
        ticket: Ticket,
        /// which
        group: GroupId,
    },
    /// Somebody else holds the group's exclusive lock.
    GroupLockRefused {
        /// the question
        ticket: Ticket,
        /// which
        group: GroupId,
    },
    /// A worker says that it is there. Its name may be known: then this is another process.
    WorkerRegistered {
        /// the question
        ticket: Ticket,
        /// which
        worker: WorkerId,
        /// its group
        group: GroupId,
        /// the instance that it was started by; `None` is the group's own
        instance: Option<Epoch>,
        /// its own lease; `None` is the group's
        lease: Option<WorkerLease>,
    },
    /// A worker beat.
    BeatHeard {
        /// the question
        ticket: Ticket,
        /// who
        from: Speaker,
        /// what it says
        report: WorkerReport,
    },
    /// A worker asks for a target.
    ClaimAsked {
        /// the question
        ticket: Ticket,
        /// who
        from: Speaker,
        /// for what
        target: TargetId,
        /// stands for what it is claimed for
        event: Fingerprint,
    },
    /// Somebody asks which worker of a group takes a target.
    AssignAsked {
        /// the question
        ticket: Ticket,
        /// whose workers
        group: GroupId,
        /// what
        target: TargetId,
    },
    /// The holder gives a target back.
    ReleaseAsked {
        /// the question
        ticket: Ticket,
        /// which
        target: TargetId,
        /// its claim's epoch
        epoch: Epoch,
    },
    /// A person wants a target that has no holder to be given out again, with no pickups.
    ReviveAsked {
        /// the question
        ticket: Ticket,
        /// which
        target: TargetId,
    },
    /// Somebody wants a worker to take nothing more.
    DrainAsked {
        /// the question
        ticket: Ticket,
        /// which
        worker: WorkerId,
    },
    /// Somebody wants a worker to end at once.
    StopAsked {
        /// the question
        ticket: Ticket,
        /// which
        worker: WorkerId,
    },
    /// A worker says that it ends.
    WorkerLeft {
        /// the question
        ticket: Ticket,
        /// who
        from: Speaker,
    },
    /// The agent started and knows every epoch up to this one as given.
    EpochRestored {
        /// the highest
        epoch: Epoch,
    },
    /// The agent started and found a worker's row.
    WorkerRestored {
        /// which
        worker: WorkerId,
        /// its row
        found: FoundWorker,
    },
    /// The agent started and found a target's row.
    TargetRestored {
        /// which
        target: TargetId,
        /// what is the case
        state: TargetState,
        /// holders that it lost
        pickups: u32,
    },
}

/// A worker's row as it was found. Its moments are placed on this agent's line with the silence they had when the
/// agent before was last heard of, so that nobody is judged by the agent's absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundWorker {
    /// its group
    pub group: GroupId,
    /// its instance
    pub instance: Epoch,
    /// its registration's epoch
    pub epoch: Epoch,
    /// its lease
    pub lease: WorkerLease,
    /// when it registered
    pub registered_at: Moment,
    /// when it was last heard, or registered
    pub heard_at: Moment,
    /// where it stands
    pub standing: WorkerStanding,
    /// the verdict that was recorded last
    pub recorded: Verdict,
    /// its newest beat; a sequence of 0 or none is before the first
    pub report: WorkerReport,
}

impl From<Claim> for TargetState {
    fn from(claim: Claim) -> Self {
        Self::Held(claim)
    }
}
