//! The private folder of the attempt's sockets: made, and made again when somebody cleared it away.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use latido_process::setup::User;
use latido_protocol::attempt::TOKEN_FILE;
use rustix::fs::Mode;

use crate::control::Control;
use crate::notify::NotifySocket;
use crate::surroundings;

/// Names of the sockets in their folder.
const CONTROL: &str = "control";
const NOTIFY: &str = "notify";

/// Binds both sockets in a private folder, which is made where there is none, and lays the token beside them. They are the
/// job's user's where it runs as another one.
pub(crate) fn bind(folder: &Path, token: &str, user: Option<&User>) -> io::Result<(Control, NotifySocket)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = folder.symlink_metadata()?;
    // A folder that was made for another user lets everybody through and lists nothing.
    let others = if user.is_some() { 0o066 } else { 0o077 };
    let own = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & others == 0;
    if !(found.is_dir() && own) {
        return Err(io::Error::other("it is not a folder of this user's own that is closed to others"));
    }
    let (control, notify) = (folder.join(CONTROL), folder.join(NOTIFY));
    for stale in [&control, &notify, &folder.join(TOKEN_FILE)] {
        match std::fs::remove_file(stale) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    let mut bound = (Control::bind(&control)?, NotifySocket::bind(&notify)?);
    for socket in [&control, &notify] {
        rustix::fs::chmod(socket, Mode::RUSR | Mode::WUSR)?;
        if let Some(user) = user {
            surroundings::give(socket, user)?;
        }
    }
    if let Some(user) = user {
        bound.0.admit(user.uid);
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(folder.join(TOKEN_FILE))?;
    file.write_all(token.as_bytes())?;
    Ok(bound)
}

/// Whether the sockets can still be found: what clears temporary folders away may have taken them.
pub(crate) fn are_there(folder: &Path, control: &Control, notify: &NotifySocket) -> bool {
    let same = |path: &Path, inode: u64| path.symlink_metadata().is_ok_and(|found| found.ino() == inode);
    same(&folder.join(CONTROL), control.inode()) && same(&folder.join(NOTIFY), notify.inode())
}

/// Takes the sockets away, once the ending is recorded.
pub(crate) fn remove(folder: &Path) {
    for name in [CONTROL, NOTIFY, TOKEN_FILE] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let _ = std::fs::remove_dir(folder);
}
