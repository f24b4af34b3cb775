//! The command after an ending that no supervisor was left to run it for.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use latido_process::lock::Lock;
use latido_process::start::{self, Starting};
use latido_protocol::disk;
use latido_protocol::files::JobFile;
use latido_protocol::layout::JobDir;

use super::clock::Deadline;
use super::inspect::LAUNCH_WITHIN;
use super::launch;
use super::records::AttemptRecords;

/// Runs it, where there is one that was not run: at most once, since its record is made before it, and under the job's lock, so
/// that no attempt begins beside it. A supervisor does it, as after an ending of its own. What goes wrong is no reason to have
/// no ending: then there is no record of the command.
pub(super) fn follow(folder: &JobDir, records: &AttemptRecords, held: &Lock) {
    let attempt = &records.folder;
    if records.start.is_none() || attempt.on_end().exists() {
        return;
    }
    let job = disk::read::<JobFile>(&folder.job()).ok().flatten();
    let Some(on_end) = job.and_then(|job| job.settings.on_end) else { return };
    let again =
        held.as_fd().try_clone_to_owned().ok().and_then(|fd| Lock::inherited(fd, &folder.lock()).ok().flatten());
    let (Some(lock), Ok(program)) = (again, launch::supervisor_program()) else { return };
    match start::start_supervisor(&program, attempt.path(), lock) {
        Ok(starting) => wait_for_end(&starting, on_end.run_for.0),
        Err(error) => {
            tracing::warn!(attempt = %attempt.path().display(), %error, "the command after its ending did not run")
        }
    }
}

/// Waits until a supervisor has ended that has only a command of so long a time left to run.
pub(super) fn wait_for_end(starting: &Starting, run_for: Duration) {
    let deadline = Deadline::after(run_for.saturating_add(LAUNCH_WITHIN));
    let mut said = [0; 64];
    while deadline.readable(&starting.report) {
        match (&starting.report).read(&mut said) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    start::collect(starting.pid);
}
