use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use latido_protocol::files::Identity;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal};

use crate::identity::{self, Look};
use crate::sys;

/// A descriptor that means one process and never another, whatever becomes of its pid.
///
/// It is readable (for `poll` and its like) once the process has ended.
#[derive(Debug)]
pub struct Pidfd {
    fd: OwnedFd,
    identity: Identity,
}

/// Why a process could not be got hold of, or signalled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PidfdError {
    /// The kernel refused.
    #[error("open process {pid}")]
    Open {
        /// which process
        pid: u32,
        /// what the kernel said
        source: io::Error,
    },
    /// It cannot be told whether the pid is still that process.
    #[error("identify process {pid}: {why}")]
    Unknown {
        /// which process
        pid: u32,
        /// why, in words
        why: String,
    },
    /// The kernel refused the signal.
    #[error("signal process {pid}")]
    Signal {
        /// which process
        pid: u32,
        /// what the kernel said
        source: io::Error,
    },
    /// The descriptor could not be asked.
    #[error("ask whether process {pid} has ended")]
    Poll {
        /// which process
        pid: u32,
        /// what the kernel said
        source: io::Error,
    },
}

impl Pidfd {
    /// Opens the process of an identity. `None`: it is gone.
    ///
    /// The identity is checked after the opening, so the descriptor cannot mean a process that took over the pid.
    ///
    /// # Errors
    /// When the kernel refuses, or when it cannot be told who the process is.
    pub fn open(identity: &Identity) -> Result<Option<Self>, PidfdError> {
        let pid = identity.pid;
        if !identity::is_here(identity) {
            return match identity::look(identity) {
                Look::Gone { .. } => Ok(None),
                Look::Unknown { why } => Err(PidfdError::Unknown { pid, why }),
                Look::Alive { state } => {
                    Err(PidfdError::Unknown { pid, why: format!("in state {state}, and not of this host") })
                }
            };
        }
        let Some(raw) = sys::pid(pid) else { return Ok(None) };
        let fd = match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
            Ok(fd) => fd,
            Err(Errno::SRCH) => return Ok(None),
            Err(source) => return Err(PidfdError::Open { pid, source: source.into() }),
        };
        match identity::look(identity) {
            Look::Alive { .. } => Ok(Some(Self { fd, identity: identity.clone() })),
            Look::Gone { .. } => Ok(None),
            Look::Unknown { why } => Err(PidfdError::Unknown { pid, why }),
        }
    }

    /// A child that this process started and has not collected: nobody else can have its pid.
    pub(crate) fn of_child(identity: Identity) -> Result<Self, PidfdError> {
        let pid = identity.pid;
        let refuse = |source: Errno| PidfdError::Open { pid, source: source.into() };
        let raw = sys::pid(pid).ok_or(Errno::SRCH).map_err(refuse)?;
        let fd = rustix::process::pidfd_open(raw, PidfdFlags::empty()).map_err(refuse)?;
        Ok(Self { fd, identity })
    }

    /// Whose descriptor it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Sends a signal. `false`: the process had ended.
    ///
    /// # Errors
    /// When the kernel refuses, as it does for another user's process.
    pub fn signal(&self, signal: Signal) -> Result<bool, PidfdError> {
        match rustix::process::pidfd_send_signal(&self.fd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(source) => Err(PidfdError::Signal { pid: self.identity.pid, source: source.into() }),
        }
    }

    /// True when the process has ended, collected or not.
    ///
    /// # Errors
    /// When the descriptor cannot be polled.
    pub fn has_ended(&self) -> Result<bool, PidfdError> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        match rustix::io::retry_on_intr(|| rustix::event::poll(&mut fds, Some(&now))) {
            Ok(count) => Ok(count > 0),
            Err(source) => Err(PidfdError::Poll { pid: self.identity.pid, source: source.into() }),
        }
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
