//! Who looks on while a plugin is tried out: it sees every call of a capability, and may answer, delay or end it.
//!
//! The agent gives none, and a plugin without one pays a look at an empty option.

mod told;

use std::fmt;
use std::future::{Future, pending};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;

use crate::error::FaultKind;
pub(crate) use told::{Refused, Told, bytes, request, sql_row, sql_value};

/// Sees what a plugin asks of the host. Called on the thread that runs the plugin, so it has to be quick.
pub trait Probe: fmt::Debug + Send + Sync {
    /// A capability is called. What is answered decides what becomes of the call.
    fn asked(&self, asked: &Asked) -> Ruling;

    /// What the plugin is answered: `{"ok": …}` or `{"error": "full"}`, `{"error": {"failed": "why"}}`.
    fn answered(&self, asked: &Asked, answer: &Value);

    /// A line that the plugin logs, before any limit: its level (`debug`, `info`, `warning`, `error`) and its words.
    fn logged(&self, level: &'static str, message: &str);
}

/// One call of a capability.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The number of the call since the plugin was loaded, from 1.
    pub number: u64,
    /// The interface, such as `sql`.
    pub interface: &'static str,
    /// The function, such as `execute-all`.
    pub function: &'static str,
    /// Its arguments, an object. Secrets are there by name alone.
    pub arguments: Value,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// How long the call takes before anything else happens.
    pub after: Duration,
    /// What happens then.
    pub then: Then,
}

/// What happens to a call of a capability.
#[derive(Clone, Debug, PartialEq)]
pub enum Then {
    /// It is carried out.
    CarryOut,
    /// This is answered in its place, in the form of [`Probe::answered`].
    Answer(Value),
    /// It is refused: in which way, and why.
    Refuse(RefusalKind, String),
    /// The plugin is ended in the middle of the call, as if this had happened.
    End {
        /// what ends it
        kind: FaultKind,
        /// whether the call is carried out before
        carried_out: bool,
    },
}

impl Then {
    /// It happens at once.
    pub fn at_once(self) -> Ruling {
        Ruling { after: Duration::ZERO, then: self }
    }
}

/// In which way a capability refuses. One that has no word for it answers with the nearest that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// It is not granted.
    Denied,
    /// Another process holds it.
    Busy,
    /// There is no room.
    Full,
    /// No answer in time.
    Timeout,
    /// No connection.
    Unreachable,
    /// More than the limit.
    TooLarge,
    /// There is no such thing.
    NotFound,
    /// Anything else.
    Failed,
}

impl RefusalKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Denied,
        Self::Busy,
        Self::Full,
        Self::Timeout,
        Self::Unreachable,
        Self::TooLarge,
        Self::NotFound,
        Self::Failed,
    ];

    /// The name that it has in the package's text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Busy => "busy",
            Self::Full => "full",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::TooLarge => "too-large",
            Self::NotFound => "not-found",
            Self::Failed => "failed",
        }
    }
}

/// A probe at its plugin.
pub(crate) struct Watch {
    probe: Arc<dyn Probe>,
    calls: AtomicU64,
    ended: Mutex<Option<FaultKind>>,
    changed: Notify,
}

impl Watch {
    pub(crate) fn new(probe: Arc<dyn Probe>) -> Self {
        Self { probe, calls: AtomicU64::new(0), ended: Mutex::new(None), changed: Notify::new() }
    }

    pub(crate) fn logged(&self, level: &'static str, message: &str) {
        self.probe.logged(level, message);
    }

    /// Shows a call to the probe, and lets happen what that says.
    pub(crate) async fn around<T: Told, E: Refused>(
        &self,
        interface: &'static str,
        function: &'static str,
        arguments: Value,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = Asked { number, interface, function, arguments };
        let Ruling { after, then } = self.probe.asked(&asked);
        if !after.is_zero() {
            tokio::time::sleep(after).await;
        }
        let answer = match then {
            Then::CarryOut => work.await,
            Then::Answer(value) => told::answer(&value),
            Then::Refuse(refusal, why) => Err(E::refused(refusal, why)),
            Then::End { kind, carried_out } => {
                if carried_out {
                    drop(work.await); // whatever came of it, the plugin never hears
                }
                *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind);
                self.changed.notify_one();
                pending().await
            }
        };
        self.probe.answered(&asked, &told::told(&answer));
        answer
    }

    /// Waits until the plugin is to be ended.
    pub(crate) async fn ended(&self) -> FaultKind {
        loop {
            self.changed.notified().await;
            if let Some(kind) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return kind;
            }
        }
    }
}
