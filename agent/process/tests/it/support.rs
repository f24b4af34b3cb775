//! Children that are gone when a test ends, and waiting without sleeping.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Looks before a test gives up: ten seconds on an idle machine, more on a loaded one.
const LOOKS_MAX: u32 = 4000;

/// Waits until a condition holds.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let (_never, pause) = mpsc::channel::<()>();
    for _ in 0..LOOKS_MAX {
        if holds() {
            return;
        }
        let _ = pause.recv_timeout(LOOK_EVERY);
    }
    panic!("waited too long until {what}");
}

/// A child that is killed, with its group, when dropped.
pub(crate) struct Kept(pub(crate) Child);

impl Kept {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "tests start strangers")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A shell that runs a script.
pub(crate) fn shell(script: &str) -> Kept {
    Kept(command("sh").args(["-c", script]).spawn().unwrap())
}

/// A shell in a session of its own that runs a script with an attempt's mark.
pub(crate) fn marked(attempt: &Path, script: &str) -> Kept {
    Kept(command("setsid").args(["sh", "-c", script]).env("LATIDO_DIR", attempt).spawn().unwrap())
}

/// Says aloud that a test could not be made on this host.
#[expect(clippy::print_stderr, reason = "a test that did not run must not look like one that passed")]
pub(crate) fn untested(why: &str) {
    eprintln!("NOT TESTED: {why}");
}
