//! The only file of xtask that prints.

use std::fmt::Display;

/// Prints a line.
#[expect(clippy::print_stdout, reason = "what xtask has to say is its output")]
pub(crate) fn line(text: impl Display) {
    println!("{text}");
}

/// Prints a headline, so that a stage can be found in a long log.
pub(crate) fn headline(text: impl Display) {
    line(format_args!("\n== {text}"));
}

/// Prints what must not be overlooked.
pub(crate) fn warning(text: impl Display) {
    line(format_args!("\n!! {text}\n"));
}
