//! When the status and its history go to the disk.

use std::path::Path;
use std::time::Duration;

use latido_protocol::disk::{self, WriteError};
use latido_protocol::files::{Beats, Heartbeat, Status};
use latido_protocol::{Limit, chain};

use super::{Book, TICK_EVERY, WRITE_EVERY};
use crate::clock::{self, Now};

/// Bytes of `heartbeats.jsonl` above which its older half is dropped: at a line every 5 minutes, some weeks.
const HISTORY_MAX: u64 = 1024 * 1024;

impl Book {
    /// When the next write is due.
    pub(crate) fn write_at(&self) -> Duration {
        let (armed, recent) = (self.beats == Beats::Own || self.status.sequence > 0, self.dirty);
        let awaits_output = self.first_output_within != Limit::None && self.status.output_bytes == 0;
        let is_close = self.hung_after != Limit::None || awaits_output;
        let tick = if self.beats != Beats::Presence && armed || is_close {
            TICK_EVERY.min(self.presence_every)
        } else {
            self.presence_every
        };
        self.written_at + if recent { WRITE_EVERY } else { tick }
    }

    /// Writes the status if it is due, and says whether it was. What cannot be written is tried again a second later.
    pub(crate) fn handle_timeout(&mut self, now: Now, output_bytes: u64) -> bool {
        self.see_output(now, output_bytes);
        if now.monotonic < self.write_at() {
            return false;
        }
        self.status(now, output_bytes);
        self.written_at = now.monotonic;
        if !self.dirty {
            // Nothing was said; watchers hear that the supervisor is there, and the bytes of output.
            self.revision += 1;
        }
        if self.checkpoint_due {
            // A failure leaves it due, and nobody was told that it is kept.
            let _ = self.make_durable(now);
        } else {
            let _ = self.write(disk::replace_quick);
        }
        true
    }

    /// Brings a new checkpoint to the disk; does nothing when there is none.
    pub(crate) fn make_durable(&mut self, now: Now) -> Result<(), WriteError> {
        if !self.checkpoint_due {
            return Ok(());
        }
        let output_bytes = self.status.output_bytes;
        self.status(now, output_bytes);
        self.write(disk::replace)?;
        self.checkpoint_due = false;
        self.written_at = now.monotonic;
        Ok(())
    }

    /// Writes the last status, whatever is due.
    pub(crate) fn write_last(&mut self, now: Now, output_bytes: u64) -> Result<(), WriteError> {
        self.status(now, output_bytes);
        self.written_at = now.monotonic;
        self.write(disk::replace_quick)
    }

    /// Writes the status in one of two ways. That it failed is counted, and told to whoever asks the supervisor itself.
    fn write(&mut self, replace: fn(&Path, &Status) -> Result<(), WriteError>) -> Result<(), WriteError> {
        // What is on the disk has been written.
        let had_failed = self.status.trouble.unwritten_because.take().is_some();
        let written = replace(&self.attempt.status(), &self.status);
        self.dirty = written.is_err();
        if let Err(error) = &written {
            self.status.trouble.unwritten += 1;
            self.status.trouble.unwritten_because = Some(chain(error));
        }
        // Whoever watches hears all the same that somebody is there.
        if had_failed || written.is_err() {
            self.revision += 1;
        }
        written
    }

    /// Appends the sampled line. History is no promise: on a full disk it has a hole.
    pub(super) fn keep_heartbeat(&self) {
        let line = Heartbeat {
            at: clock::wall(),
            sequence: self.status.sequence,
            progress: self.status.progress.clone(),
            state: self.status.state.clone(),
            errors: self.status.errors,
            spent: self.status.spent,
        };
        let path = self.attempt.heartbeats();
        if path.metadata().is_ok_and(|file| file.len() > HISTORY_MAX) {
            let _ = disk::keep_newest(&path, HISTORY_MAX / 2);
        }
        let _ = disk::append_line(&path, &line, false);
    }
}
