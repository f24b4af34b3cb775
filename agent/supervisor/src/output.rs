//! The job's output: from its pipe into a bounded log.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use latido_process::run;
use latido_protocol::files::{CarriageReturns, LogLimits};
use rustix::io::Errno;

use crate::log::Log;
use crate::overprint::Overprint;

/// Bytes of one read.
const CHUNK: usize = 128 * 1024;

/// How long a pipe that was full of output is left alone once it is empty. Else its writer wakes the supervisor for every few
/// bytes of a flood, which costs both of them more than the bytes; in this time a flood does not fill the pipe.
pub(crate) const REST: Duration = Duration::from_micros(400);

/// Chunks of one pass, so that a job that prints without a pause does not keep the loop from its other work.
const PASS_MAX: u32 = 4;

/// What a look into the pipe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// bytes came
    Some,
    /// nothing to read just now
    Nothing,
    /// every writer has closed it
    Closed,
}

pub(crate) struct Output {
    /// gone once every writer has closed it
    pipe: Option<OwnedFd>,
    log: Log,
    /// what was printed over, where that is not kept
    overprint: Option<Overprint>,
    bytes: u64,
    /// the bytes at the last look
    looked_at: u64,
    /// a flood was drained, and the pipe is left alone for a moment
    rests: bool,
}

impl Output {
    /// Takes the reading end, which has to be non-blocking.
    pub(crate) fn new(pipe: OwnedFd, path: PathBuf, index: Option<PathBuf>, limits: LogLimits) -> Self {
        let overprint = match limits.carriage_returns {
            CarriageReturns::Last => Some(Overprint::default()),
            CarriageReturns::All => None,
        };
        Self { pipe: Some(pipe), log: Log::new(path, index, limits), overprint, bytes: 0, looked_at: 0, rests: false }
    }

    /// Bytes that came so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the log could not take.
    pub(crate) fn lost(&self) -> u64 {
        self.log.lost()
    }

    /// What to poll for.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Lets go of a log that was removed, so that its space is free although the job prints nothing, and writes how far a line
    /// is that is being printed over.
    pub(crate) fn look(&mut self) {
        self.log.look();
        let looked_at = std::mem::replace(&mut self.looked_at, self.bytes);
        if self.bytes - looked_at >= CHUNK as u64 {
            // A flood has made the stack deep.
            run::trim_memory();
        }
        if let Some(overprint) = &mut self.overprint {
            overprint.settle(&mut |bytes| self.log.append(bytes));
        }
    }

    /// Writes what was held back. Nothing comes after it.
    pub(crate) fn finish(&mut self) {
        if let Some(overprint) = &mut self.overprint {
            overprint.finish(&mut |bytes| self.log.append(bytes));
        }
    }

    /// Whether the pipe is to be left alone for [`REST`], once.
    pub(crate) fn take_rest(&mut self) -> bool {
        std::mem::take(&mut self.rests)
    }

    /// Moves what is in the pipe into the log.
    pub(crate) fn drain(&mut self) -> Drained {
        let mut drained = Drained::Nothing;
        let before = self.bytes;
        // Uninitialised on purpose: only pages that bytes arrive in become memory of this process.
        let mut buffer = [MaybeUninit::<u8>::uninit(); CHUNK];
        for pass in 0..PASS_MAX {
            let Some(pipe) = &self.pipe else { return Drained::Closed };
            match rustix::io::read(pipe, &mut buffer) {
                Ok(([], _)) => {
                    self.pipe = None;
                    self.finish();
                    self.log.close();
                    return Drained::Closed;
                }
                Ok((filled, _)) => {
                    if pass == 0 {
                        self.log.look();
                    }
                    match &mut self.overprint {
                        Some(overprint) => overprint.take(filled, &mut |bytes| self.log.append(bytes)),
                        None => self.log.append(filled),
                    }
                    self.bytes += filled.len() as u64;
                    drained = Drained::Some;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.rests = self.bytes - before >= CHUNK as u64;
                    break;
                }
            }
        }
        drained
    }
}
