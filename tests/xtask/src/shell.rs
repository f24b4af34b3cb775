//! The only file of xtask that makes a command.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Makes a command that runs in `directory`, with the settings under which everything here is measured.
#[expect(clippy::disallowed_methods, reason = "xtask starts cargo and the demo's programs; latido-process starts jobs")]
pub(crate) fn command(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory);
    // A backtrace costs memory that tests measure, and hides the three lines of an error message.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// Makes a call of the cargo that runs xtask.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), root);
    command.args(arguments);
    command
}

/// Runs a command to its end.
///
/// # Errors
///
/// Names the command where it cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", show(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", show(command));
    }
    Ok(())
}

/// Tells whether a command can be started and succeeds, without showing what it prints.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Writes a command as one would type it.
pub(crate) fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_named() {
        let error = run(&mut command("false", Path::new("/"))).unwrap_err();
        assert_eq!(error.to_string(), "`false` failed: exit status: 1");
        let error = run(command("/nowhere/prog", Path::new("/")).arg("x")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `prog x`");
    }
}
