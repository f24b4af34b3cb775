//! The formats latido speaks: attempt files, socket messages, the status document and the journal.
//!
//! This crate knows shapes and how a file in one of them is read and written whole. It starts nothing, waits for
//! nothing and reads no clock: times are given. Every format is an interface, readable by `cat` and `jq`, and carries
//! [`FORMAT_VERSION`].

pub mod alerts;
pub mod attempt;
mod budget;
mod chain;
pub mod control;
mod count;
pub mod disk;
mod excuse;
pub mod files;
pub mod journal;
mod kept;
pub mod launching;
pub mod layout;
mod line;
mod log_limits;
mod name;
pub mod notify;
mod outcome;
mod progress;
mod redaction;
pub mod registry;
mod resume;
pub mod status;
mod time;
mod trouble;
mod wanted;

pub use chain::chain;
pub use count::{CountLimit, CountLimitError};
pub use kept::KeptSignal;
pub use line::{Line, LineError};
pub use name::{NameError, SubjectName};
pub use outcome::{Class, Outcome, OutcomeKind};
pub use progress::{Progress, ProgressError};
pub use redaction::Redaction;
pub use time::{Limit, LimitError, Span, SpanError, WallTime};
pub use trouble::{Trouble, Unrecorded};

/// The version written into every file and message; a reader refuses a higher one and says so.
pub const FORMAT_VERSION: u32 = 1;
