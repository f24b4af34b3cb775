//! What plugins may call. Each answers `denied` unless the plugin asked for it and the operator granted it; none traps.

pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod sql;
pub(crate) mod workspace;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::fixed::Fixed;
use crate::probe::Watch;
use crate::spec::{Grants, PluginSpec};
use crate::state::StateStore;

/// What one plugin was granted. It outlives the plugin's instances, and what they opened stays open.
pub(crate) struct Capabilities {
    pub(crate) plugin: Arc<str>,
    pub(crate) logged: Arc<log::Rate>,
    pub(crate) databases: BTreeMap<String, sql::Database>,
    pub(crate) files: BTreeMap<String, files::AppendFile>,
    pub(crate) http: Option<Arc<http::Client>>,
    pub(crate) state: Option<Arc<dyn StateStore>>,
    pub(crate) workspace: Option<workspace::Workspace>,
    pub(crate) fixed: Option<Fixed>,
    /// who looks on, where somebody does
    pub(crate) watch: Option<Arc<Watch>>,
    pub(crate) meter: Arc<Meter>,
}

/// What the instances of one plugin used.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) memory_peak: AtomicUsize,
    pub(crate) fuel: AtomicU64,
}

impl Capabilities {
    pub(crate) fn new(spec: &PluginSpec, grants: Grants) -> Self {
        let limits = &spec.limits;
        let databases = grants.sql.into_iter();
        let files = grants.files.into_iter();
        Self {
            plugin: spec.name.as_str().into(),
            logged: Arc::default(),
            databases: databases.map(|(name, grant)| (name, sql::Database::new(grant, limits))).collect(),
            files: files.map(|(name, grant)| (name, files::AppendFile::new(grant))).collect(),
            http: grants.http.map(|grant| Arc::new(http::Client::new(grant, limits))),
            state: grants.state,
            workspace: grants.workspace.map(workspace::Workspace::new),
            fixed: spec.fixed,
            watch: spec.probe.clone().map(|probe| Arc::new(Watch::new(probe))),
            meter: Arc::default(),
        }
    }

    /// Whether a database was moved away or removed under the instance that uses it, once.
    pub(crate) fn take_moved(&self) -> bool {
        self.databases.values().fold(false, |moved, database| database.take_moved() | moved)
    }
}

/// A file as the system knows it: another one may come to the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    /// Whether it lies at the path.
    fn is_at(self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|found| Self::of(&found) == self)
    }
}
