//! The agent's place: the state directory, its exclusive lock, and the control socket.
//!
//! The lock comes first and everything else after it, so that a second agent leaves no trace. A socket file that a
//! dead agent left is replaced; anything else at its path is left alone and named.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::lock::{Lock, LockError};
use latido_protocol::control::Request;
use latido_protocol::layout::StateDir;

use crate::jobs::client::{self, AskError};
use crate::jobs::exposed::exposed_at;

/// Bytes of a Unix socket's path, the final NUL not counted.
const SOCKET_PATH_MAX: usize = 107;

/// An agent that runs answers within this; one that is stopped by a signal does not, and is there all the same.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Why the place could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The state directory cannot be made or written.
    #[error("use the state directory {path}")]
    Directory {
        /// which
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
    /// The state directory is open to others, or belongs to another user.
    #[error("use the state directory {path}: {detail}")]
    Unsafe {
        /// which
        path: PathBuf,
        /// what is wrong with it
        detail: String,
    },
    /// Another agent holds it.
    #[error("watch {path}: {holder} watches it already")]
    Taken {
        /// the state directory
        path: PathBuf,
        /// who, as far as it can be told
        holder: String,
    },
    /// The lock file itself.
    #[error("lock {path}")]
    Lock {
        /// the lock file
        path: PathBuf,
        /// what the system said
        source: LockError,
    },
    /// Something that is no socket lies at the socket's path.
    #[error("make the control socket {path}: a {kind} lies there")]
    NotASocket {
        /// the path
        path: PathBuf,
        /// what lies there
        kind: &'static str,
    },
    /// The socket cannot be made.
    #[error("make the control socket {path}")]
    Socket {
        /// the path
        path: PathBuf,
        /// what the system said
        source: io::Error,
    },
}

/// Where the control socket is to be found.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    /// the socket's own path
    bound: PathBuf,
    /// a link at the state directory's path that leads to it, when that path is too long
    link: Option<PathBuf>,
    /// of the socket's file
    inode: u64,
}

impl Door {
    fn make(bound: PathBuf, link: Option<PathBuf>) -> Result<(Self, UnixListener), PlaceError> {
        let listener = bind(&bound)?;
        let fail = |path: &Path, source| PlaceError::Socket { path: path.to_owned(), source };
        if let Some(link) = &link {
            free(link, "agent.sock")?;
            std::os::unix::fs::symlink(&bound, link).map_err(|source| fail(link, source))?;
        }
        let inode = fs::symlink_metadata(&bound).map_err(|source| fail(&bound, source))?.ino();
        Ok((Self { bound, link, inode }, listener))
    }

    /// Whether clients find the socket. Somebody, or what clears temporary folders away, may have removed it.
    pub(crate) fn is_there(&self) -> bool {
        let leads = |path: &Path| fs::metadata(path).is_ok_and(|found| found.ino() == self.inode);
        leads(&self.bound) && self.link.as_deref().is_none_or(leads)
    }

    /// Binds it again, and its folder where that is gone too.
    pub(crate) fn make_again(&self) -> Result<(Self, UnixListener), PlaceError> {
        if let (Some(_), Some(folder)) = (&self.link, self.bound.parent()) {
            private_directory(folder)?;
        }
        Self::make(self.bound.clone(), self.link.clone())
    }
}

/// A state directory that this process alone watches. Dropping it removes the socket and frees the lock.
pub(crate) struct Place {
    listener: UnixListener,
    door: Door,
    /// the lock's file
    locked: PathBuf,
    lock: Lock,
}

impl Place {
    /// Takes the directory's lock, then its socket.
    pub(crate) fn take(state: &StateDir) -> Result<Self, PlaceError> {
        private_directory(state.path())?;
        refuse_exposed(state.path())?;
        let path = state.agent_lock();
        let lock = match Lock::take(&path) {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                let holder = fs::read_to_string(&path).ok().filter(|pid| !pid.trim().is_empty());
                let holder =
                    holder.map_or("another agent".to_owned(), |pid| format!("the agent with pid {}", pid.trim()));
                return Err(PlaceError::Taken { path: state.path().to_owned(), holder });
            }
            Err(source) => return Err(PlaceError::Lock { path, source }),
        };
        // Somebody may have removed the lock's file under an agent that runs: its socket still tells of it.
        if !matches!(client::ask_agent(state, Request::Hello, ANSWERS_WITHIN), Err(AskError::NobodyThere { .. })) {
            let holder =
                "an agent whose agent.lock was removed, or that of another directory, answers at its socket and";
            let holder = holder.to_owned();
            return Err(PlaceError::Taken { path: state.path().to_owned(), holder });
        }
        // For the message of a second agent; the lock itself proves, not this number.
        let _for_people = fs::File::create(&path).and_then(|mut file| writeln!(file, "{}", std::process::id()));
        let socket = state.agent_socket();
        let (bound, link) = if socket.as_os_str().as_bytes().len() > SOCKET_PATH_MAX {
            let folder =
                crate::jobs::sockets::make_folder(std::env::var_os("XDG_RUNTIME_DIR").as_deref().map(Path::new))
                    .map_err(|error| PlaceError::Socket { path: socket.clone(), source: io::Error::other(error) })?;
            (folder.join("agent.sock"), Some(socket))
        } else {
            (socket, None)
        };
        let (door, listener) = Door::make(bound, link)?;
        Ok(Self { listener, door, locked: path, lock })
    }

    /// Where its socket is.
    pub(crate) fn door(&self) -> Door {
        self.door.clone()
    }

    /// A handle to the socket, for one runtime.
    pub(crate) fn listener(&self) -> io::Result<UnixListener> {
        let listener = self.listener.try_clone()?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Where somebody removed the lock's file, what lies there is another agent's, or may be.
        if !self.lock.is_at(&self.locked) {
            return;
        }
        // Whoever finds a number there and nobody who answers knows that this agent did not end by order.
        let _left = fs::File::create(&self.locked);
        // What cannot be removed is found by the next agent, which holds the lock then.
        let Door { bound, link, .. } = &self.door;
        let _left = fs::remove_file(bound);
        if let Some(link) = link {
            let _left = fs::remove_file(link);
            let _left = bound.parent().map(fs::remove_dir);
        }
    }
}

/// This program does what the files say, so nobody else may put others in their place.
fn refuse_exposed(path: &Path) -> Result<(), PlaceError> {
    let Some(folder) = exposed_at(path) else { return Ok(()) };
    let folder = folder.display();
    let detail = format!("everybody may write to {folder}, and so put another directory in its place");
    Err(PlaceError::Unsafe { path: path.to_owned(), detail })
}

fn private_directory(path: &Path) -> Result<(), PlaceError> {
    let fail = |source| PlaceError::Directory { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(fail)?;
    let metadata = fs::metadata(path).map_err(fail)?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        let detail = format!("it belongs to user {}, and this is user {own}", metadata.uid());
        return Err(PlaceError::Unsafe { path: path.to_owned(), detail });
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(fail)?;
        tracing::warn!(path = %path.display(), "the state directory was open to others; it is private");
    }
    Ok(())
}

/// Makes the socket under a private name and moves it into place, so that it is 0600 from birth.
fn bind(path: &Path) -> Result<UnixListener, PlaceError> {
    let fail = |source| PlaceError::Socket { path: path.to_owned(), source };
    free(path, "control socket")?;
    // The directory is 0700: nobody else can reach the socket before its mode is set.
    let listener = UnixListener::bind(path).map_err(fail)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

/// Removes a dead agent's socket or link; anything else stays.
fn free(path: &Path, what: &str) -> Result<(), PlaceError> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(PlaceError::Socket { path: path.to_owned(), source }),
        Ok(metadata) => metadata.file_type(),
    };
    if kind.is_socket() || (kind.is_symlink() && leads_to_a_socket_of_ours(path)) {
        tracing::info!(path = %path.display(), "a dead agent left its {what}");
        return fs::remove_file(path).map_err(|source| PlaceError::Socket { path: path.to_owned(), source });
    }
    let kind = if kind.is_dir() {
        "directory"
    } else if kind.is_symlink() {
        "link"
    } else {
        "file"
    };
    Err(PlaceError::NotASocket { path: path.to_owned(), kind })
}

fn leads_to_a_socket_of_ours(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target.file_name().is_some_and(|name| name == "agent.sock"))
}
