//! One attempt's supervisor: its process and its word.
//!
//! The process is watched by a pidfd, so that its end is known at once, whatever it was doing. Its word comes over
//! the attempt's control socket; a connection that breaks while the process lives is made again.

use std::os::fd::AsFd;
use std::time::Duration;

use latido_driver::{AttemptName, Fact};
use latido_process::Pidfd;
use latido_protocol::attempt::{Answer, LINE_MAX, Request};
use latido_protocol::files::{End, Start};
use latido_protocol::{disk, layout};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Interest};
use tokio::net::UnixStream;

use crate::driver_thread::DriverHandle;

/// Between two tries to reach a supervisor that lives and does not answer: it may be stopped by a signal.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);

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
            () = listen(driver, start) => {
                // The connection broke, or the supervisor does not answer. Its process rules.
                tokio::select! {
                    _gone = process.readable() => {}
                    () = tokio::time::sleep(RECONNECT_AFTER) => {}
                }
            }
        }
    }
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
async fn listen(driver: &DriverHandle, start: &Start) {
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
        match (&mut lines).take(limit).read_until(b'\n', &mut line).await {
            Ok(1..) if line.last() == Some(&b'\n') => {}
            _ => return,
        }
        let Ok(Answer::Status { status }) = serde_json::from_slice(&line) else {
            tracing::warn!(attempt = ?AttemptName::of(start), "the supervisor said what cannot be read");
            return;
        };
        if driver.tell(Fact::Heard { status }).await.is_err() {
            return;
        }
    }
}
