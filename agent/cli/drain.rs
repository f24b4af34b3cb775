//! `latido drain`.

use std::process::ExitCode;

use latido_protocol::registry::{Question, Reply};

use crate::args::DrainArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry;

/// Carries the command out.
pub(crate) fn run(args: &DrainArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("drain `{}`", args.subject);
    match registry::ask(context, Question::Drain { worker: args.subject.clone() }, &what)? {
        Reply::Done => Ok(ExitCode::SUCCESS),
        reply => Err(registry::refused(&what, &reply, "`latido worker list` shows who is registered")),
    }
}
