//! A host with a cache of its own, and components as `cargo xtask guests` builds them. The tests of the kit stand on it too.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use latido_plugin_host::{Host, HostSettings};
use tempfile::TempDir;

/// A host in a folder of its own.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) host: Host,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host =
            Host::new(HostSettings { cache: folder.path().join("cache"), compiler: None, metered: false }).unwrap();
        Self { folder, host }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A built-in plugin, as `cargo xtask guests` builds it.
pub(crate) fn builtin(name: &str) -> Arc<[u8]> {
    read(&components().join(format!("{name}.wasm")))
}

/// A guest of the tests.
pub(crate) fn guest(name: &str) -> Arc<[u8]> {
    read(&components().join("guests").join(format!("{name}.wasm")))
}

fn components() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components")
}

fn read(path: &Path) -> Arc<[u8]> {
    match std::fs::read(path) {
        Ok(bytes) => bytes.into(),
        Err(error) => panic!("cannot read {}: {error}; run `cargo xtask guests` first", path.display()),
    }
}
