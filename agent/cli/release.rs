//! `latido release`.

use std::process::ExitCode;

use latido_protocol::registry::{Question, Reply};

use crate::args::ReleaseArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry;

/// Carries the command out.
pub(crate) fn run(args: &ReleaseArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("release `{}`", args.target);
    let question = Question::Release { target: args.target.clone(), epoch: args.epoch };
    match registry::ask(context, question, &what)? {
        Reply::Done => Ok(ExitCode::SUCCESS),
        reply => Err(registry::refused(&what, &reply, "`latido worker list` shows who holds what")),
    }
}
