//! `latido release`.

use std::process::ExitCode;

use latido_protocol::registry::Question;

use crate::args::ReleaseArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry;

/// Carries the command out.
pub(crate) fn run(args: &ReleaseArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("release `{}`", args.target);
    let question = Question::Release { target: args.target.clone(), epoch: args.epoch };
    registry::done(context, question, &what, "`latido worker list` shows who holds what")
}
