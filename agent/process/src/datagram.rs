//! A datagram with what the kernel tells of its sender.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::sys;

/// Who sent a datagram, as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// its pid in this process's own view; 0 where it cannot be seen from here
    pub pid: u32,
    /// its user id
    pub user: u32,
}

/// One datagram beside its bytes.
#[derive(Debug)]
pub struct Datagram {
    /// bytes that it filled
    pub length: usize,
    /// descriptors that came along; they are closed with it
    pub descriptors: Vec<OwnedFd>,
    /// who sent it; `None` unless the socket asks for credentials (`SO_PASSCRED`)
    pub sender: Option<Sender>,
}

/// Receives one datagram into a buffer. What does not fit is cut off.
///
/// # Errors
/// As `recvmsg`: on a socket that does not block, also when there is none.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Datagram> {
    sys::receive(socket, buffer)
}
