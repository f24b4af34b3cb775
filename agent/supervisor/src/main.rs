//! `latido-supervisor ATTEMPT_DIR`: owns one attempt of one job. Started by latido, not by hand.

use std::io::Write;
use std::process::ExitCode;

/// What `--version` prints; `latido doctor` finds it in the file, since a doctor starts nothing.
const VERSION: &str = concat!("latido-supervisor ", env!("CARGO_PKG_VERSION"), "\n");

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "--version") {
        let written = std::io::stdout().write_all(VERSION.as_bytes());
        return if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    latido_supervisor::supervise()
}
