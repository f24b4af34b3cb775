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
    let target = args.target.clone();
    let question = match args.epoch {
        Some(epoch) => Question::Release { target, epoch },
        None => Question::Revive { target },
    };
    registry::done(context, question, &what, "`latido worker list` shows who holds what")
}
