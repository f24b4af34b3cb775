//! What a job's folder and processes say, in the driver's words.

use latido_driver::{FoundAttempt, FoundJob, FoundState};
use latido_policy::Life;
use latido_protocol::FORMAT_VERSION;
use latido_protocol::SubjectName;
use latido_protocol::files::{Spent, Start, Want, Wanted};
use latido_protocol::layout::StateDir;

use crate::clock;
use crate::jobs::inspect::{self, AttemptFacts, AttemptState};
use crate::jobs::records;

/// Attempts before the latest that are looked at: more than these do not end between two looks of any agent.
const EARLIER_MAX: usize = 100;

/// A job as a look found it.
pub(crate) struct Found {
    /// what its files and processes say
    pub(crate) job: FoundJob,
    /// why nothing can be told of the work itself although its supervisor lives, in words
    pub(crate) doubt: Option<String>,
}

/// Looks at a job. `None` when its folder is gone.
///
/// # Errors
/// Says what cannot be read when `job.json` itself is unreadable: such a job is left alone, not judged.
pub(crate) fn look(state: &StateDir, name: &SubjectName) -> Result<Option<Found>, String> {
    let Some(facts) = inspect::inspect(state, name) else { return Ok(None) };
    for message in &facts.damaged {
        tracing::warn!(job = %name, "{message}");
    }
    let Some(job) = facts.job else {
        return Err(facts.damaged.first().cloned().unwrap_or_else(|| "its job.json cannot be read".to_owned()));
    };
    // Nobody can know whether somebody stopped it: a job whose wants are unreadable is not started by itself.
    let wanted = facts.wanted.unwrap_or_else(|| Wanted {
        version: FORMAT_VERSION,
        want: Want::Stop,
        epoch: facts.epoch,
        at: clock::wall(),
        until: None,
        by: "nobody: the file is missing or damaged".to_owned(),
        budget: None,
    });
    let before = facts.attempts.len().saturating_sub(1);
    let skipped = before.saturating_sub(EARLIER_MAX);
    let folder = &facts.folder;
    let earlier = facts.attempts.iter().take(before).skip(skipped).filter_map(|number| {
        let records = records::read_attempt(folder, *number, &mut Vec::new());
        records.start.zip(records.end)
    });
    let earlier = earlier.collect();
    let endings = records::endings(folder, &facts.attempts[..skipped]);
    let spent_before =
        endings.iter().filter_map(|(_, end)| end.as_ref()).fold(Spent::default(), |all, end| all.plus(end.spent));
    let doubt = facts.latest.as_ref().and_then(|latest| latest.doubt.clone());
    let attempt = facts.latest.and_then(found_attempt);
    let job = FoundJob { job, wanted, epoch: facts.epoch, pickups: facts.pickups, earlier, spent_before, attempt };
    Ok(Some(Found { job, doubt }))
}

/// When it is its turn to be told of at the agent's start, where `line` is its place in line as it was remembered. What may
/// live comes first, since it holds its slots; then whoever waits, in the order in which they asked.
pub(crate) fn turn(found: &FoundJob, line: Option<u64>) -> (u8, u64) {
    let ended = found.attempt.as_ref().map(|attempt| match &attempt.state {
        FoundState::Ended(end) => Some(end.ended_at),
        FoundState::Launching | FoundState::Running | FoundState::Unattended(_) => None,
    });
    match (ended, line) {
        (Some(None), _) => (0, 0),
        (Some(Some(_)) | None, Some(line)) => (1, line),
        (Some(Some(ended_at)), None) => (2, found.wanted.at.max(ended_at).as_millis()),
        (None, None) => (2, found.wanted.at.as_millis()),
    }
}

/// Returns `None` for an attempt whose `start.json` cannot be read and that has no ending: a launch before its first
/// record, which the next look sees more of.
fn found_attempt(facts: AttemptFacts) -> Option<FoundAttempt> {
    let life = life_of(&facts.state);
    let AttemptFacts { records, state, doubt: _ } = facts;
    let state = match (state, records.end) {
        (AttemptState::Ended, Some(end)) => FoundState::Ended(Box::new(end)),
        (AttemptState::Launching, _) => FoundState::Launching,
        (AttemptState::Running, _) => FoundState::Running,
        (
            AttemptState::Ended
            | AttemptState::Orphaned { .. }
            | AttemptState::Dead { .. }
            | AttemptState::Unknown { .. },
            _,
        ) => FoundState::Unattended(life),
    };
    Some(FoundAttempt { start: records.start?, status: records.status, state })
}

fn life_of(state: &AttemptState) -> Life {
    match state {
        AttemptState::Launching | AttemptState::Running | AttemptState::Orphaned { .. } => Life::Alive,
        AttemptState::Dead { .. } => Life::Gone,
        // An ending that vanished between two looks proves nothing.
        AttemptState::Ended | AttemptState::Unknown { .. } => Life::Unknown,
    }
}

/// What is the case with the job's own processes after its supervisor is gone.
pub(crate) fn life(state: &StateDir, start: &Start) -> Life {
    let folder = state.job(&start.job);
    let facts = inspect::look_at(&folder, start.attempt, &mut Vec::new());
    if let AttemptState::Unknown { why } = &facts.state {
        tracing::warn!(job = %start.job, attempt = start.attempt, why, "cannot tell whether it lives");
    }
    life_of(&facts.state)
}

/// The last attempts of a job as a strategy is told of them, the oldest first.
pub(crate) fn past(state: &StateDir, job: &SubjectName, count_max: usize) -> Vec<records::AttemptRecords> {
    let folder = state.job(job);
    let numbers = records::attempt_numbers(&folder).unwrap_or_default();
    let skipped = numbers.len().saturating_sub(count_max);
    numbers.into_iter().skip(skipped).map(|number| records::read_attempt(&folder, number, &mut Vec::new())).collect()
}
