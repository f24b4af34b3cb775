//! Facts and orders in a few words.

use latido_driver::{AttemptName, Fact, FoundState, Order};

fn name(attempt: &AttemptName) -> String {
    format!("{} {} epoch {}", attempt.job, attempt.number, attempt.epoch)
}

pub(crate) fn fact(fact: &Fact) -> String {
    match fact {
        Fact::JobFound(found) => {
            let attempt = found.attempt.as_ref().map(|attempt| {
                let state = match &attempt.state {
                    FoundState::Launching => "launching".to_owned(),
                    FoundState::Running => "running".to_owned(),
                    FoundState::Unattended(life) => format!("unattended, {life:?}"),
                    FoundState::Ended(end) => format!("ended, {}", end.outcome.class),
                };
                format!("{} epoch {} {state}", attempt.start.attempt, attempt.start.epoch)
            });
            format!("{} is found, {:?} is wanted, {}", found.job.name, found.wanted.want, attempt.unwrap_or_default())
        }
        Fact::JobRemoved { job } => format!("{job} is gone"),
        Fact::AttemptStarted { start } => format!("{} {} epoch {} started", start.job, start.attempt, start.epoch),
        Fact::LaunchRefused { attempt, failure, .. } => format!("{} refused: {failure:?}", name(attempt)),
        Fact::Heard { status } => {
            format!("{} {} beat {} silent {:?}", status.job, status.attempt, status.sequence, status.silence_s.0)
        }
        Fact::SupervisorGone { attempt, process } => format!("supervisor of {} gone, {process:?}", name(attempt)),
        Fact::AttemptEnded { end, .. } => {
            format!("{} {} epoch {} ended: {}", end.job, end.attempt, end.epoch, end.outcome.class)
        }
        Fact::OrphanEnded { attempt, survivors } => format!("orphan {} ended, left {survivors:?}", name(attempt)),
        Fact::StrategyAnswered { attempt, proposal, .. } => format!("answer about {}: {proposal:?}", name(attempt)),
        Fact::ActivitySeen { attempt, idle, .. } => format!("{} is seen idle for {idle:?}", name(attempt)),
        Fact::LookFailed { attempt, detail } => format!("look at {} failed: {detail}", name(attempt)),
        Fact::WantChanged { .. }
        | Fact::RuleAnswered { .. }
        | Fact::RuleFailed { .. }
        | Fact::Watched(_)
        | Fact::Asked { .. }
        | Fact::GroupLockSeen { .. }
        | Fact::Noted { .. } => format!("{fact:?}"),
    }
}

pub(crate) fn order(order: &Order) -> String {
    match order {
        Order::Launch { attempt, because, .. } => format!("LAUNCH {}: {because}", name(attempt)),
        Order::AskStrategy { attempt, because, .. } => format!("ASK about {}: {because}", name(attempt)),
        Order::EndAttempt { attempt, because, .. } => format!("END {}: {because}", name(attempt)),
        Order::EndOrphan { attempt, because, .. } => format!("END ORPHAN {}: {because}", name(attempt)),
        Order::RecordLost { attempt, because } => format!("RECORD LOST {}: {because}", name(attempt)),
        Order::CheckGroupLock { group, .. } => format!("CHECK THE LOCK OF {group}"),
    }
}

pub(crate) fn kind(order: &Order) -> &'static str {
    match order {
        Order::Launch { .. } => "launch",
        Order::AskStrategy { .. } => "ask a strategy",
        Order::EndAttempt { .. } => "end an attempt",
        Order::EndOrphan { .. } => "end an orphan",
        Order::RecordLost { .. } => "record a loss",
        Order::CheckGroupLock { .. } => "check a group's lock",
    }
}
