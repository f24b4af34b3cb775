//! What the operator says about one plugin: where it comes from, its settings, what it is granted, its limits.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::fixed::Fixed;
use crate::probe::Probe;
use crate::state::StateStore;
use crate::web::HttpGrant;

/// The kind of a plugin; each is a world of the WIT package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Stores what happened: the world `storage-sink`.
    Sink,
    /// Finds what somebody should be told: the world `alert-rule`.
    Rule,
    /// Decides how a job goes on: the world `resume-strategy`.
    Strategy,
}

impl Kind {
    /// The kind's name, which is also that of the interface it exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sink => "sink",
            Self::Rule => "rule",
            Self::Strategy => "strategy",
        }
    }

    /// The default limits on calls of this kind.
    fn wall(self) -> Duration {
        match self {
            Self::Sink => Duration::from_secs(10),
            Self::Rule => Duration::from_secs(2),
            Self::Strategy => Duration::from_secs(5),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One plugin, as the operator wants it.
#[derive(Clone, Debug)]
pub struct PluginSpec {
    /// The operator's name for it, by which messages and logs name it.
    pub name: String,
    /// What it is to be used as.
    pub kind: Kind,
    /// The component's bytes, read once.
    pub component: Arc<[u8]>,
    /// Its settings, a JSON object.
    pub settings: serde_json::Value,
    /// What it may do, of what its manifest asks for.
    pub grants: Grants,
    /// Where the host ends what it does.
    pub limits: Limits,
    /// A clock that stands and randomness that is known, in place of the machine's.
    pub fixed: Option<Fixed>,
    /// Who sees what it asks of the host, and may answer in the host's place.
    pub probe: Option<Arc<dyn Probe>>,
}

impl PluginSpec {
    /// A plugin without settings and grants, with its kind's default limits.
    pub fn new(name: impl Into<String>, kind: Kind, component: impl Into<Arc<[u8]>>) -> Self {
        Self {
            name: name.into(),
            kind,
            component: component.into(),
            settings: serde_json::Value::Object(serde_json::Map::new()),
            grants: Grants::default(),
            limits: Limits::of(kind),
            fixed: None,
            probe: None,
        }
    }
}

/// What the operator allows. The default is nothing.
#[derive(Clone, Default)]
pub struct Grants {
    /// Databases by the plugin's name for them.
    pub sql: BTreeMap<String, SqlGrant>,
    /// Files by the plugin's name for them.
    pub files: BTreeMap<String, FileGrant>,
    /// Requests over HTTP.
    pub http: Option<HttpGrant>,
    /// The plugin's durable memory.
    pub state: Option<Arc<dyn StateStore>>,
    /// What lies in the directory of the job that a strategy is asked about.
    pub workspace: Option<WorkspaceGrant>,
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants")
            .field("sql", &self.sql)
            .field("files", &self.files)
            .field("http", &self.http)
            .field("state", &self.state.is_some())
            .field("workspace", &self.workspace)
            .finish()
    }
}

/// When an answer of the host means that something is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power failure: every answer waits for the disk.
    #[default]
    Disk,
    /// It survives the end of any process, and a power failure may take the last answers back.
    Process,
}

/// One SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlGrant {
    /// Its file, made if it is not there.
    pub path: PathBuf,
    /// When a transaction counts as kept.
    pub durability: Durability,
}

impl<P: Into<PathBuf>> From<P> for SqlGrant {
    fn from(path: P) -> Self {
        Self { path: path.into(), durability: Durability::Disk }
    }
}

/// One file that lines may be appended to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileGrant {
    /// The file, made if it is not there.
    pub path: PathBuf,
    /// When appended lines count as kept.
    pub durability: Durability,
}

impl<P: Into<PathBuf>> From<P> for FileGrant {
    fn from(path: P) -> Self {
        Self { path: path.into(), durability: Durability::Disk }
    }
}

/// The directories of jobs, read only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceGrant {
    /// Bytes that are read at once.
    pub read_max: u32,
}

impl WorkspaceGrant {
    /// The largest `read_max`: what is read lies in memory twice, in the agent and in the plugin.
    pub const READ_MAX: u32 = 16 << 20;
}

impl Default for WorkspaceGrant {
    fn default() -> Self {
        Self { read_max: 64 << 10 }
    }
}

/// Where the host ends what a plugin does. Each limit ends one call; none can be waited out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Computing time of one call; time in the host does not count.
    pub cpu: Duration,
    /// Time that one call may take in all, the host's work included.
    pub wall: Duration,
    /// Linear memory of an instance in all, in bytes.
    pub memory: usize,
    /// What one call of the host may make it allocate, in bytes.
    pub hostcall: usize,
    /// Entries in one batch.
    pub batch_entries: usize,
    /// Bytes of the entries in one batch; one entry goes alone however many it has.
    pub batch_bytes: usize,
    /// Findings in one answer.
    pub findings: usize,
    /// Bytes of one line in the log; the rest is cut.
    pub log_line: usize,
    /// Bytes that one call may log; the rest is dropped and counted.
    pub log_call: usize,
    /// Lines that one call may log; the rest is dropped and counted.
    pub log_lines: usize,
    /// Bytes of one query's result.
    pub sql_result: usize,
    /// Pages of 4 KiB in one database.
    pub sql_pages: u32,
    /// Time of one request over HTTP, redirects included.
    pub http: Duration,
    /// Bytes of one request's body and of its answer's.
    pub http_body: usize,
    /// Calls after which a healthy instance is replaced, since linear memory never shrinks.
    pub calls: u64,
}

impl Limits {
    /// The default limits of a kind.
    pub fn of(kind: Kind) -> Self {
        Self {
            // A sink turns a thousand entries into rows in 1 ms; Python takes 50 times as long.
            cpu: match kind {
                Kind::Sink => Duration::from_millis(500),
                Kind::Rule | Kind::Strategy => Duration::from_millis(250),
            },
            wall: kind.wall(),
            // Holds the largest of ten measured languages (StarlingMonkey: 52 MiB between two collections).
            memory: 64 << 20,
            hostcall: 8 << 20,
            batch_entries: 1000,
            // A guest holds it several times over: as it came, in its own types, as what it makes of it.
            batch_bytes: 4 << 20,
            findings: 10_000,
            log_line: 8 << 10,
            log_call: 64 << 10,
            log_lines: 100,
            sql_result: 16 << 20,
            sql_pages: 262_144, // 1 GiB
            // Less than the wall limit of a sink: a server that hangs is an answer, not the plugin's fault.
            http: Duration::from_secs(8),
            http_body: 1 << 20,
            calls: 10_000,
        }
    }
}
