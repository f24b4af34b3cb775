//! The attempt's control socket: its clients, their lines, their answers.
//!
//! Nothing here waits for a client: sockets are non-blocking, what a client may say at once and what may lie unsent for it
//! are bounded, and a client beyond a bound is dropped.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use latido_protocol::attempt::{Answer, LINE_MAX, Request};

#[cfg(test)]
mod fuzz;

/// Clients at a time. A job's own threads beat one after another; beyond this the client that was silent longest goes.
const CLIENTS_MAX: usize = 64;

/// Bytes that may lie unsent for one client: some statuses of the longest kind. A watcher that reads slower is dropped
/// and may connect again.
const UNSENT_MAX: usize = 64 * 1024;

/// Between two pushes to a watcher: 20 a second; the latest status always arrives.
pub(crate) const PUSH_EVERY: Duration = Duration::from_millis(50);

/// Bytes of one read.
const CHUNK: usize = 4096;

/// Reads of one client in one pass, so that one that talks without a pause does not keep the loop from its other work.
const READS_MAX: u32 = 16;

pub(crate) struct Control {
    listener: UnixListener,
    /// of the socket's file, as it was bound
    inode: u64,
    clients: Vec<Client>,
    owner: u32,
    /// whom the job runs as, where it is somebody else
    guest: Option<u32>,
}

/// One connection.
pub(crate) struct Client {
    stream: UnixStream,
    received: Vec<u8>,
    unsent: Vec<u8>,
    last_said: Duration,
    /// nothing more is read; closed once the answers are sent
    closing: bool,
    gone: bool,
    watch: Option<Watch>,
}

/// What a watcher has been sent.
#[derive(Clone, Copy)]
struct Watch {
    /// revision of the last status; `None` before the first
    sent: Option<u64>,
    at: Duration,
}

/// What a client said in one line.
pub(crate) enum Said {
    Request(Request),
    /// not a request, with the answer to give
    Rubbish(String),
}

impl Control {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        let inode = path.symlink_metadata()?.ino();
        Ok(Self { listener, inode, clients: Vec::new(), owner: rustix::process::geteuid().as_raw(), guest: None })
    }

    /// Lets go of all clients, once they were told what waits for them.
    pub(crate) fn hang_up(&mut self) {
        self.flush();
        self.clients.clear();
    }

    /// Hears the job's user too.
    pub(crate) fn admit(&mut self, user: u32) {
        self.guest = Some(user);
    }

    /// The inode of the file it was bound at.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Listens where another one was bound, and keeps its own clients.
    pub(crate) fn listen_at(&mut self, other: Self) {
        (self.listener, self.inode) = (other.listener, other.inode);
    }

    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(crate) fn clients(&self) -> &[Client] {
        &self.clients
    }

    /// Takes the connections that wait. Other users are turned away, root is not.
    pub(crate) fn accept(&mut self, now: Duration) {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Out of descriptors: a place is made, or the listener would stay ready and the loop never rest.
                Err(_) => return self.drop_most_silent(),
            };
            let user = rustix::net::sockopt::socket_peercred(&stream).map(|peer| peer.uid.as_raw());
            let allowed = user.is_ok_and(|user| user == self.owner || user == 0 || Some(user) == self.guest);
            if !allowed || stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.clients.len() >= CLIENTS_MAX {
                self.drop_most_silent();
            }
            self.clients.push(Client::new(stream, now));
        }
    }

    fn drop_most_silent(&mut self) {
        let silent = self.clients.iter().enumerate().min_by_key(|(_, c)| (c.watch.is_some(), c.last_said));
        if let Some((index, _)) = silent {
            self.clients.remove(index);
        }
    }

    /// Reads from one client and hands on each whole line with what is to be answered.
    pub(crate) fn read(&mut self, index: usize, now: Duration) -> Vec<Said> {
        match self.clients.get_mut(index) {
            Some(client) if !client.closing => client.read(now),
            Some(_) | None => Vec::new(),
        }
    }

    pub(crate) fn answer(&mut self, index: usize, answer: &Answer) {
        if let Some(client) = self.clients.get_mut(index) {
            client.push(answer);
        }
    }

    /// Makes a client a watcher; its first status is due at once.
    pub(crate) fn watch(&mut self, index: usize) {
        if let Some(client) = self.clients.get_mut(index) {
            client.watch = Some(Watch { sent: None, at: Duration::ZERO });
        }
    }

    /// When a watcher is to be sent something, if one is.
    pub(crate) fn push_at(&self, revision: u64) -> Option<Duration> {
        self.clients.iter().filter_map(|client| client.push_at(revision)).min()
    }

    /// Sends the status to the watchers that are due.
    pub(crate) fn push(&mut self, now: Duration, revision: u64, status: &Answer) {
        for client in &mut self.clients {
            if client.push_at(revision).is_some_and(|at| at <= now) {
                client.push(status);
                client.watch = Some(Watch { sent: Some(revision), at: now });
            }
        }
    }

    /// Sends what can be sent and forgets who is gone.
    pub(crate) fn flush(&mut self) {
        self.clients.retain_mut(|client| {
            client.flush();
            !(client.gone || client.closing && client.unsent.is_empty())
        });
        if self.clients.is_empty() {
            self.clients = Vec::new();
        }
    }
}

impl Client {
    fn new(stream: UnixStream, now: Duration) -> Self {
        Self {
            stream,
            received: Vec::new(),
            unsent: Vec::new(),
            last_said: now,
            closing: false,
            gone: false,
            watch: None,
        }
    }

    /// True while there is something to send.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// True while it may still say something.
    pub(crate) fn is_heard(&self) -> bool {
        !self.closing
    }

    fn push_at(&self, revision: u64) -> Option<Duration> {
        let watch = self.watch.filter(|_| !self.closing)?;
        match watch.sent {
            None => Some(Duration::ZERO),
            Some(sent) => (sent != revision).then_some(watch.at + PUSH_EVERY),
        }
    }

    fn read(&mut self, now: Duration) -> Vec<Said> {
        let mut said = Vec::new();
        let mut buffer = [0; CHUNK];
        for _ in 0..READS_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.closing = true,
                Ok(count) => {
                    self.last_said = now;
                    self.received.extend_from_slice(&buffer[..count]);
                    self.take_lines(&mut said);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.gone = true,
            }
            if self.closing || self.gone {
                break;
            }
        }
        if self.received.is_empty() {
            self.received = Vec::new();
        }
        said
    }

    fn take_lines(&mut self, said: &mut Vec<Said>) {
        let mut from = 0;
        while let Some(length) = memchr::memchr(b'\n', &self.received[from..]) {
            if length >= LINE_MAX {
                return self.refuse_long(said);
            }
            let text = self.received[from..from + length].trim_ascii();
            if !text.is_empty() {
                said.push(match serde_json::from_slice(text) {
                    Ok(request) => Said::Request(request),
                    Err(error) => Said::Rubbish(format!("read the request: {error}")),
                });
            }
            from += length + 1;
        }
        self.received.drain(..from);
        // While reading: a line without an end is not collected first.
        if self.received.len() > LINE_MAX {
            self.refuse_long(said);
        }
    }

    fn refuse_long(&mut self, said: &mut Vec<Said>) {
        self.received = Vec::new();
        self.closing = true;
        said.push(Said::Rubbish(format!("read the request: a line has more than {LINE_MAX} bytes")));
    }

    fn push(&mut self, answer: &Answer) {
        let before = self.unsent.len();
        if serde_json::to_writer(&mut self.unsent, answer).is_err() {
            self.unsent.truncate(before);
            return;
        }
        self.unsent.push(b'\n');
        self.flush();
        self.gone |= self.unsent.len() > UNSENT_MAX;
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() && !self.gone {
            match self.stream.write(&self.unsent) {
                Ok(count) => {
                    self.unsent.drain(..count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
        self.unsent = Vec::new();
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
