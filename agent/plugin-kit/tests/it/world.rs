//! Components, a host with a cache of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use latido_plugin_host::{Budget, Command, Host, HostSettings, Situation, Subject, SubjectKind, Verdict};
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

/// A component from its text.
pub(crate) fn component(text: &str) -> Arc<[u8]> {
    wat::parse_str(format!("(component {text})")).unwrap().into()
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

/// A job that died once.
pub(crate) fn situation() -> Situation {
    Situation {
        now: 1,
        subject: Subject {
            name: "night".to_owned(),
            kind: SubjectKind::Job,
            host: "host".to_owned(),
            policy: "default".to_owned(),
            verdict: Verdict::Dead,
            since: 1,
            reason: "because".to_owned(),
            last_beat: None,
            silence: None,
            progress: None,
            progress_changed: None,
            usage: None,
            attempt: 1,
            epoch: 1,
            errors: 0,
            attributes: Vec::new(),
        },
        command: Command {
            program: "work".to_owned(),
            arguments: Vec::new(),
            directory: None,
            environment: Vec::new(),
        },
        attempts: Vec::new(),
        budget: Budget {
            attempts_left: None,
            turns_left: None,
            cost_left_usd: None,
            time_left: None,
            attributes: Vec::new(),
        },
        attributes: Vec::new(),
    }
}
