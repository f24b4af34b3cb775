//! Resumes a job by order: never two copies, and one new attempt however many ask at once.

use std::time::Duration;

use latido_protocol::control;
use latido_protocol::files::{Want, Wanted};
use latido_protocol::layout::StateDir;
use latido_protocol::status::Phase;
use latido_protocol::{SubjectName, WallTime};

use super::client::{self, AGENT_WITHIN, POKE_WITHIN};
use super::clock::{self, Deadline};
use super::inspect::{self, AttemptFacts, AttemptState, JobFacts, LAUNCH_WITHIN};
use super::launch::{self, LaunchError, LaunchOrder, Launched, Ordered};
use super::recover::{self, OrphanError, RecoverError};
use super::wanted::{self, WantError};
use super::{judge, records};
use crate::settings::BudgetOverrides;

/// Between two looks at what another starter does.
const TURN: Duration = Duration::from_millis(10);
/// Where `job.json` does not say: what service managers take.
const GRACE: Duration = Duration::from_secs(10);
/// An agent that was told ends an orphan first (grace and scan) and then launches.
const AGENT_LAUNCHES_WITHIN: Duration = Duration::from_secs(30);

/// What a resume found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// A new attempt was launched for this.
    Launched(Launched),
    /// It runs already, because it never ended or because somebody else was faster.
    RunsAlready {
        /// as which attempt
        attempt: u32,
    },
    /// The agent launches it when it is its turn.
    Waits {
        /// for what, and at which place
        why: String,
    },
}

/// Why a job could not be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// There is no such job.
    #[error("resume job {job}: there is no such job")]
    NoJob {
        /// which
        job: SubjectName,
    },
    /// Whether it lives cannot be told.
    #[error("resume job {job}: whether attempt {attempt} lives cannot be told: {why}")]
    Unknown {
        /// which
        job: SubjectName,
        /// which attempt
        attempt: u32,
        /// why
        why: String,
    },
    /// What a person vouches for is not so, or cannot be recorded.
    #[error("resume job {job}")]
    NotLost {
        /// which
        job: SubjectName,
        /// why
        source: RecoverError,
    },
    /// What is left of its last attempt cannot be ended.
    #[error("resume job {job}")]
    Orphan {
        /// which
        job: SubjectName,
        /// why
        source: OrphanError,
    },
    /// Its next attempt cannot be launched.
    #[error("resume job {job}")]
    Launch {
        /// which
        job: SubjectName,
        /// why
        source: Box<LaunchError>,
    },
    /// That it is wanted cannot be recorded.
    #[error("resume job {job}")]
    Wanted {
        /// which
        job: SubjectName,
        /// why
        source: WantError,
    },
    /// Its attempts have used up what they may together.
    #[error("resume job {job}: {why}")]
    BudgetUsedUp {
        /// which
        job: SubjectName,
        /// what was used up, of how much
        why: latido_policy::Reason,
    },
    /// The agent judged it, and launches nothing.
    #[error("resume job {job}: it is {phase}: {why}")]
    Refused {
        /// which
        job: SubjectName,
        /// where it is now
        phase: Phase,
        /// why, and what to do
        why: String,
    },
    /// The agent was told, and no new attempt appeared.
    #[error("see the agent resume job {job} within {within:?}")]
    AgentDidNot {
        /// which
        job: SubjectName,
        /// how long was waited
        within: Duration,
    },
}

/// Records the latest attempt as lost where nobody can tell whether it lives and a person vouches that it does not. Where that
/// can be told nothing is recorded: what is known counts for more than anybody's word.
///
/// # Errors
/// When there is no such job, something of it is seen to live, or the records cannot be written.
pub fn presume_lost(state: &StateDir, job: &SubjectName, by: &str, at: WallTime) -> Result<(), ResumeError> {
    let facts = look(state, job)?;
    let Some(latest) = facts.latest.filter(|latest| matches!(latest.state, AttemptState::Unknown { .. })) else {
        return Ok(());
    };
    recover::presume_lost(state, job, latest.records.number, by, at)
        .map(drop)
        .map_err(|source| ResumeError::NotLost { job: job.clone(), source })
}

/// Resumes a job without an agent: ends what is left of its last attempt, records a loss, launches the next one.
///
/// # Errors
/// When it cannot be proven that nothing of it lives, or the launch is refused.
pub fn resume(state: &StateDir, job: &SubjectName, by: &str, because: &str) -> Result<Resumed, ResumeError> {
    let deadline = Deadline::after(LAUNCH_WITHIN);
    let first = look(state, job)?;
    let known = first.attempts.last().copied().unwrap_or(0);
    let ordered = Ordered { attempt: known.saturating_add(1), epoch: first.epoch.saturating_add(1) };
    let mut facts = first;
    loop {
        let latest = facts.attempts.last().copied().unwrap_or(0);
        let state_of_latest = facts.latest.as_ref().map(|latest| latest.state.clone());
        if latest > known && !matches!(state_of_latest, Some(AttemptState::Launching)) {
            return Ok(Resumed::RunsAlready { attempt: latest });
        }
        match state_of_latest {
            Some(AttemptState::Running) => {
                refuse_unkilled(job, &facts)?;
                return Ok(Resumed::RunsAlready { attempt: latest });
            }
            Some(AttemptState::Launching) if deadline.has_passed() => {
                return Err(ResumeError::Unknown {
                    job: job.clone(),
                    attempt: latest,
                    why: "its launch does not come to an end".to_owned(),
                });
            }
            Some(AttemptState::Launching) => deadline.rest(TURN),
            Some(AttemptState::Unknown { why }) => {
                return Err(ResumeError::Unknown { job: job.clone(), attempt: latest, why });
            }
            Some(AttemptState::Orphaned { .. }) => end_left(job, &facts, latest)?,
            None | Some(AttemptState::Ended | AttemptState::Dead { .. }) => {
                let budget = facts.job.as_ref().map(|job| job.settings.resume.budget).unwrap_or_default();
                if let Some(why) = latido_driver::budget_used_up(budget, judge::spent(&facts)) {
                    return Err(ResumeError::BudgetUsedUp { job: job.clone(), why });
                }
                let order = LaunchOrder {
                    because: because.to_owned(),
                    by: by.to_owned(),
                    ordered: Some(ordered),
                    by_hand: true,
                    ..LaunchOrder::default()
                };
                match launch::launch(state, job, order, clock::wall_time()) {
                    Ok(launched) => return Ok(Resumed::Launched(launched)),
                    // Another starter, or an agent's look, was faster: what it does shows soon.
                    Err(LaunchError::Locked { .. } | LaunchError::Superseded { .. }) if !deadline.has_passed() => {
                        deadline.rest(TURN);
                    }
                    Err(LaunchError::Survivors { attempt, .. }) if !deadline.has_passed() => {
                        end_left(job, &facts, attempt)?;
                    }
                    Err(error) => return Err(ResumeError::Launch { job: job.clone(), source: Box::new(error) }),
                }
            }
        }
        facts = look(state, job)?;
    }
}

fn look(state: &StateDir, job: &SubjectName) -> Result<JobFacts, ResumeError> {
    inspect::inspect(state, job).ok_or_else(|| ResumeError::NoJob { job: job.clone() })
}

/// Ends what lives of an attempt whose supervisor is gone. Two who do this at once do no harm: it is that attempt's
/// processes alone.
fn end_left(job: &SubjectName, facts: &JobFacts, attempt: u32) -> Result<(), ResumeError> {
    let grace = facts.job.as_ref().map_or(GRACE, |job| job.settings.grace.0);
    match recover::end_orphan(job, &facts.folder, attempt, grace) {
        // Between the looks somebody else launched it.
        Ok(()) | Err(OrphanError::SupervisorLives { .. }) => Ok(()),
        Err(source) => Err(ResumeError::Orphan { job: job.clone(), source }),
    }
}

/// A job whose stop waits for the kernel neither runs nor may be run beside.
fn refuse_unkilled(job: &SubjectName, facts: &JobFacts) -> Result<(), ResumeError> {
    match facts.latest.as_ref().and_then(AttemptFacts::unkilled) {
        Some(why) => Err(ResumeError::Refused { job: job.clone(), phase: Phase::Held, why }),
        None => Ok(()),
    }
}

/// Resumes a job through its agent: records that it is wanted, tells the agent, and waits for the new attempt.
///
/// # Errors
/// When no new attempt appears, which the agent's own status explains.
pub fn resume_through_agent(
    state: &StateDir,
    job: &SubjectName,
    by: &str,
    at: WallTime,
) -> Result<Resumed, ResumeError> {
    let wanted_error = |source| ResumeError::Wanted { job: job.clone(), source };
    let (known, before) = {
        let short = wanted::take_short(&state.job(job)).map_err(wanted_error)?;
        // Looked at under the short lock: a launch in progress holds it while it takes the want back.
        let facts = look(state, job)?;
        let known = facts.attempts.last().copied().unwrap_or(0);
        let lives = facts
            .latest
            .as_ref()
            .is_some_and(|latest| matches!(latest.state, AttemptState::Running | AttemptState::Launching));
        if lives {
            refuse_unkilled(job, &facts)?;
            return Ok(Resumed::RunsAlready { attempt: known });
        }
        let gone = facts.job.as_ref().map(|job| &job.directory).filter(|directory| !directory.is_dir());
        if let Some(directory) = gone {
            let source = Box::new(LaunchError::NoDirectory { job: job.clone(), directory: directory.clone() });
            return Err(ResumeError::Launch { job: job.clone(), source });
        }
        (known, short.change(Want::Resume, by, at).map_err(wanted_error)?)
    };
    let is_judged = client::poke_agent(state, job, POKE_WITHIN);
    let deadline = Deadline::after(AGENT_LAUNCHES_WITHIN);
    loop {
        let facts = look(state, job)?;
        if let Some(latest) = facts.latest.as_ref().filter(|latest| latest.records.number > known) {
            let attempt = latest.records.number;
            let start = latest.records.start.as_ref();
            match (&latest.state, latest.records.end.as_ref()) {
                (AttemptState::Launching, _) => {}
                (_, Some(end)) if end.outcome.kind == latido_protocol::OutcomeKind::LaunchFailed => {
                    let detail = end.outcome.detail.clone();
                    return Ok(Resumed::Launched(Launched::Failed { attempt, epoch: end.epoch, detail }));
                }
                (_, _) => {
                    let pid = start.and_then(|start| start.process.as_ref()).map_or(0, |process| process.pid);
                    let epoch = start.map_or(0, |start| start.epoch);
                    return Ok(Resumed::Launched(Launched::Started { attempt, epoch, pid }));
                }
            }
        }
        if let Some((phase, why)) = decided(state, job).filter(|_| is_judged) {
            if phase == Phase::Queued {
                return Ok(Resumed::Waits { why });
            }
            take_back(state, job, before).map_err(wanted_error)?;
            return Err(ResumeError::Refused { job: job.clone(), phase, why });
        }
        if deadline.has_passed() {
            return Err(ResumeError::AgentDidNot { job: job.clone(), within: AGENT_LAUNCHES_WITHIN });
        }
        deadline.rest(TURN);
    }
}

/// Where the job is and why, once its agent has decided to launch nothing, or not yet.
fn decided(state: &StateDir, job: &SubjectName) -> Option<(Phase, String)> {
    let request = control::Request::Status { subjects: vec![job.clone()] };
    let Ok(control::Answer::Status { document }) = client::ask_agent(state, request, AGENT_WITHIN) else { return None };
    let status = document.subjects.into_iter().find(|status| status.name == *job)?;
    let why = status.next.map_or(status.reason, |next| next.what);
    matches!(status.phase, Phase::Held | Phase::Stuck | Phase::Queued).then_some((status.phase, why))
}

/// What was refused is not wanted any more: it would be carried out when nobody expects it.
fn take_back(state: &StateDir, job: &SubjectName, before: Wanted) -> Result<(), WantError> {
    let short = wanted::take_short(&state.job(job))?;
    let present = short.read(before.at)?;
    if present.want == Want::Resume {
        short.write(&Wanted { epoch: present.epoch, budget: present.budget, ..before })?;
    }
    drop(short);
    client::poke_agent(state, job, POKE_WITHIN);
    Ok(())
}

/// Gives a job more to use up together, or less, from here on.
///
/// # Errors
/// When there is no such job, or its files cannot be read or written.
pub fn give(state: &StateDir, job: &SubjectName, more: BudgetOverrides, at: WallTime) -> Result<(), WantError> {
    let folder = state.job(job);
    let short = wanted::take_short(&folder)?;
    let before = short.read(at)?;
    let present = records::read_job(&folder).job.map(|job| job.settings.resume.budget).unwrap_or_default();
    let budget = more.over(present);
    if budget == present { Ok(()) } else { short.write(&Wanted { budget: Some(budget), ..before }) }
}
