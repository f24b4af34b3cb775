//! The job's output: from its pipe into a bounded log.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use latido_protocol::files::{CarriageReturns, LogLimits};
use rustix::io::Errno;

use crate::log::Log;
use crate::overprint::Overprint;

/// Bytes of one read.
const CHUNK: usize = 16 * 1024;

/// Chunks of one pass, so that a job that prints without a pause does not keep the loop from its other work.
const PASS_MAX: u32 = 16;

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
}

impl Output {
    /// Takes the reading end, which has to be non-blocking.
    pub(crate) fn new(pipe: OwnedFd, path: PathBuf, index: Option<PathBuf>, limits: LogLimits) -> Self {
        let overprint = match limits.carriage_returns {
            CarriageReturns::Last => Some(Overprint::default()),
            CarriageReturns::All => None,
        };
        Self { pipe: Some(pipe), log: Log::new(path, index, limits), overprint, bytes: 0 }
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

    /// Moves what is in the pipe into the log.
    pub(crate) fn drain(&mut self) -> Drained {
        let mut drained = Drained::Nothing;
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
                Err(_) => break,
            }
        }
        drained
    }
}
