//! Signals to the calling process, heard through a descriptor instead of a handler.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::Signal;

use crate::sys;

/// Why signals could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("set up signals")]
pub struct SignalsError {
    /// what the kernel said
    source: io::Error,
}

/// Signals that are blocked for the calling thread and heard here. The descriptor is readable when one has come.
///
/// For programs of one thread: another thread would still be interrupted by them.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks these signals and listens for them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn listen(signals: &[Signal]) -> Result<Self, SignalsError> {
        sys::listen(signals).map(|fd| Self { fd }).map_err(|source| SignalsError { source })
    }

    /// Takes the next signal that has come. `None`: there is none.
    pub fn next(&self) -> Option<Signal> {
        let mut record = [0; sys::SIGNAL_RECORD];
        match rustix::io::read(&self.fd, &mut record) {
            Ok(count) if count == record.len() => {
                let number = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
                Signal::from_named_raw(i32::try_from(number).ok()?)
            }
            Ok(_) | Err(_) => None,
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Makes the calling process ignore a signal. What [`crate::run::run`] starts gets the default back.
///
/// # Errors
/// When the kernel refuses, as it does for SIGKILL and SIGSTOP.
pub fn ignore(signal: Signal) -> Result<(), SignalsError> {
    sys::ignore(signal).map_err(|source| SignalsError { source })
}

/// The name of a signal's number, for messages: `SIGKILL`.
pub fn name(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    match index.and_then(|index| NAMES.get(index)) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}
