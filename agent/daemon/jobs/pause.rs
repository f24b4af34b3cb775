//! Pauses a job and ends the pause: recorded as what is wanted, so that it works with and without an agent.

use latido_protocol::files::{Want, Wanted};
use latido_protocol::layout::StateDir;
use latido_protocol::{SubjectName, WallTime};

use super::wanted::{self, WantError};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// It is recorded.
    Done,
    /// It was so already.
    Already,
    /// The job is stopped, and a stop outranks a pause.
    Stopped,
}

/// Suspends the judging of a job. `until`: when that ends; `None` is until it is told otherwise.
///
/// # Errors
/// When there is no such job, or its files cannot be read or written.
pub fn pause(
    state: &StateDir,
    job: &SubjectName,
    until: Option<WallTime>,
    by: &str,
    at: WallTime,
) -> Result<Paused, WantError> {
    let short = wanted::take_short(&state.job(job))?;
    let before = short.read(at)?;
    match before.want {
        Want::Stop => Ok(Paused::Stopped),
        Want::Run | Want::Resume | Want::Pause => {
            short.write(&Wanted { want: Want::Pause, until, at, by: by.to_owned(), ..before })?;
            Ok(Paused::Done)
        }
    }
}

/// Judges a paused job again.
///
/// # Errors
/// As [`pause`].
pub fn unpause(state: &StateDir, job: &SubjectName, by: &str, at: WallTime) -> Result<Paused, WantError> {
    let short = wanted::take_short(&state.job(job))?;
    match short.read(at)?.want {
        Want::Pause => short.change(Want::Run, by, at).map(|_| Paused::Done),
        Want::Run | Want::Resume => Ok(Paused::Already),
        Want::Stop => Ok(Paused::Stopped),
    }
}
