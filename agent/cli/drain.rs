//! `latido drain`.

use std::process::ExitCode;

use latido_protocol::registry::Question;

use crate::args::DrainArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry;

/// Carries the command out.
pub(crate) fn run(args: &DrainArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("drain `{}`", args.subject);
    let question = Question::Drain { worker: args.subject.clone() };
    registry::done(context, question, &what, "`latido worker list` shows who is registered")
}
