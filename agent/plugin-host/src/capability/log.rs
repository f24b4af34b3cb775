//! `log`: a plugin's lines in the agent's log, bounded and made printable.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::bindings::v0_2::sink::latido::plugin::log::{Host, Level};
use crate::capability::Capabilities;
use crate::clock;
use crate::guest::Guest;
use crate::probe::Watch;
use crate::spec::Limits;

/// Lines a second that a plugin may log over a longer time.
const LINES_A_SECOND: u32 = 100;

/// Bytes a second that a plugin may log over a longer time: a megabyte a minute.
const BYTES_A_SECOND: u32 = 16 << 10;

/// How long both are saved up: after a quiet minute a plugin may say more at once.
const SAVED: Duration = Duration::from_secs(10);

/// How much a plugin has logged of late, whatever became of its instances.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// the moment up to which it is used
    used_until: Mutex<Option<Instant>>,
}

impl Rate {
    /// Lets a line take its share of a second, as long as no more than what is saved up is used.
    fn allows(&self, length: usize) -> bool {
        let second = Duration::from_secs(1);
        let bytes = second / BYTES_A_SECOND * u32::try_from(length).unwrap_or(u32::MAX);
        let now = clock::now();
        let mut used_until = self.used_until.lock().unwrap_or_else(PoisonError::into_inner);
        let next = used_until.map_or(now, |until| until.max(now)) + bytes.max(second / LINES_A_SECOND);
        let allowed = next.duration_since(now) <= SAVED;
        if allowed {
            *used_until = Some(next);
        }
        allowed
    }
}

/// Counts what one instance logs.
pub(crate) struct LogBook {
    plugin: Arc<str>,
    rate: Arc<Rate>,
    watch: Option<Arc<Watch>>,
    line_max: usize,
    bytes_max: usize,
    lines_max: usize,
    bytes: usize,
    lines: usize,
    dropped: u64,
}

impl LogBook {
    pub(crate) fn new(capabilities: &Capabilities, limits: &Limits) -> Self {
        Self {
            plugin: Arc::clone(&capabilities.plugin),
            rate: Arc::clone(&capabilities.logged),
            watch: capabilities.watch.clone(),
            line_max: limits.log_line,
            bytes_max: limits.log_call,
            lines_max: limits.log_lines,
            bytes: 0,
            lines: 0,
            dropped: 0,
        }
    }

    /// Begins a call, and tells what the one before it was not allowed to say.
    pub(crate) fn begin(&mut self) {
        self.tell_dropped();
        (self.bytes, self.lines) = (0, 0);
    }

    /// Writes one line, cut and escaped, or counts it as dropped.
    pub(crate) fn write(&mut self, level: Level, message: &str) {
        let message = printable(message, self.line_max);
        if let Some(watch) = &self.watch {
            watch.logged(name(level), &message);
        }
        let is_within_call = self.lines < self.lines_max && self.bytes + message.len() <= self.bytes_max;
        if !is_within_call || !self.rate.allows(message.len()) {
            self.dropped += 1;
            return;
        }
        self.lines += 1;
        self.bytes += message.len();
        let plugin = &*self.plugin;
        match level {
            Level::Debug => tracing::debug!(plugin, message),
            Level::Info => tracing::info!(plugin, message),
            Level::Warning => tracing::warn!(plugin, message),
            Level::Error => tracing::error!(plugin, message),
        }
    }

    fn tell_dropped(&mut self) {
        if self.dropped > 0 {
            tracing::warn!(
                plugin = &*self.plugin,
                dropped = self.dropped,
                "the plugin logs too much; lines were dropped"
            );
            self.dropped = 0;
        }
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

impl Drop for LogBook {
    fn drop(&mut self) {
        self.tell_dropped();
    }
}

impl Host for Guest {
    async fn write(&mut self, level: Level, message: String) {
        if level == Level::Error {
            self.words.add(message.as_bytes());
            self.words.add(b"\n");
        }
        self.log.write(level, &message);
    }
}

/// The text without control characters, so that no line can pass for another's, and at most so many bytes long.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for character in text.chars() {
        let escaped = character.is_control().then(|| character.escape_default());
        let length = escaped.as_ref().map_or(character.len_utf8(), ExactSizeIterator::len);
        if out.len() + length > limit {
            out.push('…');
            break;
        }
        match escaped {
            Some(escaped) => out.extend(escaped),
            None => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_forge_another() {
        assert_eq!(printable("a\nERROR b\u{1b}[31m", 100), r"a\nERROR b\u{1b}[31m");
        assert_eq!(printable("ééé", 4), "éé…");
    }
}
