//! Says how far the work is, as `sd_notify` does: datagrams to the socket that `NOTIFY_SOCKET` names.

use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use crate::pace;

/// How long a full socket may hold the work up: the listener may be stopped, and the work is worth more than the word.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often a beat is sent between two commits.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// Where the words go; without a socket they go nowhere.
pub(crate) struct Notifier {
    socket: Option<UnixDatagram>,
    sent: Instant,
    has_warned: bool,
}

impl Notifier {
    /// Connects to what `NOTIFY_SOCKET` names. A socket that is not there is warned of once and changes nothing else.
    pub(crate) fn from_environment() -> Self {
        let mut notifier = Self { socket: None, sent: pace::now(), has_warned: false };
        if let Some(name) = std::env::var_os("NOTIFY_SOCKET") {
            match connect(name.as_bytes()) {
                Ok(socket) => notifier.socket = Some(socket),
                Err(error) => notifier.warn(&error),
            }
        }
        notifier
    }

    /// Sends one datagram.
    pub(crate) fn send(&mut self, text: &str) {
        self.sent = pace::now();
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(text.as_bytes()) {
            self.warn(&error);
        }
    }

    /// Says that the work goes on, if nothing was said for a while.
    pub(crate) fn beat(&mut self, fraction: f64) {
        if pace::now().duration_since(self.sent) >= BEAT_EVERY {
            self.send(&format!("WATCHDOG=1\nX_LATIDO_PROGRESS={fraction:.6}"));
        }
    }

    fn warn(&mut self, error: &io::Error) {
        if !self.has_warned {
            self.has_warned = true;
            let _ = writeln!(io::stderr(), "warning: cannot reach NOTIFY_SOCKET: {error}; the work goes on");
        }
    }
}

fn connect(name: &[u8]) -> io::Result<UnixDatagram> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsString::from_vec(name.to_owned()))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
