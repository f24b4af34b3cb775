//! The peers, where they are installed: `runsv` of runit and `s6-supervise` of s6, one process for each service as here.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use latido_process::Signal;

use crate::place::{Guarded, Place, until};

/// Whether a program is installed.
fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A service under a peer's supervisor.
pub(crate) struct Service {
    /// The supervisor; ending it ends the service.
    pub(crate) supervisor: Guarded,
    /// The service's folder.
    pub(crate) folder: PathBuf,
}

impl Service {
    /// Starts `supervisor` over a service that runs `words`; `None` where it is not installed. With `down` the service
    /// waits for an order.
    pub(crate) fn start(
        place: &Place,
        supervisor: &str,
        name: &str,
        words: &[String],
        down: bool,
    ) -> anyhow::Result<Option<Self>> {
        if !is_installed(supervisor) {
            return Ok(None);
        }
        let folder = place.path(name);
        fs::create_dir(&folder)?;
        let run = folder.join("run");
        fs::write(&run, format!("#!/bin/sh\nexec {}\n", words.join(" ")))?;
        fs::set_permissions(&run, fs::Permissions::from_mode(0o755))?;
        if down {
            fs::write(folder.join("down"), "")?;
        }
        let supervisor = Guarded::start(place.command(supervisor).arg(&folder), Signal::TERM)?;
        let ready = folder.join("supervise/status");
        until("the peer's start", Duration::from_millis(2), || ready.exists().then_some(()))?;
        Ok(Some(Self { supervisor, folder }))
    }

    /// Gives runit's order.
    pub(crate) fn order(place: &Place, order: &str, folder: &Path) -> anyhow::Result<()> {
        place.command("sv").arg(order).arg(folder).status()?;
        Ok(())
    }
}
