//! Messages on an attempt's own control socket: one JSON object a line, a request and its answer.
//!
//! The socket is served by the attempt's supervisor. A line longer than [`LINE_MAX`] is answered with an error and the
//! connection is closed, while reading.

use serde::{Deserialize, Serialize};

use crate::files::{Spent, Status};
use crate::{Progress, Span, SubjectName};

/// Bytes of one line. A progress with two texts of the longest kind fits twice.
pub const LINE_MAX: usize = 16 * 1024;

/// The file beside the sockets that holds the attempt's token, for whoever may read the private folder: a beat carries it
/// also where it comes from outside the attempt.
pub const TOKEN_FILE: &str = "token";

/// What is asked of a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// One beat of the work.
    Beat(Beat),
    /// A job that the work started and waits for has new progress. It counts as the work's own, and is no beat of it.
    ChildMoved {
        /// `LATIDO_TOKEN` of the caller
        token: Option<String>,
        /// which job
        child: SubjectName,
        /// how far it is, in words
        step: String,
    },
    /// Does this attempt still hold its epoch?
    Fence {
        /// `LATIDO_TOKEN` of the caller; without it nothing is answered but that another attempt has taken over
        #[serde(default)]
        token: Option<String>,
        /// `LATIDO_EPOCH` of the caller
        epoch: u64,
    },
    /// End the job: SIGTERM to its group, the grace, SIGKILL, scan.
    Stop {
        /// replaces the job's own grace
        #[serde(default)]
        grace: Option<Span>,
        /// SIGKILL at once
        #[serde(default)]
        force: bool,
        /// what it rests on: where that is not so, nothing is done, and it is answered with [`Answer::Error`]
        #[serde(default)]
        ground: Option<Ground>,
        /// how the ending is recorded
        because: StopReason,
        /// who asks, in words
        by: String,
    },
    /// Asks for [`Answer::Status`] once.
    Status,
    /// Asks for [`Answer::Status`] now and whenever something is new, until the connection closes.
    Watch,
}

/// What an order for want of beats or progress rests on. The supervisor hears its job before anybody else does, and time in
/// which it was stopped itself counts for it alone: so it looks once more before it ends anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Ground {
    /// No own beat for this long.
    Silent {
        /// in seconds
        for_s: Span,
    },
    /// No new progress for this long.
    Still {
        /// in seconds
        for_s: Span,
    },
    /// Its last own beats said nothing new, and no other has come since.
    Repeating {
        /// own beats until then
        beats: u64,
    },
    /// It says itself that it is broken.
    Broken,
}

/// Why a supervisor is told to end its job; it decides the class of the ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// By order: class `stopped`.
    Commanded,
    /// Its lease ran out and its policy resumes on `stale`: class `lost`.
    Stale,
    /// Its progress stood still and its policy resumes on `hung`: class `lost`.
    Hung,
    /// A limit of its own: class `limit`.
    Limit,
    /// Its epoch was fenced off: class `lost`.
    Superseded,
}

/// One beat of the work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beat {
    /// the attempt's token: `LATIDO_TOKEN` of the sender, or what [`TOKEN_FILE`] holds. Without it nothing is taken
    pub token: Option<String>,
    /// `LATIDO_ATTEMPT` of the sender, where it has one
    pub attempt: Option<u32>,
    /// `LATIDO_EPOCH` of the sender, where it has one
    pub epoch: Option<u64>,
    /// how far the work is; what is absent stays as it was
    pub progress: Progress,
    /// the work's own word for its state
    pub state: Option<String>,
    /// errors the work has counted
    pub errors: Option<u64>,
    /// what this attempt used up so far; less than was told before changes nothing
    pub spent: Spent,
}

/// What a supervisor answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Answer {
    /// To a beat or a fence.
    Advice {
        /// what the work should do
        advice: Advice,
    },
    /// To a stop: the sequence has begun. The end shows in `end.json` and in the end of the supervisor.
    Stopping,
    /// To a status or a watch.
    Status {
        /// the latest
        status: Box<Status>,
    },
    /// The request was not carried out.
    Error {
        /// why, as a fragment that fits after "cannot"
        message: String,
    },
}

/// What the answer to a beat advises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Go on.
    GoOn,
    /// Take nothing new, finish, end.
    Drain,
    /// End now.
    Stop,
    /// Another attempt has taken over: write nothing more, end.
    Superseded,
}

/// What the supervisor writes, once, on the pipe to its starter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Report {
    /// The job runs, and that is on the disk.
    Started {
        /// the job's first process
        pid: u32,
    },
    /// The job could not be started, and that is on the disk as an ending.
    LaunchFailed {
        /// why
        detail: String,
    },
    /// The supervisor could not do its own work; nothing was started.
    Refused {
        /// why
        detail: String,
    },
}
