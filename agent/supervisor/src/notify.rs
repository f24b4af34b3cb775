//! The attempt's own sd_notify socket.
//!
//! A datagram cannot carry a token. The kernel says who sent it: the user who owns the attempt, root, or a process of the
//! attempt itself that has become another user. Nobody else is heard.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use latido_process::datagram::{self, Datagram, Sender};
use latido_process::tree;
use latido_protocol::notify::{DATAGRAM_MAX, Notification};
use rustix::net::{RecvFlags, sockopt};

use crate::beat::Book;
use crate::clock::Now;

/// Datagrams taken in one pass, so that a flood does not keep the loop from its other work.
const PASS_MAX: u32 = 1024;

/// Barriers that wait for the disk at most. Beyond it the oldest is let go of unacknowledged only by the end.
const BARRIERS_MAX: usize = 64;

/// The user who may do everything anyhow.
const ROOT: u32 = 0;

/// Bytes that nearly every datagram fits into; a longer one is read into a buffer of its own size.
const USUAL: usize = 4096;

pub(crate) struct NotifySocket {
    socket: UnixDatagram,
    /// of the socket's file, as it was bound
    inode: u64,
    owner: u32,
    /// descriptors whose closing tells the sender that all before is handled and durable
    barriers: Vec<OwnedFd>,
}

impl NotifySocket {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        socket.set_nonblocking(true)?;
        sockopt::set_socket_passcred(&socket, true)?;
        let inode = path.symlink_metadata()?.ino();
        Ok(Self { socket, inode, owner: rustix::process::geteuid().as_raw(), barriers: Vec::new() })
    }

    /// The inode of the file it was bound at.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Hears where another one was bound. What waits in this one has to be drained before; its barriers stay.
    pub(crate) fn hear_at(&mut self, other: Self) {
        (self.socket, self.inode) = (other.socket, other.inode);
    }

    /// Takes what is queued; then lets go of barriers whose earlier datagrams are durable.
    pub(crate) fn drain(&mut self, book: &mut Book, now: Now) {
        for _ in 0..PASS_MAX {
            let Some((said, Datagram { mut descriptors, sender, .. })) = self.receive() else { break };
            if !self.is_heard(sender) {
                book.count_stranger();
            } else if !said.barrier {
                book.handle_notification(said, now);
            } else if descriptors.len() == 1 && self.barriers.len() < BARRIERS_MAX {
                self.barriers.append(&mut descriptors);
            }
        }
        self.release(book, now);
    }

    /// Lets go of the barriers if the disk has what they wait for.
    pub(crate) fn release(&mut self, book: &mut Book, now: Now) {
        // On a full disk the senders wait, and the write is tried again with the next status.
        if book.make_durable(now).is_ok() {
            self.barriers = Vec::new();
        }
    }

    /// Whether this sender may speak for the attempt.
    fn is_heard(&self, sender: Option<Sender>) -> bool {
        sender.is_some_and(|sender| {
            sender.user == self.owner || sender.user == ROOT || tree::descends_from_caller(sender.pid)
        })
    }

    fn receive(&self) -> Option<(Notification, Datagram)> {
        // The length first: a buffer for the longest datagram would cost every supervisor 64 KiB.
        let length = loop {
            let flags = RecvFlags::PEEK | RecvFlags::TRUNC;
            match rustix::net::recv(&self.socket, &mut [0_u8; 0][..], flags) {
                Ok((_, length)) => break length,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        };
        if length <= USUAL {
            self.receive_into(&mut [0; USUAL])
        } else {
            // What is longer than allowed is cut; its last line may be lost.
            self.receive_into(&mut vec![0; length.min(DATAGRAM_MAX)])
        }
    }

    fn receive_into(&self, buffer: &mut [u8]) -> Option<(Notification, Datagram)> {
        let datagram = datagram::receive(self.socket.as_fd(), buffer).ok()?;
        Some((Notification::parse(&buffer[..datagram.length]), datagram))
    }
}

impl AsFd for NotifySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
