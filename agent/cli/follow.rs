//! Shows the output of an attempt while it grows, and tells when the attempt is over.

use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use latido::jobs::clock::Deadline;
use latido::jobs::inspect::{self, AttemptState};
use latido::jobs::output::{Gave, Output};
use latido_process::Pidfd;
use latido_process::signals::Signals;
use latido_protocol::files::End;
use latido_protocol::layout::{AttemptDir, JobDir};
use rustix::fs::inotify;

use crate::failure::{Failure, chain};
use crate::harmless::Harmless;
use crate::print;

/// One read of the log; a job that writes 10 MB/s needs 160 of them.
const CHUNK: usize = 64 * 1024;
/// The longest turn: changes are announced, and what a lost announcement hides is found by then.
const TURN: Duration = Duration::from_secs(1);
/// Where nothing announces changes.
const BLIND_TURN: Duration = Duration::from_millis(100);

/// Bytes of the log, shown on stdout: untouched in a pipe or a file, harmless on a terminal.
pub(crate) struct Shown {
    filter: Option<Harmless>,
}

impl Shown {
    /// Looks at what stdout is.
    pub(crate) fn on_stdout() -> Self {
        Self { filter: std::io::stdout().is_terminal().then(Harmless::default) }
    }

    /// Shows bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.filter {
            Some(filter) => print::bytes(&filter.filter(bytes)),
            None => print::bytes(bytes),
        }
    }

    /// Shows what was kept back.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.filter {
            Some(filter) => print::bytes(&filter.finish()),
            None => Ok(()),
        }
    }
}

/// Why following has stopped.
#[derive(Debug)]
pub(crate) enum Over {
    /// The attempt has ended, and that is recorded.
    Ended(Box<End>),
    /// Its supervisor is gone and no ending is recorded; what is known of it, in words.
    Lost(String),
    /// A signal came.
    Signal,
}

/// Follows one attempt.
pub(crate) struct Follower<'a> {
    folder: JobDir,
    number: u32,
    attempt: AttemptDir,
    output: Output,
    shown: &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    watch: Option<OwnedFd>,
    signals: Option<&'a Signals>,
    supervisor: Option<Pidfd>,
}

impl<'a> Follower<'a> {
    /// Begins at the oldest byte that is kept.
    pub(crate) fn new(
        folder: &JobDir,
        number: u32,
        signals: Option<&'a Signals>,
        shown: &'a mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Self {
        let attempt = folder.attempt(number);
        Self {
            folder: folder.clone(),
            number,
            output: Output::from_oldest(&attempt),
            shown,
            watch: watch(&attempt),
            signals,
            supervisor: None,
            attempt,
        }
    }

    /// Begins where this reader is.
    pub(crate) fn beginning_at(self, output: Output) -> Self {
        Self { output, ..self }
    }

    /// Shows all that is there.
    pub(crate) fn drain(&mut self) -> Result<(), Failure> {
        let mut buffer = vec![0; CHUNK];
        loop {
            match self.output.read(&mut buffer) {
                Ok(Gave::Bytes(count)) => (self.shown)(&buffer[..count])?,
                Ok(Gave::Gap) => print::warn("some output was rotated away before it was read"),
                Ok(Gave::Nothing) => return Ok(()),
                Err(error) => {
                    return Err(Failure::itself(
                        format!("cannot show the output in {}", self.attempt.path().display()),
                        chain(&error),
                        "look at the file itself",
                    ));
                }
            }
        }
    }

    /// Shows the output until the attempt is over or a signal comes; may be called again after a signal.
    pub(crate) fn follow(&mut self) -> Result<Over, Failure> {
        loop {
            // Looked at before the output is drained: what was written before the end is there then.
            let over = self.is_over()?;
            self.drain()?;
            if self.signals.and_then(Signals::next).is_some() {
                return Ok(Over::Signal);
            }
            if let Some(over) = over {
                return Ok(over);
            }
            self.wait();
        }
    }

    fn is_over(&mut self) -> Result<Option<Over>, Failure> {
        if let Some(supervisor) = &self.supervisor
            && !supervisor.has_ended().unwrap_or(false)
        {
            return Ok(None);
        }
        let facts = inspect::look_at(&self.folder, self.number, &mut Vec::new());
        match (facts.state, facts.records.end.clone()) {
            (_, Some(end)) => Ok(Some(Over::Ended(Box::new(end)))),
            (AttemptState::Dead { proof }, None) => Ok(Some(Over::Lost(proof))),
            (AttemptState::Orphaned { living }, None) => {
                Ok(Some(Over::Lost(format!("its supervisor is gone, {} lives", inspect::list(&living)))))
            }
            (
                AttemptState::Running | AttemptState::Launching | AttemptState::Unknown { .. } | AttemptState::Ended,
                None,
            ) => {
                self.supervisor = inspect::supervisor(&self.folder, &facts.records)
                    .and_then(|supervisor| Pidfd::open(&supervisor).ok().flatten());
                Ok(None)
            }
        }
    }

    /// Waits until something is new.
    fn wait(&self) {
        let descriptors: Vec<BorrowedFd<'_>> = [
            self.watch.as_ref().map(AsFd::as_fd),
            self.signals.map(AsFd::as_fd),
            self.supervisor.as_ref().map(AsFd::as_fd),
        ]
        .into_iter()
        .flatten()
        .collect();
        let turn = if self.watch.is_some() { TURN } else { BLIND_TURN };
        Deadline::NEVER.any_readable(&descriptors, turn);
        if let Some(watch) = &self.watch {
            let mut events = [std::mem::MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(watch, &mut events);
            while reader.next().is_ok() {}
        }
    }
}

/// A descriptor that is readable when a file of the attempt changes.
fn watch(attempt: &AttemptDir) -> Option<OwnedFd> {
    use inotify::{CreateFlags, WatchFlags};
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    let flags = WatchFlags::MODIFY | WatchFlags::CREATE | WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, attempt.path(), flags).ok()?;
    Some(watch)
}
