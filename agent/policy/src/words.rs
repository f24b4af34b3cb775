//! Reasons in words: one line each, with the facts they came from.

use core::fmt;
use core::time::Duration;

use crate::{Class, Reason, StopReason};

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
                let activity = Activity { idle, hung_after };
                write!(f, "no new progress for {}, and {} is allowed{activity}", Span(still), Span(hung_after))
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
            Self::AttemptEnded { class, order } => f.write_str(ending_words(class, order)),
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
            Self::BudgetUsedUp { counter, spent, budget } => counter.write_used_up(f, spent, budget),
            Self::Fenced { by } => write!(f, "its epoch was fenced off by epoch {}", by.0),
            Self::StartedElsewhere => f.write_str("somebody else is starting it"),
            Self::FirstAttempt => f.write_str("it is launched for the first time"),
            Self::ResumedByHand => f.write_str("somebody asked for another attempt"),
            Self::Resumed { after, order } => write!(f, "its policy resumes what {}", EndedAs(after, order)),
            Self::BackoffBegun { after, order, delay } => {
                write!(f, "it {} and waits {}", EndedAs(after, order), Span(delay))
            }
            Self::StrategyWaits { delay } => write!(f, "its strategy wants to be asked again in {}", Span(delay)),
            Self::StrategyHolds => f.write_str("its strategy says that a person is needed"),
            Self::StrategyGaveUp => f.write_str("its strategy says that it will never work"),
            Self::StrategyFailed => f.write_str("its strategy could not answer"),
            Self::NotResumed { class } => write!(f, "it ended as {class}, which its policy does not resume"),
            Self::AttemptsSpent { attempts: had, max_attempts: max } => write!(f, "it had {had} of {max} attempts"),
            Self::NoProgress { attempts, attempts_max } => {
                write!(f, "{attempts} attempts in a row made no new checkpoint, and {attempts_max} are allowed")
            }
            Self::PickupsSpent { pickups: n, max_pickups: max } => {
                write!(f, "it was lost {n} times, and is given up at {max}")
            }
            Self::IdenticalDeaths { deaths: n, ran_for } => {
                write!(f, "identical quick deaths: {n} in a row without progress, the last after {}", Span(ran_for))
            }
            Self::OrphanHeld => f.write_str("its supervisor is gone, it lives, and its policy leaves that to a person"),
            Self::OrphanWhilePaused => f.write_str("its supervisor is gone, it lives, and a pause leaves it alone"),
            Self::Survivors { count: 1 } => f.write_str("1 process of it could not be ended"),
            Self::Survivors { count } => write!(f, "{count} processes of it could not be ended"),
            Self::RecoveryAwaited => f.write_str("not every job was looked at yet, and one may hold its slot"),
            Self::SlotAwaited => f.write_str("as many run already as its slots allow"),
            Self::PaceAwaited => f.write_str("many are resumed, and they are started one after another"),
            Self::LaunchLocked { refusals } => {
                write!(f, "somebody else holds its lock, and its launch was refused {}", Times(refusals))
            }
            Self::LaunchSuperseded => f.write_str("somebody else started it with a higher epoch"),
            Self::LaunchNotWanted => f.write_str("something else was wanted of it before it was launched"),
            Self::LaunchFailed { refusals: n } => write!(f, "its launch failed for reasons of the host, {}", Times(n)),
            Self::LaunchUnreadable => f.write_str("its files cannot be read"),
            Self::Watched => f.write_str("it is watched"),
            Self::Check(because) => because.fmt(f),
            Self::Process(because) => because.fmt(f),
            Self::Paused { length: Some(length) } => write!(f, "it is not judged for {}", Span(length)),
            Self::Paused { length: None } => f.write_str("it is not judged until it is unpaused"),
        }
    }
}

fn ending_words(class: Class, order: Option<StopReason>) -> &'static str {
    match (class, order) {
        (Class::Completed, _) => "it completed",
        (Class::Lost, Some(StopReason::Stale)) => "its lease ran out, and it was ended for that",
        (Class::Lost, Some(StopReason::Hung)) => "it hung, and it was ended for that",
        (Class::Failed, _) => "it failed by its own fault",
        (Class::Lost, _) => "it was lost: killed from outside, or its supervisor or host went away",
        (Class::Stopped, _) => "it was stopped by order",
        (Class::Limit, _) => "it reached a limit of its own",
    }
}

/// How it ended: as what, or for want of what latido ended it.
struct EndedAs(Class, Option<StopReason>);

impl fmt::Display for EndedAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(StopReason::Stale) => f.write_str("was ended as stale"),
            Some(StopReason::Hung) => f.write_str("was ended as hung"),
            Some(StopReason::Commanded | StopReason::Limit | StopReason::Superseded) | None => {
                write!(f, "ended as {}", self.0)
            }
        }
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
pub(crate) struct Span(pub(crate) Duration);

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
    use crate::AttemptNumber;

    fn line(reason: Reason) -> String {
        format!("{reason}")
    }

    #[test]
    fn a_reason_is_one_line_with_its_facts() {
        let seconds = Duration::from_secs;
        for (reason, expected) in [
            (Reason::LeaseRanOut { silence: seconds(181), ttl: seconds(180) }, "silence 181s reached the ttl of 180s"),
            (
                Reason::BackoffBegun { after: Class::Lost, order: None, delay: Duration::from_millis(1250) },
                "it ended as lost and waits 1.25s",
            ),
            (
                Reason::Resumed { after: Class::Lost, order: Some(StopReason::Hung) },
                "its policy resumes what was ended as hung",
            ),
            (
                Reason::AttemptEnded { class: Class::Lost, order: Some(StopReason::Stale) },
                "its lease ran out, and it was ended for that",
            ),
            (Reason::AttemptsSpent { attempts: 5, max_attempts: 5 }, "it had 5 of 5 attempts"),
            (Reason::Survivors { count: 1 }, "1 process of it could not be ended"),
            (Reason::Survivors { count: 2 }, "2 processes of it could not be ended"),
            (Reason::LaunchLocked { refusals: 1 }, "somebody else holds its lock, and its launch was refused once"),
            (Reason::AttemptRuns { number: AttemptNumber(3) }, "attempt 3 runs"),
            (
                Reason::ProgressStill { still: seconds(900), hung_after: seconds(900), idle: Some(seconds(900)) },
                "no new progress for 900s, and 900s is allowed; nor has it done anything for 900s",
            ),
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
}
