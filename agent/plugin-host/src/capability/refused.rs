//! Capabilities that nobody is granted: each call answers `denied`.

use crate::bindings::v0::strategy::latido::plugin::workspace;
use crate::guest::Guest;

impl workspace::Host for Guest {
    async fn look(&mut self, _path: String) -> Result<workspace::Entry, workspace::WorkspaceError> {
        Err(workspace::WorkspaceError::Denied("`workspace` is not granted".to_owned()))
    }

    async fn read(&mut self, _path: String, _offset: u64, _length: u32) -> Result<Vec<u8>, workspace::WorkspaceError> {
        Err(workspace::WorkspaceError::Denied("`workspace` is not granted".to_owned()))
    }

    async fn list(&mut self, _path: String) -> Result<Vec<workspace::Listed>, workspace::WorkspaceError> {
        Err(workspace::WorkspaceError::Denied("`workspace` is not granted".to_owned()))
    }
}
