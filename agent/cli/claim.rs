//! `latido claim`.

use std::process::ExitCode;

use latido_protocol::registry::{Question, Reply};

use crate::args::ClaimArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::registry;

/// The answer is no: somebody holds it already.
const ALREADY_CLAIMED: u8 = 1;

/// Carries the command out.
pub(crate) fn run(args: &ClaimArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("claim `{}`", args.target);
    let question = Question::Claim {
        target: args.target.clone(),
        event: args.event.clone(),
        worker: args.worker.clone(),
        epoch: args.epoch,
    };
    let reply = registry::ask(context, question, &what)?;
    match &reply {
        Reply::Claimed { epoch, .. } => registry::show(&reply, args.json, || epoch.to_string()),
        Reply::AlreadyClaimed { .. } if args.json => registry::json(&reply).map(|()| ExitCode::from(ALREADY_CLAIMED)),
        Reply::AlreadyClaimed { holder, epoch } => {
            let next = format!("leave it to {holder}, or `latido release {} --epoch {epoch}`", args.target);
            Err(registry::refused(&what, &reply, &next))
        }
        Reply::Opened { .. }
        | Reply::Registered { .. }
        | Reply::Advised { .. }
        | Reply::CapacityRejected { .. }
        | Reply::Done
        | Reply::NotClaimed
        | Reply::UnknownWorker
        | Reply::Refused { .. } => {
            Err(registry::refused(&what, &reply, "wait for a release; `latido worker list` shows who holds what"))
        }
    }
}
