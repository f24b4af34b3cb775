//! What can go wrong: at loading, in a call, with the host itself.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::Kind;
use crate::bindings::PACKAGE_VERSIONS;
pub use crate::bindings::v0_2::sink::latido::plugin::types::PluginError;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The cache folder could not be made or looked at.
    #[error("use the plugin cache {path}")]
    Cache {
        /// the folder
        path: PathBuf,
        /// why
        source: io::Error,
    },
    /// The cache folder is another user's, or others may write into it.
    #[error("trust the plugin cache {path}: {why}; compiled code is run from it")]
    ForeignCache {
        /// the folder
        path: PathBuf,
        /// what is wrong with it
        why: &'static str,
    },
}

/// Why a plugin was not loaded. Names the plugin, what was found and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are no WebAssembly at all.
    #[error("load plugin `{plugin}`: found {found}, expected a WebAssembly component")]
    NotWasm {
        /// whose
        plugin: String,
        /// what the bytes look like
        found: &'static str,
    },
    /// A core module, which has no typed interface.
    #[error(
        "load plugin `{plugin}`: found a core module, expected a component; `wasm-tools component new` or \
         `latido plugin build` makes one from it"
    )]
    CoreModule {
        /// whose
        plugin: String,
    },
    /// The bytes end too early or are damaged.
    #[error("load plugin `{plugin}`: the component is truncated or damaged at byte {offset} of {length}: {message}")]
    Damaged {
        /// whose
        plugin: String,
        /// where
        offset: usize,
        /// how long it is
        length: usize,
        /// the decoder's words
        message: String,
    },
    /// The file is larger than any plugin needs.
    #[error("load plugin `{plugin}`: it has {length} bytes, at most {limit} are accepted")]
    TooLarge {
        /// whose
        plugin: String,
        /// how long it is
        length: usize,
        /// how long it may be
        limit: usize,
    },
    /// It was built against a version of the package that this host does not speak.
    #[error(
        "load plugin `{plugin}`: it uses `{found}`, this host speaks versions {} of that package; build it again \
         against wit/latido.wit of one of them",
        PACKAGE_VERSIONS.join(" and ")
    )]
    WrongVersion {
        /// whose
        plugin: String,
        /// the interface with the version it has
        found: String,
    },
    /// Its interfaces of the package are of two versions.
    #[error("load plugin `{plugin}`: it uses `{one}` and `{other}`; all interfaces of a plugin are of one version")]
    MixedVersions {
        /// whose
        plugin: String,
        /// an interface with its version
        one: String,
        /// another
        other: String,
    },
    /// It does not export what its kind has to.
    #[error("load plugin `{plugin}` as {kind}: it does not export `{missing}`; it exports {exports}")]
    MissingExport {
        /// whose
        plugin: String,
        /// what it is to be used as
        kind: Kind,
        /// the interface
        missing: String,
        /// what it does export, joined
        exports: String,
    },
    /// It imports what this host, or this kind of plugin, does not have.
    #[error("load plugin `{plugin}` as {kind}: it imports {imports}; a {kind} may import {offered}")]
    ForeignImports {
        /// whose
        plugin: String,
        /// what it is to be used as
        kind: Kind,
        /// what it imports that is not offered, joined
        imports: String,
        /// what it may import, joined
        offered: String,
    },
    /// It names the right version, but its interfaces are not those of that version.
    #[error(
        "load plugin `{plugin}`: its interfaces are not those of `latido:plugin@{version}`: {message}; build it again \
         against that version's text in wit/"
    )]
    Mismatch {
        /// whose
        plugin: String,
        /// the version that it names
        version: &'static str,
        /// the linker's words
        message: String,
    },
    /// The section `latido:manifest` cannot be read.
    #[error("load plugin `{plugin}`: its manifest is wrong: {message}")]
    Manifest {
        /// whose
        plugin: String,
        /// what is wrong
        message: String,
    },
    /// It is of another kind than it is to be used as.
    #[error("load plugin `{plugin}` as {kind}: its manifest says that it is a {found}")]
    WrongKind {
        /// whose
        plugin: String,
        /// what it is to be used as
        kind: Kind,
        /// what it is
        found: String,
    },
    /// It asks for what the operator did not grant.
    #[error(
        "load plugin `{plugin}`: it asks for what is not granted; to grant it, add to its table in latido.toml:\n{lines}"
    )]
    NotGranted {
        /// whose
        plugin: String,
        /// the lines to paste
        lines: String,
    },
    /// It cannot be compiled.
    #[error("compile plugin `{plugin}`: {message}")]
    Compile {
        /// whose
        plugin: String,
        /// the compiler's words
        message: String,
    },
    /// Its first instance, or `describe` or `configure` in it, failed.
    #[error("start plugin `{plugin}`")]
    Start {
        /// whose
        plugin: String,
        /// why
        source: CallError,
    },
    /// The engine could not be made on this machine.
    #[error("load plugin `{plugin}`: the WebAssembly engine cannot be made: {message}")]
    Engine {
        /// whose
        plugin: String,
        /// the engine's words
        message: String,
    },
}

/// Why a call brought no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The plugin's own answer; its instance is kept.
    #[error("call plugin `{plugin}`: it answered that {}", answer_text(.answer))]
    Plugin {
        /// whose
        plugin: String,
        /// what it answered
        answer: PluginError,
    },
    /// The plugin's fault; its instance is gone, and the next call makes and configures another.
    #[error("{0}")]
    Fault(Fault),
}

impl CallError {
    /// The plugin's own answer, if it is one.
    pub fn answer(&self) -> Option<&PluginError> {
        match self {
            Self::Plugin { answer, .. } => Some(answer),
            Self::Fault(_) => None,
        }
    }

    /// The fault, if it is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Plugin { .. } => None,
            Self::Fault(fault) => Some(fault),
        }
    }
}

fn answer_text(answer: &PluginError) -> String {
    match answer {
        PluginError::InvalidConfig(why) => format!("its settings are wrong: {why}"),
        PluginError::RetryAfter(ms) => format!("it cannot do it before {ms} ms have passed"),
        PluginError::Retry(why) => format!("it cannot do it at the moment: {why}"),
        PluginError::Permanent(why) => format!("it can never do it: {why}"),
        PluginError::Denied(what) => format!("it was denied {what}"),
        PluginError::Other(why) => why.clone(),
    }
}

/// What a plugin did that ended its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The operator's name for the plugin.
    pub plugin: String,
    /// The function that was called.
    pub function: &'static str,
    /// What happened.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// It trapped: a panic, an access out of bounds, a stack overflow. With its last words, if it had any.
    Trap(String),
    /// It computed longer than it may.
    CpuDeadline(Duration),
    /// It did not answer in time.
    WallDeadline(Duration),
    /// It was refused more memory than this many bytes, and ended.
    Memory(usize),
    /// It ended its own process, with this status.
    Exit(i32),
    /// It answered what cannot be: why.
    BadAnswer(String),
}

impl FaultKind {
    /// The fault's class, for metrics and records.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Trap(_) => "trap",
            Self::CpuDeadline(_) => "cpu-deadline",
            Self::WallDeadline(_) => "wall-deadline",
            Self::Memory(_) => "memory",
            Self::Exit(_) => "exit",
            Self::BadAnswer(_) => "bad-answer",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call `{}` of plugin `{}`: ", self.function, self.plugin)?;
        match &self.kind {
            FaultKind::Trap(message) => write!(f, "it trapped: {message}"),
            FaultKind::CpuDeadline(limit) => write!(f, "it computed longer than its limit of {limit:?} (limit `cpu`)"),
            FaultKind::WallDeadline(limit) => write!(f, "it did not answer within {limit:?} (limit `wall`)"),
            FaultKind::Memory(limit) => write!(f, "it ended when refused more than {limit} bytes (limit `memory`)"),
            FaultKind::Exit(status) => write!(f, "it ended itself with status {status}"),
            FaultKind::BadAnswer(why) => write!(f, "its answer cannot be: {why}"),
        }
    }
}
