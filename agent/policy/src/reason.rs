//! Why something was decided, for logs, the journal and `latido why`.

use core::time::Duration;

use crate::{AttemptNumber, CheckReason, Class, Counter, Epoch, ProcessReason};

/// Why. One variant for each cause, with the facts it came from; `Display` gives one line for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// no attempt has been started yet
    NotStarted,
    /// a launch has begun and nothing has been heard of it yet
    LaunchBegun {
        /// since the launch began
        waited: Duration,
        /// time it has
        start_within: Duration,
    },
    /// a launch has begun and nothing was heard of it in time
    LaunchOverdue {
        /// since the launch began
        waited: Duration,
        /// time it had
        start_within: Duration,
    },
    /// it runs, and its first beat may still come
    FirstBeatAwaited {
        /// since the start
        waited: Duration,
        /// time it has
        start_within: Duration,
    },
    /// it runs, and its first beat did not come in time
    NoFirstBeat {
        /// since the start
        waited: Duration,
        /// time it had
        start_within: Duration,
    },
    /// its process exists, and nothing more is asked of it
    Present,
    /// its beats come
    BeatsCome {
        /// since the last one
        silence: Duration,
        /// how often they are expected
        interval: Duration,
    },
    /// the next beat is overdue
    BeatOverdue {
        /// since the last one
        silence: Duration,
        /// how often they are expected
        interval: Duration,
    },
    /// the lease ran out
    LeaseRanOut {
        /// since the last beat
        silence: Duration,
        /// silence that is allowed
        ttl: Duration,
    },
    /// its progress stands still
    ProgressStill {
        /// since it last changed
        still: Duration,
        /// standstill that is allowed
        hung_after: Duration,
        /// since its output, CPU time or I/O last grew; `None` where nobody measures it
        idle: Option<Duration>,
    },
    /// its progress goes round in a circle
    Looping {
        /// beats in a row that said nothing new
        repeated: u32,
        /// such beats that are allowed
        looping_after: u32,
    },
    /// it announced that it would be silent
    Excused {
        /// how much longer that counts
        left: Duration,
    },
    /// it says itself that it waits for a person
    NeedsPerson {
        /// since it last said anything
        silence: Duration,
    },
    /// it says itself that it is broken
    SaysBroken,
    /// it says itself that it fails
    SaysFailing {
        /// since it last said anything
        silence: Duration,
    },
    /// it said that it fails, and then its lease ran out
    FailingAndSilent {
        /// since the last beat
        silence: Duration,
        /// silence that is allowed
        ttl: Duration,
    },
    /// its supervisor is gone and its processes live
    SupervisorGone,
    /// its supervisor is gone, and so is every process of it
    ProvenGone,
    /// whether it lives cannot be told
    CannotTell,
    /// its ending is recorded
    AttemptEnded {
        /// what the ending means
        class: Class,
        /// for want of what latido ended it, where it did
        order: Option<StopReason>,
    },
    /// it runs
    AttemptRuns {
        /// its number
        number: AttemptNumber,
    },
    /// its supervisor says that a stop has begun
    StopSeen,
    /// somebody ordered its stop
    Commanded,
    /// its longest time is over
    RanTooLong {
        /// since the start
        running: Duration,
        /// longest time of one attempt
        run_for: Duration,
    },
    /// its attempts together have had all their time
    WallTimeSpent {
        /// time of all attempts since the last resume by hand
        ran: Duration,
        /// time they may have
        wall_time_max: Duration,
    },
    /// its first byte of output did not come in time
    NoOutput {
        /// since the start
        waited: Duration,
        /// time it had
        first_output_within: Duration,
    },
    /// its attempts together have used up what they may
    BudgetUsedUp {
        /// what
        counter: Counter,
        /// how much they used up
        spent: u64,
        /// how much they may
        budget: u64,
    },
    /// an attempt with a higher epoch runs
    Fenced {
        /// that epoch
        by: Epoch,
    },
    /// somebody else is starting it
    StartedElsewhere,
    /// it is launched for the first time
    FirstAttempt,
    /// somebody asked for another attempt
    ResumedByHand,
    /// its policy asks for another attempt
    Resumed {
        /// what the last ending means
        after: Class,
        /// for want of what latido ended it, where it did
        order: Option<StopReason>,
    },
    /// it waits before its next attempt
    BackoffBegun {
        /// what the last ending means
        after: Class,
        /// for want of what latido ended it, where it did
        order: Option<StopReason>,
        /// how long it waits
        delay: Duration,
    },
    /// its strategy wants to be asked again later
    StrategyWaits {
        /// how long
        delay: Duration,
    },
    /// its strategy says that a person is needed
    StrategyHolds,
    /// its strategy says that it will never work
    StrategyGaveUp,
    /// its strategy could not answer
    StrategyFailed,
    /// its policy resumes nothing that ended so
    NotResumed {
        /// what the ending means
        class: Class,
    },
    /// it has no attempts left
    AttemptsSpent {
        /// attempts so far, since the last resume by hand
        attempts: u32,
        /// attempts it may have
        max_attempts: u32,
    },
    /// attempt after attempt ended without a new best checkpoint
    NoProgress {
        /// such attempts in a row
        attempts: u32,
        /// so many are allowed
        attempts_max: u32,
    },
    /// it was lost too often
    PickupsSpent {
        /// lost attempts so far, since the last resume by hand
        pickups: u32,
        /// lost attempts at which it is given up
        max_pickups: u32,
    },
    /// it died in the same way at once, again and again
    IdenticalDeaths {
        /// how often in a row
        deaths: u32,
        /// how long the last one ran
        ran_for: Duration,
    },
    /// its policy leaves an orphan to a person
    OrphanHeld,
    /// an orphan was found while it is paused
    OrphanWhilePaused,
    /// processes of it could not be ended
    Survivors {
        /// how many
        count: u32,
    },
    /// as many run already as a slot of it allows
    SlotAwaited,
    /// the agent has not looked at every job since it started, and one of them may hold its slot
    RecoveryAwaited,
    /// many are resumed, and they are started one after another
    PaceAwaited,
    /// somebody else holds its lock
    LaunchLocked {
        /// launches refused in a row
        refusals: u32,
    },
    /// somebody else started it with a higher epoch
    LaunchSuperseded,
    /// what is wanted changed before the launch
    LaunchNotWanted,
    /// its launch failed for reasons of the host
    LaunchFailed {
        /// launches refused in a row
        refusals: u32,
    },
    /// its files cannot be read
    LaunchUnreadable,
    /// it is watched and judged
    Watched,
    /// why a check has its verdict
    Check(CheckReason),
    /// why a watched process has its verdict
    Process(ProcessReason),
    /// somebody asked that it is not judged until an end
    Paused {
        /// how long; `None` is until it is told otherwise
        length: Option<Duration>,
    },
}

/// Why an attempt is ended; decides the class of its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Somebody said so: class `stopped`.
    Commanded,
    /// Its lease ran out: class `lost`.
    Stale,
    /// Its progress stands still, or it says that it is broken: class `lost`.
    Hung,
    /// A limit of its own: class `limit`.
    Limit,
    /// Its epoch was fenced off: class `lost`.
    Superseded,
}

impl StopReason {
    /// Answers whether it ends an attempt for want of beats or progress: only so that another one may follow.
    pub(crate) const fn is_for_want(self) -> bool {
        match self {
            Self::Stale | Self::Hung => true,
            Self::Commanded | Self::Limit | Self::Superseded => false,
        }
    }
}

impl Reason {
    /// What this reason means to the supervisor in [`Action::EndAttempt`](crate::Action::EndAttempt); `None` for a reason
    /// that never ends an attempt.
    #[must_use]
    pub const fn stop_reason(self) -> Option<StopReason> {
        match self {
            Self::Commanded => Some(StopReason::Commanded),
            Self::LeaseRanOut { .. } | Self::FailingAndSilent { .. } | Self::NoFirstBeat { .. } => {
                Some(StopReason::Stale)
            }
            Self::ProgressStill { .. } | Self::Looping { .. } | Self::SaysBroken => Some(StopReason::Hung),
            Self::RanTooLong { .. }
            | Self::WallTimeSpent { .. }
            | Self::NoOutput { .. }
            | Self::BudgetUsedUp { .. } => Some(StopReason::Limit),
            Self::Fenced { .. } => Some(StopReason::Superseded),
            Self::NotStarted
            | Self::LaunchBegun { .. }
            | Self::LaunchOverdue { .. }
            | Self::FirstBeatAwaited { .. }
            | Self::Present
            | Self::BeatsCome { .. }
            | Self::BeatOverdue { .. }
            | Self::SaysFailing { .. }
            | Self::Excused { .. }
            | Self::NeedsPerson { .. }
            | Self::SupervisorGone
            | Self::ProvenGone
            | Self::CannotTell
            | Self::AttemptEnded { .. }
            | Self::AttemptRuns { .. }
            | Self::StopSeen
            | Self::StartedElsewhere
            | Self::FirstAttempt
            | Self::ResumedByHand
            | Self::Resumed { .. }
            | Self::BackoffBegun { .. }
            | Self::StrategyWaits { .. }
            | Self::StrategyHolds
            | Self::StrategyGaveUp
            | Self::StrategyFailed
            | Self::NotResumed { .. }
            | Self::AttemptsSpent { .. }
            | Self::NoProgress { .. }
            | Self::PickupsSpent { .. }
            | Self::IdenticalDeaths { .. }
            | Self::OrphanHeld
            | Self::OrphanWhilePaused
            | Self::Survivors { .. }
            | Self::SlotAwaited
            | Self::RecoveryAwaited
            | Self::PaceAwaited
            | Self::LaunchLocked { .. }
            | Self::LaunchSuperseded
            | Self::LaunchNotWanted
            | Self::LaunchFailed { .. }
            | Self::LaunchUnreadable
            | Self::Watched
            | Self::Check(_)
            | Self::Process(_)
            | Self::Paused { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_an_attempt_is_a_reason_to_stop() {
        let zero = Duration::ZERO;
        assert_eq!(Reason::Commanded.stop_reason(), Some(StopReason::Commanded));
        assert_eq!(Reason::LeaseRanOut { silence: zero, ttl: zero }.stop_reason(), Some(StopReason::Stale));
        assert_eq!(Reason::NoFirstBeat { waited: zero, start_within: zero }.stop_reason(), Some(StopReason::Stale));
        assert_eq!(Reason::FailingAndSilent { silence: zero, ttl: zero }.stop_reason(), Some(StopReason::Stale));
        assert_eq!(
            Reason::ProgressStill { still: zero, hung_after: zero, idle: None }.stop_reason(),
            Some(StopReason::Hung)
        );
        assert_eq!(Reason::SaysBroken.stop_reason(), Some(StopReason::Hung));
        assert_eq!(Reason::RanTooLong { running: zero, run_for: zero }.stop_reason(), Some(StopReason::Limit));
        assert_eq!(Reason::Fenced { by: Epoch(2) }.stop_reason(), Some(StopReason::Superseded));
        assert_eq!(Reason::SupervisorGone.stop_reason(), None);
        assert_eq!(Reason::BeatOverdue { silence: zero, interval: zero }.stop_reason(), None);
    }
}
