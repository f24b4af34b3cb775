//! Components, a host with a cache of its own, entries.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use latido_plugin_host::{
    Beat, Body, CallError, Entry, FaultKind, Host, HostSettings, Kind, PluginSpec, Progress, Subject, SubjectKind,
    Transition, Verdict,
};
use serde_json::json;
use tempfile::TempDir;

/// A host in a folder of its own.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) host: Host,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::new(HostSettings { cache: folder.path().join("cache") }).unwrap();
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

/// A guest that misbehaves.
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

/// The sink that misbehaves as it is told.
pub(crate) fn misbehaving(place: &str, what: &str) -> PluginSpec {
    let mut spec = PluginSpec::new("bad", Kind::Sink, guest("misbehave"));
    spec.settings = json!({ "where": place, "what": what });
    // Only what never ends is ended by its time; on a crowded machine all else would be too.
    let limit = if what == "loop" { Duration::from_millis(200) } else { Duration::from_secs(60) };
    spec.limits.cpu = limit;
    spec.limits.wall = spec.limits.wall.max(limit);
    spec
}

/// A beat with progress, as entries go.
pub(crate) fn beat(sequence: u64) -> Entry {
    Entry {
        sequence,
        agent: "agent-1".into(),
        at: 1_700_000_000_000 + sequence,
        body: Body::Beat(Beat {
            subject: "catalogue".into(),
            attempt: 2,
            epoch: 7,
            sequence,
            progress: Some(Progress {
                fraction: Some(0.5),
                done: Some(sequence),
                total: Some(1000),
                step: Some("hashing".into()),
                checkpoint: None,
            }),
            usage: None,
            state: Some("walking".into()),
            errors: 0,
        }),
        attributes: Vec::new(),
    }
}

pub(crate) fn transition(sequence: u64) -> Entry {
    Entry {
        body: Body::Transition(Transition {
            subject: "catalogue".into(),
            kind: SubjectKind::Job,
            attempt: 2,
            epoch: 7,
            previous: Verdict::Alive,
            current: Verdict::Stale,
            reason: "silent for 181 s".into(),
        }),
        ..beat(sequence)
    }
}

pub(crate) fn subject(name: &str, verdict: Verdict) -> Subject {
    Subject {
        name: name.into(),
        kind: SubjectKind::Job,
        host: "here".into(),
        policy: "default".into(),
        verdict,
        since: 0,
        reason: "because".into(),
        last_beat: None,
        silence: None,
        progress: None,
        progress_changed: None,
        usage: None,
        attempt: 1,
        epoch: 1,
        errors: 0,
        attributes: Vec::new(),
    }
}

/// The kind of the fault that a call ended with.
#[track_caller]
pub(crate) fn fault<T: std::fmt::Debug>(result: Result<T, CallError>) -> FaultKind {
    match result {
        Err(CallError::Fault(fault)) => fault.kind,
        other => panic!("expected a fault, got {other:?}"),
    }
}
