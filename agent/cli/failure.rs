//! What a person is told when a command could not do its work: what, why, what next.

use std::process::ExitCode;

pub(crate) use latido_protocol::chain;

/// What an exit status means, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// 1: no, a true answer.
    No,
    /// 2: wrong use, or a config that does not check out.
    Usage,
    /// 3: the agent, or the attempt, cannot be reached.
    Unreachable,
    /// 4: refused.
    Refused,
    /// 125: latido itself failed.
    Itself,
    /// 0: the reader of the output has gone, which is how `latido … | head` ends.
    ReaderGone,
}

impl FailureKind {
    /// The exit status as a number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::No => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Refused => 4,
            Self::Itself => 125,
            Self::ReaderGone => 0,
        }
    }
}

/// A failure in three parts. All three are asked for by every constructor, so that none can be forgotten.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    what: String,
    why: Vec<String>,
    next: String,
}

impl Failure {
    /// No, a true answer (exit status 1).
    pub(crate) fn no(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(FailureKind::No, what, why, next)
    }

    /// Wrong use or config (exit status 2).
    pub(crate) fn usage(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, what, why, next)
    }

    /// The agent or the attempt cannot be reached (exit status 3).
    pub(crate) fn unreachable(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(FailureKind::Unreachable, what, why, next)
    }

    /// Refused (exit status 4).
    pub(crate) fn refused(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused, what, why, next)
    }

    /// latido itself failed (exit status 125).
    pub(crate) fn itself(what: impl Into<String>, why: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(FailureKind::Itself, what, why, next)
    }

    /// Nobody reads the output: the command ends, and that is no failure.
    pub(crate) fn reader_gone() -> Self {
        Self::new(
            FailureKind::ReaderGone,
            "cannot write the output",
            "its reader has gone",
            "read it to the end, or write it into a file",
        )
    }

    /// `what` is a whole text (`cannot stop "a"`), `why` a fragment, `next` what the reader can do.
    pub(crate) fn new(
        kind: FailureKind,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { kind, what: what.into(), why: vec![why.into()], next: next.into() }
    }

    /// Adds one more cause, on a line of its own.
    #[must_use]
    pub(crate) fn and_why(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    /// What kind it is.
    pub(crate) fn kind(&self) -> FailureKind {
        self.kind
    }

    /// The exit status.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind.code())
    }

    /// The three parts as they are printed, each line ended.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("error: {}\n", indent(&self.what));
        for why in &self.why {
            text.push_str(&format!("  cause: {}\n", indent(why)));
        }
        text.push_str(&format!("  next:  {}\n", indent(&self.next)));
        text
    }
}

/// Further lines of a part stand below its first.
fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n         ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_three_parts_and_its_exit_status() {
        let failures = [
            (Failure::no("what", "why", "next"), 1),
            (Failure::usage("what", "why", "next"), 2),
            (Failure::unreachable("what", "why", "next"), 3),
            (Failure::refused("what", "why", "next"), 4),
            (Failure::itself("what", "why", "next"), 125),
            (Failure::reader_gone(), 0),
        ];
        for (failure, code) in failures {
            assert_eq!(failure.kind().code(), code);
            let text = failure.render();
            let starts = ["error: ", "  cause: ", "  next:  "];
            for (line, start) in text.lines().zip(starts) {
                assert!(line.strip_prefix(start).is_some_and(|rest| !rest.is_empty()), "{text}");
            }
            assert_eq!(text.lines().count(), starts.len());
        }
    }

    #[test]
    fn further_causes_and_lines_stay_in_their_part() {
        let text = Failure::usage("what", "one\nmore", "next").and_why("two").render();
        assert_eq!(text, "error: what\n  cause: one\n         more\n  cause: two\n  next:  next\n");
    }

    #[test]
    fn the_chain_is_joined_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("open the ledger")]
        struct Outer(#[source] std::io::Error);
        let error = Outer(std::io::Error::other("no space"));
        assert_eq!(chain(&error), "open the ledger: no space");
    }
}
