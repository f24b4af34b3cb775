//! The client of an attempt's and of the agent's socket. Every call has a deadline, whatever the other side does.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_protocol::layout::StateDir;
use latido_protocol::{FORMAT_VERSION, SubjectName, WallTime, attempt, control, journal};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock::Deadline;

/// A supervisor does nothing that takes long: who has not answered by then is stopped or starved.
pub const ATTEMPT_WITHIN: Duration = Duration::from_millis(500);
/// The agent may be in the middle of a transaction on a slow disk.
pub const AGENT_WITHIN: Duration = Duration::from_secs(5);
/// A poke is a courtesy: the agent finds changes by itself as well.
pub const POKE_WITHIN: Duration = Duration::from_secs(2);
/// A status over a hundred thousand subjects has about 60 MB; more is not an answer.
const ANSWER_MAX: usize = 256 * 1024 * 1024;
/// Bytes of a Unix socket's path, the final NUL not counted.
const SOCKET_PATH_MAX: usize = 107;
/// Between two tries to enter a full backlog.
const CONNECT_TURN: Duration = Duration::from_millis(10);

/// Why nobody answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No such socket, or nobody listens on it.
    #[error("reach {socket}: nobody listens there")]
    NobodyThere {
        /// which socket
        socket: PathBuf,
    },
    /// The other side did not answer in time; it may be stopped.
    #[error("get an answer from {socket} within {within:?}")]
    Deadline {
        /// which socket
        socket: PathBuf,
        /// how long was waited
        within: Duration,
    },
    /// The other side hung up before it had answered.
    #[error("get an answer from {socket}: it closed the connection")]
    Closed {
        /// which socket
        socket: PathBuf,
    },
    /// What came is not an answer.
    #[error("read the answer from {socket}")]
    Unreadable {
        /// which socket
        socket: PathBuf,
        /// what the reader said
        source: serde_json::Error,
    },
    /// The agent refused; the message is its own, and fits after "cannot".
    #[error("{message}")]
    Refused {
        /// why
        message: String,
    },
    /// The agent knows nothing of the name that was given; the message is its own, and fits after "cannot".
    #[error("{message}")]
    Unknown {
        /// what it does not know
        message: String,
    },
    /// What came answers another question.
    #[error("understand the agent: it answers another question, as one of another version does")]
    OtherAnswer,
    /// Anything else that the system reports.
    #[error("talk to {socket}")]
    Io {
        /// which socket
        socket: PathBuf,
        /// what the system said
        source: io::Error,
    },
}

/// One connection on which lines are exchanged until its deadline.
struct Line {
    socket: PathBuf,
    stream: UnixStream,
    within: Duration,
    deadline: Deadline,
    buffer: Vec<u8>,
}

impl Line {
    fn open(socket: &Path, within: Duration) -> Result<Self, AskError> {
        let deadline = Deadline::after(within);
        let fail = |source: io::Error| AskError::Io { socket: socket.to_owned(), source };
        // A path too long for a socket is a link to one that is not.
        let target = if socket.as_os_str().as_bytes().len() > SOCKET_PATH_MAX {
            match std::fs::read_link(socket) {
                Ok(target) => target,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(AskError::NobodyThere { socket: socket.to_owned() });
                }
                Err(error) => return Err(fail(error)),
            }
        } else {
            socket.to_owned()
        };
        let address = SocketAddrUnix::new(&target).map_err(|errno| fail(errno.into()))?;
        let descriptor: OwnedFd = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(|errno| fail(errno.into()))?;
        loop {
            use rustix::io::Errno;
            match rustix::net::connect(&descriptor, &address) {
                Ok(()) => break,
                Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => {
                    return Err(AskError::NobodyThere { socket: socket.to_owned() });
                }
                // The backlog is full: the other side is slow to accept.
                Err(Errno::AGAIN | Errno::INTR) if !deadline.has_passed() => deadline.rest(CONNECT_TURN),
                Err(Errno::AGAIN | Errno::INTR) => {
                    return Err(AskError::Deadline { socket: socket.to_owned(), within });
                }
                Err(errno) => return Err(fail(errno.into())),
            }
        }
        let stream = UnixStream::from(descriptor);
        stream.set_nonblocking(false).map_err(fail)?;
        Ok(Self { socket: socket.to_owned(), stream, within, deadline, buffer: Vec::new() })
    }

    fn fail(&self, source: io::Error) -> AskError {
        let socket = self.socket.clone();
        let kind = source.kind();
        if matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            AskError::Deadline { socket, within: self.within }
        } else if matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
            AskError::Closed { socket }
        } else {
            AskError::Io { socket, source }
        }
    }

    /// What is left as a socket timeout, which must not be zero.
    fn timeout(&self) -> Result<Option<Duration>, AskError> {
        match self.deadline.left() {
            Some(Duration::ZERO) => Err(AskError::Deadline { socket: self.socket.clone(), within: self.within }),
            left => Ok(left),
        }
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), AskError> {
        let mut bytes = serde_json::to_vec(message)
            .map_err(|source| AskError::Unreadable { socket: self.socket.clone(), source })?;
        bytes.push(b'\n');
        let timeout = self.timeout()?;
        self.stream.set_write_timeout(timeout).map_err(|error| self.fail(error))?;
        self.stream.write_all(&bytes).map_err(|error| self.fail(error))
    }

    fn receive<T: DeserializeOwned>(&mut self) -> Result<T, AskError> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(searched + at + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return serde_json::from_slice(&line)
                    .map_err(|source| AskError::Unreadable { socket: self.socket.clone(), source });
            }
            searched = self.buffer.len();
            if searched > ANSWER_MAX {
                let source = io::Error::new(io::ErrorKind::InvalidData, "the answer has no end");
                return Err(AskError::Io { socket: self.socket.clone(), source });
            }
            let timeout = self.timeout()?;
            self.stream.set_read_timeout(timeout).map_err(|error| self.fail(error))?;
            let mut chunk = [0; 16 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(AskError::Closed { socket: self.socket.clone() }),
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fail(error)),
            }
        }
    }
}

/// Asks the supervisor behind an attempt's control socket.
///
/// # Errors
/// When no answer came within the time; an answer of kind `error` is an answer.
pub fn ask_attempt(socket: &Path, request: &attempt::Request, within: Duration) -> Result<attempt::Answer, AskError> {
    let mut line = Line::open(socket, within)?;
    line.send(request)?;
    line.receive()
}

fn open_agent(state: &StateDir, request: control::Request, within: Duration) -> Result<Line, AskError> {
    let mut line = Line::open(&state.agent_socket(), within)?;
    line.send(&control::Envelope { version: FORMAT_VERSION, request })?;
    Ok(line)
}

/// Asks the agent of a state directory.
///
/// # Errors
/// When no answer came within the time, or the agent did not do it.
pub fn ask_agent(state: &StateDir, request: control::Request, within: Duration) -> Result<control::Answer, AskError> {
    carried_out(open_agent(state, request, within)?.receive()?)
}

/// Asks the agent of a state directory for something that is done, and no more.
///
/// # Errors
/// When no answer came within the time, or the agent did not do it.
pub fn ask_agent_to(state: &StateDir, request: control::Request, within: Duration) -> Result<(), AskError> {
    if ask_agent(state, request, within)? == control::Answer::Done { Ok(()) } else { Err(AskError::OtherAnswer) }
}

fn carried_out(answer: control::Answer) -> Result<control::Answer, AskError> {
    let control::Answer::Error { kind, message } = answer else { return Ok(answer) };
    Err(match kind {
        control::ErrorKind::Refused => AskError::Refused { message },
        control::ErrorKind::Unknown => AskError::Unknown { message },
    })
}

/// True when an agent answers on this state directory.
pub fn agent_answers(state: &StateDir) -> bool {
    matches!(ask_agent(state, control::Request::Hello, POKE_WITHIN), Ok(control::Answer::Hello { .. }))
}

/// When the agent that was here last looked around, where it did not end by order; `None` where it did, or none was.
pub fn lost_agent(state: &StateDir) -> Option<WallTime> {
    let lock = std::fs::metadata(state.agent_lock()).ok().filter(|lock| lock.len() > 0)?;
    let since_1970 = lock.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(since_1970.as_millis()).ok().map(WallTime::from_millis)
}

/// Tells the agent, if one answers, that a job's files have changed; true when it has read them.
pub fn poke_agent(state: &StateDir, job: &SubjectName, within: Duration) -> bool {
    let request = control::Request::Changed { job: job.clone() };
    ask_agent_to(state, request, within).is_ok()
}

/// Journal entries as the agent sends them.
pub struct EventStream(Line);

impl EventStream {
    /// Asks for the entries after a sequence, 0 for all that are kept; with `follow` also for those that come.
    ///
    /// # Errors
    /// When the agent cannot be reached.
    pub fn open(state: &StateDir, after: u64, follow: bool) -> Result<Self, AskError> {
        let mut line = open_agent(state, control::Request::Events { after, follow }, AGENT_WITHIN)?;
        if follow {
            // The next entry may be hours away.
            line.deadline = Deadline::NEVER;
        }
        Ok(Self(line))
    }

    /// Waits for the next entry; `None` when there are no more.
    ///
    /// # Errors
    /// When the agent would not give it, hung up, or sent what cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<Box<journal::Entry>>, AskError> {
        if self.0.deadline.left().is_some() {
            self.0.deadline = Deadline::after(self.0.within);
        }
        let answer = carried_out(self.0.receive()?)?;
        if answer == control::Answer::Done {
            return Ok(None);
        }
        let control::Answer::Entry { entry } = answer else { return Err(AskError::OtherAnswer) };
        Ok(Some(entry))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Longer than an answer takes on a loaded machine.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A listener that takes one connection, reads its request and hands it to `serve`. A peer that goes with the request
    /// unread takes back what it has answered.
    fn served(serve: impl FnOnce(UnixStream) + Send + 'static) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control");
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            let mut request = [0; 1024];
            assert!(peer.read(&mut request).unwrap() > 0);
            serve(peer);
        });
        (folder, socket)
    }

    fn ask(socket: &Path) -> Result<attempt::Answer, AskError> {
        ask_within(socket, PATIENCE)
    }

    fn ask_within(socket: &Path, within: Duration) -> Result<attempt::Answer, AskError> {
        ask_attempt(socket, &attempt::Request::Status, within)
    }

    /// Field case C201 (flathack/omarchy-tunarchy#19): the peer closes at once, after half an answer, or never answers.
    #[test]
    fn c201_a_peer_that_fails_ends_the_call_within_its_deadline() {
        let (_folder, socket) = served(drop);
        assert!(matches!(ask(&socket), Err(AskError::Closed { .. })));
        let (_folder, socket) = served(|mut peer| peer.write_all(b"{\"type\":\"stop").unwrap());
        assert!(matches!(ask(&socket), Err(AskError::Closed { .. })));
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (_folder, socket) = served(move |peer| {
            let _ = wait.recv();
            drop(peer);
        });
        assert!(matches!(ask_within(&socket, Duration::from_millis(300)), Err(AskError::Deadline { .. })));
        drop(done);
        let (_folder, socket) = served(|mut peer| peer.write_all(b"rubbish\n").unwrap());
        assert!(matches!(ask(&socket), Err(AskError::Unreadable { .. })));
    }

    #[test]
    fn an_answer_in_pieces_is_one_answer() {
        let (_folder, socket) = served(|mut peer| {
            peer.write_all(b"{\"type\":").unwrap();
            peer.write_all(b"\"stopping\"}\n").unwrap();
        });
        assert_eq!(ask(&socket).unwrap(), attempt::Answer::Stopping);
    }

    #[test]
    fn nobody_there_is_told_apart_from_silence() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control");
        assert!(matches!(ask(&socket), Err(AskError::NobodyThere { .. })));
        drop(UnixListener::bind(&socket).unwrap());
        assert!(matches!(ask(&socket), Err(AskError::NobodyThere { .. })));
        let long = folder.path().join("x".repeat(120)).join("agent.sock");
        assert!(matches!(ask(&long), Err(AskError::NobodyThere { .. })));
    }
}
