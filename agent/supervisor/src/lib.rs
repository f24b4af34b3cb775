//! The supervisor of one attempt: starts the job, hears it, keeps its output, ends it when told, records the ending.
//!
//! It never resumes, never judges by a ttl, never talks to anything but its own two sockets, and writes nothing outside
//! the attempt's directory but `busy.json`, one line of the ledger and the attempt's cgroup. It has one thread and one
//! loop; nothing in that loop waits for a client, for the disk's space or for the job. It outlives whoever started it.
//!
//! # When the supervisor dies
//!
//! The job lives on. The lock's descriptor is inherited, so the job's lock stays held. The output pipe's *reading* end is
//! inherited too: writing never raises SIGPIPE while any process of the job lives; once the pipe is full (1 MiB where
//! the kernel allows it) writes wait. Whoever finds the orphan ends it or holds the job; what was in the pipe is lost.
//! So the choice `sigpipe` of a job is about its own pipes alone.
//!
//! # When the job ends
//!
//! The ending is recorded once nothing of the attempt is left, or what SIGKILL does not end is named. Who watches is hung up on
//! then, and cgroup and sockets are taken away. Then, still under the job's lock, the command after the ending runs, at most once. What it ends with is recorded, and changes no outcome.

use std::process::ExitCode;

mod beat;
mod clock;
mod control;
mod ending;
mod environment;
mod events;
mod hook;
mod launch;
mod log;
mod notify;
mod output;
mod overprint;
mod sockets;
mod stop;
mod surroundings;

/// Runs the supervisor of the attempt whose directory is the first argument, until the ending is recorded.
///
/// The lock of the job comes as standard input, and what became of the launch goes to standard output as one line.
pub fn supervise() -> ExitCode {
    match launch::launch() {
        Some(supervisor) => {
            latido_process::run::trim_memory();
            supervisor.run();
            ExitCode::SUCCESS
        }
        None => ExitCode::FAILURE,
    }
}
