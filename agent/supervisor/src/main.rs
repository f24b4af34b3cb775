//! `latido-supervisor ATTEMPT_DIR`: owns one attempt of one job. Started by latido, not by hand.

use std::process::ExitCode;

fn main() -> ExitCode {
    latido_supervisor::supervise()
}
