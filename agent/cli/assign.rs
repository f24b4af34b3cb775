//! `latido assign`.

use std::process::ExitCode;

use latido_protocol::registry::{Question, Reply};

use crate::args::AssignArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry;

/// Carries the command out.
pub(crate) fn run(args: &AssignArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("assign `{}`", args.target);
    let question = Question::Assign { target: args.target.clone(), group: args.group.clone() };
    let reply = registry::ask(context, question, &what)?;
    let Reply::Claimed { holder, epoch } = &reply else {
        return Err(registry::refused(&what, &reply, "wait for a release; `latido worker list` shows who holds what"));
    };
    registry::show(&reply, args.json, || format!("{holder} {epoch}"))
}
