//! One attempt's supervisor: its process and its word.
//!
//! The process is watched by a pidfd, so that its end is known at once, whatever it was doing. Its word comes over
//! the attempt's control socket; a connection that breaks while the process lives is made again.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use latido_driver::{AttemptName, Fact};
use latido_process::Pidfd;
use latido_protocol::attempt::{Answer, LINE_MAX, Request};
use latido_protocol::files::{End, JobFile, Start, Status};
use latido_protocol::{disk, layout};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;

use crate::driver_thread::DriverHandle;
use crate::jobs::inspect;

/// Between two tries to reach a supervisor that lives and does not answer: it may be stopped by a signal.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// Between two looks at a supervisor that says nothing: what one costs with a thousand quiet jobs, and no less than matters.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(5);
const LOOK_EVERY_MIN: Duration = Duration::from_millis(100);

/// Between two looks whether a stopped supervisor goes on.
const STOPPED_LOOK_EVERY: Duration = Duration::from_millis(250);

/// How the watch of an attempt ended.
pub(crate) enum Watched {
    /// The supervisor's process is gone, and the ending was told.
    Ended,
    /// The supervisor's process is gone and left no ending that can be read.
    Gone,
    /// Whether it is there cannot be told.
    Unknown(String),
}

/// Tells what the supervisor tells, until its process is gone.
pub(crate) async fn watch(driver: &DriverHandle, start: &Start, directory: &layout::AttemptDir) -> Watched {
    let Some(supervisor) = &start.supervisor else { return Watched::Gone };
    let pidfd = match Pidfd::open(supervisor) {
        Ok(Some(pidfd)) => pidfd.as_fd().try_clone_to_owned(),
        Ok(None) => return after_the_end(driver, start, directory).await,
        Err(error) => return Watched::Unknown(error.to_string()),
    };
    #[expect(deprecated, reason = "an OwnedFd keeps its descriptor, which is all that the unsafe call asks for")]
    let watched = pidfd.and_then(|pidfd| AsyncFd::with_interest(pidfd, Interest::READABLE));
    let process = match watched {
        Ok(process) => process,
        Err(error) => return Watched::Unknown(format!("watch the supervisor's process: {error}")),
    };
    let job = directory.job().and_then(|folder| disk::read::<JobFile>(&folder.job()).ok().flatten());
    let look_every = look_every(job.as_ref());
    // The command after an ending holds the lock: until it is over, no attempt can follow.
    let is_followed = job.is_none_or(|job| job.settings.on_end.is_some());
    loop {
        tokio::select! {
            biased;
            ready = process.readable() => {
                if let Err(error) = ready {
                    return Watched::Unknown(format!("watch the supervisor's process: {error}"));
                }
                // A supervisor that this agent started is its child, and would stay a zombie.
                latido_process::start::collect(supervisor.pid);
                return after_the_end(driver, start, directory).await;
            }
            () = listen(driver, start, look_every) => {
                // The connection broke, or the supervisor does not answer. Its process rules, but over a recorded ending: it
                // hangs up when that is on the disk, and nothing is left to do but to end itself.
                if !is_followed && matches!(after_the_end(driver, start, directory).await, Watched::Ended) {
                    // Its own end is waited for apart: another attempt may be watched by then.
                    tokio::spawn(collected(process, supervisor.pid));
                    return Watched::Ended;
                }
                tokio::select! {
                    _gone = process.readable() => {}
                    () = tokio::time::sleep(RECONNECT_AFTER) => {}
                }
            }
        }
    }
}

/// Collects a child once it has ended.
async fn collected(process: AsyncFd<OwnedFd>, pid: u32) {
    let _broken = process.readable().await;
    latido_process::start::collect(pid);
}

async fn after_the_end(driver: &DriverHandle, start: &Start, directory: &layout::AttemptDir) -> Watched {
    // One small file, written before the supervisor ended.
    match disk::read::<End>(&directory.end()) {
        Ok(Some(end)) if end.epoch == start.epoch => {
            let _agent_ends = driver.tell(Fact::AttemptEnded { start: None, end: Box::new(end) }).await;
            Watched::Ended
        }
        Ok(_) | Err(_) => Watched::Gone,
    }
}

/// Returns when the connection is over, for whatever reason.
async fn listen(driver: &DriverHandle, start: &Start, look_every: Duration) {
    let Ok(mut stream) = UnixStream::connect(start.sockets.join("control")).await else { return };
    let Ok(mut request) = serde_json::to_vec(&Request::Watch) else { return };
    request.push(b'\n');
    if stream.write_all(&request).await.is_err() {
        return;
    }
    let mut lines = BufReader::with_capacity(1024, stream);
    let limit = u64::try_from(LINE_MAX * 4).unwrap_or(u64::MAX);
    loop {
        let mut line = Vec::new();
        let mut next = (&mut lines).take(limit);
        let read = next.read_until(b'\n', &mut line);
        tokio::pin!(read);
        let got = loop {
            tokio::select! {
                biased;
                got = &mut read => break got,
                () = tokio::time::sleep(look_every) => {
                    if tell_if_stopped(driver, start).await {
                        // A connection made anew is told at once how it is.
                        return;
                    }
                }
            }
        };
        if !matches!(got, Ok(1..)) || line.last() != Some(&b'\n') {
            return;
        }
        let fact = match understood(&line) {
            Ok(status) => Fact::Heard { status },
            // Its silence to this agent says nothing of the work.
            Err(detail) => Fact::LookFailed { attempt: AttemptName::of(start), detail },
        };
        if driver.tell(fact).await.is_err() {
            return;
        }
    }
}

/// What a supervisor says of its attempt, or in words why that tells nothing of the work. It may be older than this agent, and
/// lacks then what was not known, which has a meaning where it is absent; or later.
fn understood(line: &[u8]) -> Result<Box<Status>, String> {
    match serde_json::from_slice(line) {
        Ok(Answer::Status { status }) => status.doubt().map_or(Ok(status), Err),
        Ok(Answer::Error { message }) => Err(format!("its supervisor cannot {message}")),
        Ok(Answer::Advice { .. } | Answer::Stopping) => Err("its supervisor answers what it was not asked".to_owned()),
        Err(error) => Err(format!("its supervisor, of this latido or a later one, said what cannot be read: {error}")),
    }
}

/// The silence of a supervisor that is stopped says nothing of its job: that is told, and it is waited for its going on.
async fn tell_if_stopped(driver: &DriverHandle, start: &Start) -> bool {
    let stopped = || start.supervisor.as_ref().and_then(inspect::stopped);
    let Some(detail) = stopped() else { return false };
    let told = driver.tell(Fact::LookFailed { attempt: AttemptName::of(start), detail }).await;
    while told.is_ok() && stopped().is_some() {
        tokio::time::sleep(STOPPED_LOOK_EVERY).await;
    }
    true
}

/// How often a supervisor that says nothing is looked at: before its job's lease can run out unheard.
fn look_every(job: Option<&JobFile>) -> Duration {
    let ttl = job.map_or(LOOK_EVERY_MAX, |job| job.settings.ttl.0);
    (ttl / 4).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX)
}
