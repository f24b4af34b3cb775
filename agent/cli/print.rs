//! The only place that prints. Results go to stdout, everything for the person at the terminal to stderr.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::{Failure, chain};
use crate::harmless::Harmless;

/// Writes a text to stdout; the caller ends its lines. Words of a job in it (a step, a program's name) reach a terminal
/// as text, whatever they hold.
pub(crate) fn out(text: &str) -> Result<(), Failure> {
    bytes(&harmless(text))
}

/// Writes bytes to stdout, such as the output of a job, and flushes them.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| output_failure(&error))
}

/// Writes one document as indented JSON.
pub(crate) fn json<T: Serialize>(document: &T) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(document).map_err(|error| json_failure(&error))?;
    text.push('\n');
    out(&text)
}

/// Writes one line of a stream of JSON objects.
pub(crate) fn json_line<T: Serialize>(object: &T) -> Result<(), Failure> {
    let mut text = serde_json::to_string(object).map_err(|error| json_failure(&error))?;
    text.push('\n');
    out(&text)
}

/// Warns on stderr; the command goes on.
pub(crate) fn warn(what: &str) {
    err(&format!("warning: {what}\n"));
}

/// Tells something beside the result on stderr.
pub(crate) fn note(text: &str) {
    err(&format!("{text}\n"));
}

/// Prints a failure in its three parts, unless it only says that nobody reads.
pub(crate) fn failure(failure: &Failure) {
    if failure.kind() != crate::failure::FailureKind::ReaderGone {
        err(&failure.render());
    }
}

/// Writes to stderr. Where that is closed there is nobody left to tell.
pub(crate) fn err(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(&harmless(text)).and_then(|()| stderr.flush());
}

fn harmless(text: &str) -> Vec<u8> {
    let mut filter = Harmless::default();
    let mut shown = filter.filter(text.as_bytes());
    shown.extend(filter.finish());
    shown
}

fn output_failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::reader_gone();
    }
    Failure::itself("cannot write the output", chain(error), "look at where stdout leads: a full disk, a closed file?")
}

fn json_failure(error: &serde_json::Error) -> Failure {
    Failure::itself("cannot write the output as JSON", chain(error), "run it without --json, and report this")
}
