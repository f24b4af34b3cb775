//! `latido fence`.

use std::path::PathBuf;
use std::process::ExitCode;

use latido_protocol::attempt::{Advice, Answer, Request};
use latido_protocol::disk;
use latido_protocol::files::Wanted;
use latido_protocol::layout::AttemptDir;

use crate::args::FenceArgs;
use crate::beat::{SUPERSEDED, ask};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::print;

/// Carries the command out.
pub(crate) fn run(_args: &FenceArgs, _context: &Context) -> Result<ExitCode, Failure> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let socket = set("LATIDO_SOCKET");
    let epoch = set("LATIDO_EPOCH").and_then(|text| text.parse::<u64>().ok());
    let (Some(socket), Some(epoch)) = (socket, epoch) else {
        return Err(Failure::usage(
            "cannot tell whose epoch is asked for",
            "LATIDO_SOCKET and LATIDO_EPOCH are not set, so this does not run inside an attempt",
            "call it from a job that `latido run` started",
        ));
    };
    match ask(&PathBuf::from(socket), &Request::Fence { token: set("LATIDO_TOKEN"), epoch }) {
        Ok(Answer::Advice { advice: Advice::Superseded }) => superseded(),
        Ok(Answer::Advice { advice: Advice::GoOn | Advice::Drain | Advice::Stop }) => Ok(ExitCode::SUCCESS),
        Ok(Answer::Error { message }) => unanswered(epoch, &format!("the supervisor cannot {message}")),
        Ok(Answer::Stopping | Answer::Status { .. }) => unanswered(epoch, "the supervisor answered something else"),
        Err(error) => unanswered(epoch, &format!("cannot {}", chain(&error))),
    }
}

fn superseded() -> Result<ExitCode, Failure> {
    print::note("another attempt has taken over: write nothing more, end");
    Ok(ExitCode::from(SUPERSEDED))
}

/// The supervisor says nothing, but a higher epoch on the disk says enough. An equal one proves nothing: without its
/// supervisor an attempt is about to be ended.
fn unanswered(epoch: u64, why: &str) -> Result<ExitCode, Failure> {
    let wanted = std::env::var_os("LATIDO_DIR")
        .and_then(|folder| AttemptDir::new(folder).job())
        .and_then(|job| disk::read::<Wanted>(&job.wanted()).ok().flatten());
    if wanted.is_some_and(|wanted| wanted.epoch > epoch) {
        return superseded();
    }
    Err(Failure::unreachable(
        format!("cannot tell whether epoch {epoch} still holds"),
        why,
        "write nothing that must not be written twice, and ask again",
    ))
}
