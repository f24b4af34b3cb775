//! The job that runs this command and waits for it: the progress of the job it waits for is told to it.

use std::path::PathBuf;
use std::time::Duration;

use latido::jobs::client::{self, ATTEMPT_WITHIN};
use latido::jobs::clock::Deadline;
use latido::jobs::records;
use latido_protocol::attempt::Request;
use latido_protocol::disk;
use latido_protocol::files::Status;
use latido_protocol::layout::JobDir;
use latido_protocol::{SubjectName, WallTime};

use crate::failure::Failure;
use crate::{print, status};

/// Between two looks at the child's progress: it is on the disk within a second.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The attempt that this command runs in.
#[derive(Debug)]
pub(super) struct Parent {
    socket: PathBuf,
    token: String,
}

impl Parent {
    /// The attempt whose marks are in the environment.
    pub(super) fn of_environment() -> Result<Self, Failure> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (set("LATIDO_SOCKET"), set("LATIDO_TOKEN")) {
            (Some(socket), Some(token)) => Ok(Self { socket: socket.into(), token }),
            (None, _) | (_, None) => Err(Failure::usage(
                "cannot run it as a child",
                "LATIDO_SOCKET and LATIDO_TOKEN are not set, so this does not run inside a job",
                "leave --child out, or call it from a job that `latido run` started",
            )),
        }
    }

    /// Tells the parent of each new progress of a job, from a thread of its own, until this process ends: it is over with
    /// the wait for the job.
    pub(super) fn hear_of(self, child: SubjectName, folder: JobDir) {
        std::thread::spawn(move || {
            let mut told = None;
            let mut is_warned = false;
            loop {
                let seen = progress(&folder);
                if let Some((moved, step)) = seen.filter(|(moved, _)| told.as_ref() != Some(moved)) {
                    let request = Request::ChildMoved { token: Some(self.token.clone()), child: child.clone(), step };
                    match client::ask_attempt(&self.socket, &request, ATTEMPT_WITHIN) {
                        Ok(latido_protocol::attempt::Answer::Advice { .. }) => told = Some(moved),
                        // Tried again with the next look; a parent of another version never takes it.
                        Ok(_) | Err(_) if is_warned => {}
                        Ok(_) | Err(_) => {
                            is_warned = true;
                            print::warn("the progress of this job does not reach the job that waits for it");
                        }
                    }
                }
                Deadline::NEVER.rest(LOOK_EVERY);
            }
        });
    }
}

/// Which progress it is, and what it says in words.
fn progress(folder: &JobDir) -> Option<((u32, WallTime), String)> {
    let attempt = records::attempt_numbers(folder).ok()?.last().copied()?;
    let status = disk::read::<Status>(&folder.attempt(attempt).status()).ok().flatten()?;
    Some(((attempt, status.progress_changed?), status::progress(&status.progress?)))
}
