//! All the agent can be asked to do.

use core::time::Duration;

use crate::{
    AlertAction, Attempt, BlackoutChange, CheckAction, Phase, ProcessAction, ProcessId, Reason, RegistryAction,
    SubjectId, Verdict,
};

/// What an order to end an attempt for want of beats or progress rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// no own beat for this long
    Silent(Duration),
    /// no new progress for this long
    Still(Duration),
    /// these own beats, of which the last said nothing new, and none since
    Repeating {
        /// own beats until then
        beats: u64,
    },
    /// it says itself that it is broken
    Broken,
}

/// Something to do, so exact that no choice is left. Each may be carried out twice: it carries the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write a change of verdict into the journal and the store.
    RecordVerdict {
        /// whose
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// before
        previous: Verdict,
        /// after
        current: Verdict,
        /// why
        because: Reason,
    },
    /// Write a change of phase into the journal and the store.
    RecordPhase {
        /// whose
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// the new one
        phase: Phase,
        /// why
        because: Reason,
    },
    /// Record that the attempt is lost: take the job's lock, write its ending and its ledger line, and answer with
    /// `AttemptEnded`, whose class is `lost` unless an ending was there already.
    RecordLost {
        /// whose
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// lost attempts, this one counted
        pickups: u32,
        /// why
        because: Reason,
    },
    /// End every process of an attempt whose supervisor is gone, and answer with `OrphanEnded`.
    EndOrphan {
        /// whose
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// between SIGTERM and SIGKILL
        grace: Duration,
        /// why
        because: Reason,
    },
    /// Tell the attempt's supervisor to end it; `AttemptEnded` or `SupervisorGone` follows by itself.
    EndAttempt {
        /// whose
        subject: SubjectId,
        /// its attempt
        attempt: Attempt,
        /// its supervisor
        supervisor: ProcessId,
        /// between SIGTERM and SIGKILL
        grace: Duration,
        /// what it rests on, for want of beats or progress: it is ended only where its supervisor still finds it so
        ground: Option<Ground>,
        /// why; decides the class of the ending
        because: Reason,
    },
    /// Ask the job's strategy how it goes on, and answer with `StrategyAnswered`.
    AskStrategy {
        /// whose
        subject: SubjectId,
        /// the attempt that ended
        attempt: Attempt,
        /// why
        because: Reason,
    },
    /// Start this attempt, and answer with `AttemptStarted`, `AttemptEnded` or `LaunchRefused`.
    Launch {
        /// whose
        subject: SubjectId,
        /// the new attempt
        attempt: Attempt,
        /// why
        because: Reason,
    },
    /// Something about a check.
    Check(CheckAction),
    /// Something about a watched process.
    Process(ProcessAction),
    /// Write into the journal that the agent could not hear.
    RecordGap {
        /// how long
        length: Duration,
    },
    /// Something about workers, groups or targets.
    Registry(RegistryAction),
    /// Write into the journal that the agent doubts itself, or does no more, and raise or end the one alert about that.
    RecordBlackout {
        /// what changed
        change: BlackoutChange,
    },
    /// Do something about alerts.
    Alert(AlertAction),
}
