//! All the registry can ask for, and what it answers.

use crate::{Advice, Claim, ClaimLimit, Epoch, GroupId, Moment, Reason, TargetId, Ticket, Verdict, WorkerId};

/// Something to do. The records of one call belong into one transaction, which is durable before an answer that comes
/// after them is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryAction {
    /// Take the group's exclusive lock for whoever asked, and tell `GroupLockTaken` or `GroupLockRefused`.
    TakeGroupLock {
        /// the question
        ticket: Ticket,
        /// which
        group: GroupId,
    },
    /// Write the group's instance. `RemoveWorker` follows for every row of an older one.
    RecordInstance {
        /// whose
        group: GroupId,
        /// the life that begins
        instance: Epoch,
    },
    /// Write the worker's row as it is: it registered, or somebody gave it an order.
    RecordWorker {
        /// which
        worker: WorkerId,
        /// its registration
        epoch: Epoch,
    },
    /// Write a change of verdict.
    RecordVerdict {
        /// whose
        worker: WorkerId,
        /// its registration
        epoch: Epoch,
        /// before
        previous: Verdict,
        /// after
        current: Verdict,
        /// why
        because: Reason,
    },
    /// Write that the worker is dead and that its claims are released, in one transaction with the same condition
    /// again: this registration of this instance, not dead yet, and not heard since.
    ReapWorker {
        /// which
        worker: WorkerId,
        /// its group
        group: GroupId,
        /// its instance
        instance: Epoch,
        /// its registration
        epoch: Epoch,
        /// when it was last heard, or registered
        heard_at: Moment,
        /// what it held
        claims: ClaimList,
        /// why
        because: Reason,
    },
    /// Write that the worker ended by its own will, with what it had not released.
    RecordLeft {
        /// which
        worker: WorkerId,
        /// its registration
        epoch: Epoch,
        /// what it held
        claims: ClaimList,
        /// why
        because: Reason,
    },
    /// Fence off a registration that another process took the name of; its row is replaced by `RecordWorker`.
    FenceWorker {
        /// which
        worker: WorkerId,
        /// the registration that is refused from now on
        epoch: Epoch,
        /// what it held
        claims: ClaimList,
        /// why
        because: Reason,
    },
    /// Remove the worker's row: it belongs to an older instance, or too many dead ones are kept. Its number may be
    /// given again.
    RemoveWorker {
        /// which
        worker: WorkerId,
        /// its registration
        epoch: Epoch,
        /// what it held
        claims: ClaimList,
        /// why; `None` for a dead one that is one too many
        because: Option<Reason>,
    },
    /// Write who holds the target.
    RecordClaim {
        /// which
        target: TargetId,
        /// its claim
        claim: Claim,
    },
    /// Remove the target's row: its holder released it, or it is forgotten. Its number may be given again.
    RemoveTarget {
        /// which
        target: TargetId,
    },
    /// Tell the log and the metrics what a sweep found, once for each that found something.
    ReportSweep(Sweep),
    /// Answer whoever asked.
    Answer {
        /// the question
        ticket: Ticket,
        /// its answer
        answer: RegistryAnswer,
    },
}

/// Names the claims of one action; [`Registry::released`](crate::Registry::released) has them until the next call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimList {
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl ClaimList {
    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }
}

/// What one sweep found. Who it was, [`Registry::swept`](crate::Registry::swept) says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// workers whose first beat did not come in time
    pub missing_count: u32,
    /// workers that were declared dead
    pub dead_count: u32,
    /// claims that were released by that
    pub released_count: u32,
    /// targets that are stuck by that
    pub stuck_count: u32,
}

/// What a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistryAnswer {
    /// The group is open, with this instance.
    Opened {
        /// the life that begins
        instance: Epoch,
    },
    /// The worker is registered.
    Registered {
        /// the registration's fencing number
        epoch: Epoch,
        /// its instance
        instance: Epoch,
    },
    /// What a worker is told with its beat.
    Advised(Advice),
    /// The target is this worker's: by a claim, or by an assignment.
    Claimed {
        /// who holds it
        holder: WorkerId,
        /// the claim's fencing number
        epoch: Epoch,
    },
    /// Somebody holds the target, or the asker does for another event.
    AlreadyClaimed {
        /// who holds it
        holder: WorkerId,
        /// the claim's fencing number
        epoch: Epoch,
    },
    /// There is no room for one more claim.
    CapacityRejected(ClaimLimit),
    /// It is done.
    Done,
    /// It cannot be done.
    Refused(Refusal),
}

/// Why something cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No such group is known.
    UnknownGroup,
    /// No such worker is registered.
    UnknownWorker,
    /// More workers are registered than there may be.
    WorkersFull,
    /// Another executor holds the group's lock.
    GroupLocked,
    /// Another instance of the group has begun.
    OldInstance {
        /// that one
        instance: Epoch,
    },
    /// The worker is dead, or another registration has its name.
    Superseded,
    /// The worker drains.
    Draining,
    /// More groups are known than there may be.
    GroupsFull,
    /// The target was given up: it lost as many holders as it may, and waits for a person.
    Stuck {
        /// holders that it lost
        pickups: u32,
        /// the claim that was fenced off last
        fenced: Epoch,
    },
    /// Nobody holds the target.
    NotClaimed,
    /// The target was claimed again since.
    OldEpoch {
        /// the present claim's
        epoch: Epoch,
    },
}
