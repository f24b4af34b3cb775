//! `latido logs`.

use std::process::ExitCode;

use latido::jobs::output::{Output, OutputError, Tail};
use latido::jobs::records;
use latido_protocol::layout::{AttemptDir, JobDir};
use serde::Serialize;

use crate::args::LogsArgs;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::follow::{Follower, Over, Shown};
use crate::outcome::{self, Next};
use crate::{print, subject};

/// A line longer than this is printed in pieces, so that no output of a job can fill this command's memory.
const PIECE_MAX: usize = 64 * 1024;

/// Bytes of the longest character of UTF-8.
const CHARACTER_MAX: usize = 4;

/// Carries the command out.
pub(crate) fn run(args: &LogsArgs, context: &Context) -> Result<ExitCode, Failure> {
    subject::known(&context.state, &args.job, "show the output of")?;
    let folder = context.state.job(&args.job);
    let numbers = records::attempt_numbers(&folder).map_err(|error| subject::unreadable(&context.state, &error))?;
    let asked = args.attempt.map(std::num::NonZeroU32::get);
    let Some(mut number) = asked.or_else(|| numbers.last().copied()) else {
        print::note(&format!("job {} has no attempt yet", args.job));
        return Ok(ExitCode::SUCCESS);
    };
    if !numbers.contains(&number) {
        return Err(Failure::usage(
            format!("cannot show attempt {number} of `{}`", args.job),
            format!("it has {}", attempts_text(&numbers)),
            format!("`latido logs {}` shows the latest", args.job),
        ));
    }
    let mut tail = args.tail();
    loop {
        show(args, &folder, number, tail.take())?;
        if !args.follow || asked.is_some() {
            return Ok(ExitCode::SUCCESS);
        }
        match outcome::next_attempt(&context.state, &args.job, number, None) {
            Next::Attempt(next) => number = next,
            Next::Nothing | Next::Signal => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn attempts_text(numbers: &[u32]) -> String {
    match numbers {
        [] => "no attempt".to_owned(),
        [one] => format!("attempt {one} alone"),
        [first, .., last] => format!("attempts {first} to {last}"),
    }
}

fn show(args: &LogsArgs, folder: &JobDir, number: u32, tail: Option<Tail>) -> Result<(), Failure> {
    let attempt = folder.attempt(number);
    let output = match tail {
        Some(tail) => Output::from_last(&attempt, tail).map_err(|error| unreadable(&attempt, &error))?,
        None => Output::from_oldest(&attempt),
    };
    if args.json {
        let may_begin_inside = matches!(tail, Some(Tail::Bytes(_)));
        let mut lines = Lines { attempt: number, line: Vec::new(), may_begin_inside };
        let mut take = |bytes: &[u8]| lines.take(bytes);
        drive(args.follow, Follower::new(folder, number, None, &mut take).beginning_at(output))?;
        return lines.finish();
    }
    let mut shown = Shown::on_stdout();
    let mut take = |bytes: &[u8]| shown.bytes(bytes);
    drive(args.follow, Follower::new(folder, number, None, &mut take).beginning_at(output))?;
    shown.finish()
}

fn unreadable(attempt: &AttemptDir, error: &OutputError) -> Failure {
    Failure::itself(
        format!("cannot show the output in {}", attempt.path().display()),
        chain(error),
        "look whether this user may read it",
    )
}

fn drive(follow: bool, mut follower: Follower<'_>) -> Result<(), Failure> {
    if !follow {
        return follower.drain();
    }
    match follower.follow()? {
        Over::Ended(_) | Over::Signal => {}
        Over::Lost(why) => print::note(&format!("the attempt was lost: {why}")),
    }
    Ok(())
}

/// One line of the output, or a piece of one.
#[derive(Serialize)]
struct LogLine<'a> {
    attempt: u32,
    text: &'a str,
    /// the line goes on in the next object
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
}

/// Bytes that become lines.
struct Lines {
    attempt: u32,
    line: Vec<u8>,
    /// the first byte may be one of a character whose beginning is not shown
    may_begin_inside: bool,
}

impl Lines {
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        if std::mem::take(&mut self.may_begin_inside) {
            let is_inside = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
            bytes = &bytes[bytes.iter().take(CHARACTER_MAX - 1).take_while(is_inside).count()..];
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.ends_with(b"\n") {
                self.line.pop();
                self.emit(false)?;
            } else if self.line.len() >= PIECE_MAX {
                self.emit(true)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        if self.line.is_empty() { Ok(()) } else { self.emit(false) }
    }

    fn emit(&mut self, partial: bool) -> Result<(), Failure> {
        // A character whose end has not come yet belongs to the next piece.
        let cut = match std::str::from_utf8(&self.line) {
            Err(error) if partial && error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.line.len(),
        };
        let rest = self.line.split_off(cut);
        let text = String::from_utf8_lossy(&self.line).into_owned();
        self.line = rest;
        print::json_line(&LogLine { attempt: self.attempt, text: &text, partial })
    }
}
