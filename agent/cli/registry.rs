//! What the commands about workers, groups and claims share: one question to the agent, and what its answer means.

use std::process::ExitCode;

use latido::jobs::client::{self, AGENT_WITHIN, AskError};
use latido_protocol::FORMAT_VERSION;
use latido_protocol::control::{Answer, Request};
use latido_protocol::registry::{Question, Reply};
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::print;

/// Asks the registry. Only the agent keeps it: without one there is no answer.
pub(crate) fn ask(context: &Context, question: Question, what: &str) -> Result<Reply, Failure> {
    reply(client::ask_agent(&context.state, Request::Registry { question }, AGENT_WITHIN), what)
}

/// The registry's reply, where the agent gave one.
pub(crate) fn reply(answer: Result<Answer, AskError>, what: &str) -> Result<Reply, Failure> {
    let Answer::Registry { reply } = understood(answer, what)? else { return Err(unexpected(what)) };
    Ok(reply)
}

/// Asks for something that is done or not, and has nothing to print.
pub(crate) fn done(context: &Context, question: Question, what: &str, next: &str) -> Result<ExitCode, Failure> {
    let reply = ask(context, question, what)?;
    if reply == Reply::Done { Ok(ExitCode::SUCCESS) } else { Err(refused(what, &reply, next)) }
}

/// Asks the agent anything.
pub(crate) fn request(context: &Context, request: Request, what: &str) -> Result<Answer, Failure> {
    understood(client::ask_agent(&context.state, request, AGENT_WITHIN), what)
}

fn understood(answer: Result<Answer, AskError>, what: &str) -> Result<Answer, Failure> {
    let unreachable = |why: String, next: &str| Failure::unreachable(format!("cannot {what}"), why, next);
    match answer {
        Ok(answer) => Ok(answer),
        Err(AskError::Refused { message } | AskError::Unknown { message }) => Err(unreachable(
            format!("the agent cannot {message}"),
            "ask again; `latido doctor` looks for what is wrong",
        )),
        Err(error @ AskError::NobodyThere { .. }) => Err(unreachable(
            format!("cannot {}", chain(&error)),
            "start the agent with `latido agent`: it alone keeps workers and claims",
        )),
        Err(error) => Err(unreachable(
            format!("cannot {}", chain(&error)),
            "ask again: a claim that was granted meanwhile is answered with the same epoch",
        )),
    }
}

/// An answer that does not fit the question.
pub(crate) fn unexpected(what: &str) -> Failure {
    Failure::unreachable(
        format!("cannot {what}"),
        format!("cannot {}", chain(&AskError::OtherAnswer)),
        "is the agent of the same version? `latido status` shows it",
    )
}

/// Every answer that is not the one a command waits for.
pub(crate) fn refused(what: &str, reply: &Reply, next: &str) -> Failure {
    let what = format!("cannot {what}");
    match reply {
        Reply::NotClaimed => Failure::no(what, "nobody holds it", next),
        Reply::AlreadyClaimed { holder, epoch } => {
            Failure::no(what, format!("worker {holder} holds it, with epoch {epoch}"), next)
        }
        Reply::UnknownWorker => {
            Failure::refused(what, "no worker of that name is registered", "register it with `latido worker register`")
        }
        Reply::CapacityRejected { because } | Reply::Refused { because } => Failure::refused(what, because, next),
        Reply::Opened { .. }
        | Reply::Registered { .. }
        | Reply::Advised { .. }
        | Reply::Claimed { .. }
        | Reply::Done => Failure::unreachable(what, format!("the agent answered something else: {reply:?}"), next),
    }
}

/// A document with the version of its format.
#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// Prints a document.
pub(crate) fn json<T: Serialize>(body: &T) -> Result<(), Failure> {
    print::json(&Document { version: FORMAT_VERSION, body })
}

/// Prints the answer as JSON whatever it is, or as the line that the command makes of the one it waits for.
pub(crate) fn show(reply: &Reply, as_json: bool, line: impl FnOnce() -> String) -> Result<ExitCode, Failure> {
    if as_json {
        json(reply)?
    } else {
        print::out(&format!("{}\n", line()))?
    }
    Ok(ExitCode::SUCCESS)
}
