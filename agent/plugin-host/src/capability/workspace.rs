//! `workspace`: what lies in the directory of the job that a call is about, read only.
//!
//! The directory belongs to the call, not to the plugin: an instance that serves several jobs reaches the one that it is
//! asked about, and nothing before or after that call.

mod beneath;

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;

use crate::bindings::v0_2::strategy::latido::plugin::workspace::{Entry, Host, Listed, WorkspaceError};
use crate::guest::Guest;
use crate::probe::{Told, Watch};
use crate::spec::WorkspaceGrant;

use beneath::Directory;

/// The right to look into the directories of jobs.
pub(crate) struct Workspace {
    read_max: u32,
    /// One look at a time: a disk that hangs holds one thread of the host and no more.
    turn: Arc<Mutex<()>>,
}

impl Workspace {
    pub(crate) fn new(grant: WorkspaceGrant) -> Self {
        Self { read_max: grant.read_max, turn: Arc::default() }
    }
}

impl Host for Guest {
    async fn look(&mut self, path: String) -> Result<Entry, WorkspaceError> {
        let seen = self.watch().map(|watch| (watch, json!({ "path": path })));
        watched(seen, "look", in_directory(self, move |directory, _| directory.look(&path))).await
    }

    async fn read(&mut self, path: String, offset: u64, length: u32) -> Result<Vec<u8>, WorkspaceError> {
        let seen = self.watch().map(|watch| (watch, json!({ "path": path, "offset": offset, "length": length })));
        let work = in_directory(self, move |directory, read_max| {
            if length > read_max { Err(WorkspaceError::TooLarge) } else { directory.read(&path, offset, length) }
        });
        watched(seen, "read", work).await
    }

    async fn list(&mut self, path: String) -> Result<Vec<Listed>, WorkspaceError> {
        let seen = self.watch().map(|watch| (watch, json!({ "path": path })));
        watched(seen, "list", in_directory(self, move |directory, _| directory.list(&path))).await
    }
}

/// Reads a file that has no more bytes than may be read at once.
pub(crate) async fn read_whole(guest: &mut Guest, path: String) -> Result<Vec<u8>, WorkspaceError> {
    let seen = guest.watch().map(|watch| (watch, json!({ "path": path })));
    let work = in_directory(guest, move |directory, read_max| {
        let bytes = directory.read(&path, 0, read_max.saturating_add(1))?;
        if bytes.len() > read_max as usize { Err(WorkspaceError::TooLarge) } else { Ok(bytes) }
    });
    watched(seen, "read", work).await
}

/// Does the work, before the eyes of who looks on.
async fn watched<T: Told>(
    seen: Option<(Arc<Watch>, serde_json::Value)>,
    function: &'static str,
    work: impl Future<Output = Result<T, WorkspaceError>> + Send,
) -> Result<T, WorkspaceError> {
    match seen {
        None => work.await,
        Some((watch, arguments)) => watch.around("workspace", function, arguments, work).await,
    }
}

/// Opens the directory of the call's job, and works in it on a thread that may block, so that the call's deadline holds.
/// `work` is given how many bytes may be read at once.
fn in_directory<T: Send + 'static, W>(
    guest: &Guest,
    work: W,
) -> impl Future<Output = Result<T, WorkspaceError>> + Send + use<T, W>
where
    W: FnOnce(&Directory, u32) -> Result<T, WorkspaceError> + Send + 'static,
{
    // Taken before the wait: the guest itself cannot be shared between threads.
    let granted = guest.capabilities.workspace.as_ref().map(|granted| (granted.read_max, Arc::clone(&granted.turn)));
    let path = guest.directory.clone();
    async move {
        let Some((read_max, turn)) = granted else {
            return Err(WorkspaceError::Denied("`workspace` is not granted".to_owned()));
        };
        let Some(path) = path else {
            return Err(WorkspaceError::Denied("this call is about no job's directory".to_owned()));
        };
        let turn = turn.lock_owned().await;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(&Directory::open(&path)?, read_max)
        });
        done.await.unwrap_or_else(|_| Err(WorkspaceError::Failed("the host failed at the directory".to_owned())))
    }
}
