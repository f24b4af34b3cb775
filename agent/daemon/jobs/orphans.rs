//! Finds every live process of an attempt whose supervisor is gone.

use std::io;

use latido_protocol::SubjectName;
use latido_protocol::layout::StateDir;

use super::inspect::{self, AttemptState, Living};
use super::records;

/// What lives of one attempt without its supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// whose
    pub job: SubjectName,
    /// which attempt
    pub attempt: u32,
    /// which processes
    pub living: Vec<Living>,
}

/// Looks over all attempts of all jobs, ended ones too; where it could not look, it says so in words beside the result.
///
/// # Errors
/// When the folder of the jobs cannot be read.
pub fn find(state: &StateDir) -> io::Result<(Vec<Orphan>, Vec<String>)> {
    let mut found = Vec::new();
    let mut blind = Vec::new();
    for job in records::job_names(state)? {
        let folder = state.job(&job);
        for attempt in records::attempt_numbers(&folder)? {
            let facts = inspect::look_at(&folder, attempt, &mut Vec::new());
            match facts.state {
                AttemptState::Orphaned { living } => found.push(Orphan { job: job.clone(), attempt, living }),
                AttemptState::Ended => match inspect::left_after_end(&folder, &facts.records) {
                    Ok(living) if living.is_empty() => {}
                    Ok(living) => found.push(Orphan { job: job.clone(), attempt, living }),
                    Err(why) => blind.push(format!("cannot look for attempt {attempt} of job {job}: {why}")),
                },
                AttemptState::Unknown { why } => {
                    blind.push(format!("cannot look for attempt {attempt} of job {job}: {why}"));
                }
                AttemptState::Launching | AttemptState::Running | AttemptState::Dead { .. } => {}
            }
        }
    }
    Ok((found, blind))
}
