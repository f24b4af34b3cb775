//! Why something was decided, for logs, the journal and `latido why`.

use core::fmt;
use core::time::Duration;

use crate::{AttemptNumber, Class, Counter, Epoch};

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
    },
    /// it waits before its next attempt
    BackoffBegun {
        /// what the last ending means
        after: Class,
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
            | Self::PaceAwaited
            | Self::LaunchLocked { .. }
            | Self::LaunchSuperseded
            | Self::LaunchNotWanted
            | Self::LaunchFailed { .. }
            | Self::LaunchUnreadable
            | Self::Paused { .. } => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotStarted => f.write_str("no attempt has been started yet"),
            Self::LaunchBegun { waited, start_within } => {
                write!(f, "its launch began {} ago and has {}", Span(waited), Span(start_within))
            }
            Self::LaunchOverdue { waited, start_within } => {
                write!(f, "nothing was heard of its launch for {}, and it had {}", Span(waited), Span(start_within))
            }
            Self::FirstBeatAwaited { waited, start_within } => {
                write!(f, "no beat yet after {}, and the first has {}", Span(waited), Span(start_within))
            }
            Self::NoFirstBeat { waited, start_within } => {
                write!(f, "no first beat after {}, and it had {}", Span(waited), Span(start_within))
            }
            Self::Present => f.write_str("its process is there, and it sends no beats of its own"),
            Self::BeatsCome { silence, interval } => {
                write!(f, "silence {} is within the interval of {}", Span(silence), Span(interval))
            }
            Self::BeatOverdue { silence, interval } => {
                write!(f, "silence {} is over the interval of {}", Span(silence), Span(interval))
            }
            Self::LeaseRanOut { silence, ttl } => {
                write!(f, "silence {} reached the ttl of {}", Span(silence), Span(ttl))
            }
            Self::ProgressStill { still, hung_after, idle } => {
                write!(f, "no new progress for {}, and {} is allowed", Span(still), Span(hung_after))?;
                write!(f, "{}", Activity { idle, hung_after })
            }
            Self::Looping { repeated, looping_after } => {
                write!(f, "{repeated} beats in a row said nothing new of its progress, and {looping_after} are allowed")
            }
            Self::Excused { left } => write!(f, "it announced that it is silent, and has {} left", Span(left)),
            Self::NeedsPerson { silence } => write!(f, "it said {} ago that it waits for a person", Span(silence)),
            Self::SaysBroken => f.write_str("it says itself that it is broken"),
            Self::SaysFailing { silence } => write!(f, "it said {} ago that it fails", Span(silence)),
            Self::FailingAndSilent { silence, ttl } => {
                write!(f, "it said that it fails, and silence {} reached the ttl of {}", Span(silence), Span(ttl))
            }
            Self::SupervisorGone => f.write_str("its supervisor is gone, and its processes live"),
            Self::ProvenGone => f.write_str("its supervisor and all its processes are gone, and it left no ending"),
            Self::CannotTell => f.write_str("a look at its processes failed, so nothing is known and nothing is done"),
            Self::AttemptEnded { class } => f.write_str(ending_words(class)),
            Self::AttemptRuns { number } => write!(f, "attempt {} runs", number.0),
            Self::StopSeen => f.write_str("its supervisor says that a stop has begun"),
            Self::Commanded => f.write_str("somebody ordered its stop"),
            Self::RanTooLong { running, run_for } => {
                write!(f, "it ran for {}, and one attempt has {}", Span(running), Span(run_for))
            }
            Self::WallTimeSpent { ran, wall_time_max } => {
                write!(f, "all its attempts ran for {}, and together they have {}", Span(ran), Span(wall_time_max))
            }
            Self::NoOutput { waited, first_output_within } => {
                write!(f, "no output after {}, and the first has {}", Span(waited), Span(first_output_within))
            }
            Self::BudgetUsedUp { counter, spent, budget } => write!(f, "it used up {spent} of {budget} {counter}"),
            Self::Fenced { by } => write!(f, "its epoch was fenced off by epoch {}", by.0),
            Self::StartedElsewhere => f.write_str("somebody else is starting it"),
            Self::FirstAttempt => f.write_str("it is launched for the first time"),
            Self::ResumedByHand => f.write_str("somebody asked for another attempt"),
            Self::Resumed { after } => write!(f, "its policy resumes what ended as {after}"),
            Self::BackoffBegun { after, delay } => write!(f, "it ended as {after} and waits {}", Span(delay)),
            Self::StrategyWaits { delay } => write!(f, "its strategy wants to be asked again in {}", Span(delay)),
            Self::StrategyHolds => f.write_str("its strategy says that a person is needed"),
            Self::StrategyGaveUp => f.write_str("its strategy says that it will never work"),
            Self::StrategyFailed => f.write_str("its strategy could not answer"),
            Self::NotResumed { class } => write!(f, "it ended as {class}, which its policy does not resume"),
            Self::AttemptsSpent { attempts, max_attempts } => {
                write!(f, "it had {attempts} of {max_attempts} attempts")
            }
            Self::NoProgress { attempts, attempts_max } => {
                write!(f, "{attempts} attempts in a row made no new checkpoint, and {attempts_max} are allowed")
            }
            Self::PickupsSpent { pickups, max_pickups } => {
                write!(f, "it was lost {pickups} times, and is given up at {max_pickups}")
            }
            Self::IdenticalDeaths { deaths, ran_for } => {
                let last = Span(ran_for);
                write!(f, "identical quick deaths: {deaths} in a row without progress, the last after {last}")
            }
            Self::OrphanHeld => f.write_str("its supervisor is gone, it lives, and its policy leaves that to a person"),
            Self::OrphanWhilePaused => {
                f.write_str("its supervisor is gone, it lives, and nothing is done while paused")
            }
            Self::Survivors { count: 1 } => f.write_str("1 process of it could not be ended"),
            Self::Survivors { count } => write!(f, "{count} processes of it could not be ended"),
            Self::SlotAwaited => f.write_str("as many run already as its slots allow"),
            Self::PaceAwaited => f.write_str("many are resumed, and they are started one after another"),
            Self::LaunchLocked { refusals } => {
                write!(f, "somebody else holds its lock, and its launch was refused {}", Times(refusals))
            }
            Self::LaunchSuperseded => f.write_str("somebody else started it with a higher epoch"),
            Self::LaunchNotWanted => f.write_str("something else was wanted of it before it was launched"),
            Self::LaunchFailed { refusals } => {
                write!(f, "its launch failed for reasons of the host, {}", Times(refusals))
            }
            Self::LaunchUnreadable => f.write_str("its files cannot be read"),
            Self::Paused { length: Some(length) } => write!(f, "it is not judged for {}", Span(length)),
            Self::Paused { length: None } => f.write_str("it is not judged until it is unpaused"),
        }
    }
}

fn ending_words(class: Class) -> &'static str {
    match class {
        Class::Completed => "it completed",
        Class::Failed => "it failed by its own fault",
        Class::Lost => "it was lost: killed from outside, or its supervisor or host went away",
        Class::Stopped => "it was stopped by order",
        Class::Limit => "it reached a limit of its own",
    }
}

/// What it does while its progress stands still, as far as somebody measures it.
struct Activity {
    idle: Option<Duration>,
    hung_after: Duration,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.idle {
            None => Ok(()),
            Some(idle) if idle < self.hung_after => {
                write!(f, "; it is busy: output, CPU time or I/O grew {} ago", Span(idle))
            }
            Some(idle) => write!(f, "; nor has it done anything for {}", Span(idle)),
        }
    }
}

/// A duration in seconds as people read it: `180s`, `0.25s`.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        match millis {
            0 => write!(f, "{seconds}s"),
            hundreds if hundreds % 100 == 0 => write!(f, "{seconds}.{}s", hundreds / 100),
            tens if tens % 10 == 0 => write!(f, "{seconds}.{:02}s", tens / 10),
            millis => write!(f, "{seconds}.{millis:03}s"),
        }
    }
}

/// A count as people read it: `once`, `3 times in a row`.
struct Times(u32);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("once"),
            count => write!(f, "{count} times in a row"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(reason: Reason) -> String {
        format!("{reason}")
    }

    #[test]
    fn a_reason_is_one_line_with_its_facts() {
        let seconds = Duration::from_secs;
        for (reason, expected) in [
            (Reason::LeaseRanOut { silence: seconds(181), ttl: seconds(180) }, "silence 181s reached the ttl of 180s"),
            (
                Reason::BackoffBegun { after: Class::Lost, delay: Duration::from_millis(1250) },
                "it ended as lost and waits 1.25s",
            ),
            (Reason::AttemptsSpent { attempts: 5, max_attempts: 5 }, "it had 5 of 5 attempts"),
            (Reason::Survivors { count: 1 }, "1 process of it could not be ended"),
            (Reason::Survivors { count: 2 }, "2 processes of it could not be ended"),
            (Reason::LaunchLocked { refusals: 1 }, "somebody else holds its lock, and its launch was refused once"),
            (Reason::AttemptRuns { number: AttemptNumber(3) }, "attempt 3 runs"),
        ] {
            assert_eq!(line(reason), expected);
        }
    }

    #[test]
    fn durations_are_seconds_without_needless_digits() {
        for (millis, expected) in
            [(0, "0s"), (1, "0.001s"), (250, "0.25s"), (500, "0.5s"), (1_040, "1.04s"), (181_000, "181s")]
        {
            assert_eq!(format!("{}", Span(Duration::from_millis(millis))), expected);
        }
    }

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
