//! The attempt's own sd_notify socket.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use latido_protocol::notify::{DATAGRAM_MAX, Notification};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::beat::Book;
use crate::clock::Now;

/// Datagrams taken in one pass, so that a flood does not keep the loop from its other work.
const PASS_MAX: u32 = 1024;

/// Barriers that wait for the disk at most. Beyond it the oldest is let go of unacknowledged only by the end.
const BARRIERS_MAX: usize = 64;

/// Descriptors that one message may carry (the kernel's SCM_MAX_FD): all are received, so that all are closed.
const DESCRIPTORS_MAX: usize = 253;

/// Bytes that nearly every datagram fits into; a longer one is read into a buffer of its own size.
const USUAL: usize = 4096;

pub(crate) struct NotifySocket {
    socket: UnixDatagram,
    /// descriptors whose closing tells the sender that all before is handled and durable
    barriers: Vec<OwnedFd>,
}

impl NotifySocket {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, barriers: Vec::new() })
    }

    /// Takes what is queued; then lets go of barriers whose earlier datagrams are durable.
    pub(crate) fn drain(&mut self, book: &mut Book, now: Now) {
        for _ in 0..PASS_MAX {
            let Some((said, mut descriptors)) = self.receive() else { break };
            if !said.barrier {
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

    fn receive(&self) -> Option<(Notification, Vec<OwnedFd>)> {
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

    fn receive_into(&self, buffer: &mut [u8]) -> Option<(Notification, Vec<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [io::IoSliceMut::new(buffer)];
        let received = rustix::net::recvmsg(&self.socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        let length = received.bytes.min(buffer.len());
        Some((Notification::parse(&buffer[..length]), descriptors))
    }
}

impl AsFd for NotifySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
