//! Messages on the agent's control socket: one JSON object a line, a request and its answer.
//!
//! The first request of a connection may be any; each carries the version, and a newer one is refused with the version
//! that the agent speaks.

use serde::{Deserialize, Serialize};

use crate::alerts::{AlertRequest, AlertsDocument};
use crate::registry::{Question, RegistryStatus, Reply};
use crate::status::StatusDocument;
use crate::{Span, SubjectName};

/// Bytes of one request. Answers may be longer; they are streamed.
pub const REQUEST_MAX: usize = 64 * 1024;

/// One request with its version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`crate::FORMAT_VERSION`]
    pub version: u32,
    /// what is asked
    pub request: Request,
}

/// What is asked of the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// Are you there?
    Hello,
    /// The status document; over all subjects, or over those named.
    Status {
        /// empty: all
        #[serde(default)]
        subjects: Vec<SubjectName>,
    },
    /// The files of this job have changed (made, wanted, removed): read them again now, and answer when it is done.
    Changed {
        /// which job
        job: SubjectName,
    },
    /// A check signals. Answered by `done` when it is judged and written down.
    Signal {
        /// which check
        subject: SubjectName,
        /// what
        signal: CheckSignal,
        /// the id of the run it is about, which tells overlapping runs apart
        #[serde(default)]
        run_id: Option<String>,
        /// the work's own word for its state
        #[serde(default)]
        state: Option<String>,
    },
    /// Suspend the judging of a check or a watched process.
    Pause {
        /// which
        subject: SubjectName,
        /// how long; absent is until it is told otherwise
        #[serde(default)]
        length: Option<Span>,
    },
    /// Judge it again.
    Unpause {
        /// which
        subject: SubjectName,
    },
    /// Journal entries after a sequence; with `follow` also those that come.
    Events {
        /// the last sequence already known, 0 for none
        after: u64,
        /// go on until the connection closes
        follow: bool,
    },
    /// About alerts; answered by `alerts`.
    Alerts {
        /// what
        ask: AlertRequest,
    },
    /// Something about workers, groups or claims.
    Registry {
        /// what
        question: Question,
    },
    /// All workers and targets at one moment.
    Workers,
    /// Load a plugin again from its file, and forget its faults. Answered by `done` when it works.
    ReloadPlugin {
        /// its name in the config
        plugin: String,
    },
    /// Record what a plugin is called with and answers, beginning with a new instance. Answered by `recorded`.
    RecordPlugin {
        /// its name in the config
        plugin: String,
        /// how long
        length: Span,
    },
}

/// What a check says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CheckSignal {
    /// A run began.
    Start,
    /// A run succeeded.
    Success,
    /// A run failed.
    Fail,
    /// A run ended with this exit status; 0 is success.
    ExitStatus {
        /// the exit status
        status: u8,
    },
    /// Something to keep as its state, which says nothing about its life.
    Log,
}

/// What the agent answers. `Events` is answered by entries, one a line, and a final `done` unless it follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Answer {
    /// To a hello.
    Hello {
        /// the program's version
        agent: String,
        /// its pid
        pid: u32,
    },
    /// To a status.
    Status {
        /// the document
        document: Box<StatusDocument>,
    },
    /// An entry of the journal.
    Entry {
        /// the entry
        entry: Box<crate::journal::Entry>,
    },
    /// To what was asked about alerts: how they are afterwards.
    Alerts {
        /// the document
        document: Box<AlertsDocument>,
    },
    /// To a question of the registry.
    Registry {
        /// its answer
        reply: Reply,
    },
    /// To a question for all workers.
    Workers {
        /// all of one moment
        status: Box<RegistryStatus>,
    },
    /// What a plugin was called with and answered; secrets are left out.
    Recorded {
        /// the case, in TOML
        case: String,
        /// what the plugin asked and answered, in JSON
        golden: String,
        /// calls in it
        calls: usize,
        /// whether there were more than a record holds
        is_cut: bool,
    },
    /// It is done.
    Done,
    /// The request was not carried out.
    Error {
        /// of which kind the reason is
        #[serde(default)]
        kind: ErrorKind,
        /// why, as a fragment that fits after "cannot"
        message: String,
    },
}

/// Why a request was not carried out, for programs that go on by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// It cannot be done as it was asked.
    #[default]
    Refused,
    /// Nothing of the name that it gives is known.
    Unknown,
}
