//! `latido pause` and `latido unpause`.

use std::process::ExitCode;

use latido::jobs::client::{self, AGENT_WITHIN, AskError, POKE_WITHIN};
use latido::jobs::pause::{self, Paused};
use latido::jobs::records;
use latido::jobs::wanted::WantError;
use latido_protocol::control::Request;
use latido_protocol::{Limit, Span, SubjectName, WallTime};

use crate::args::{PauseArgs, UnpauseArgs};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::{print, subject};

/// Carries `latido pause` out.
pub(crate) fn pause(args: &PauseArgs, context: &Context) -> Result<ExitCode, Failure> {
    let (name, length) = (&args.subject, args.pause_for.and_then(Limit::duration));
    let end = length.map_or_else(|| "until `latido unpause`".to_owned(), |length| format!("for {}", Span(length)));
    if !records::exists(&context.state.job(name)) {
        let request = Request::Pause { subject: name.clone(), length: length.map(Span) };
        ask(context, name, request, "pause")?;
        print::note(&format!("{name} is not judged {end}"));
        return Ok(ExitCode::SUCCESS);
    }
    let at = subject::at();
    let until = length.map(|length| {
        let length = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        WallTime::from_millis(at.as_millis().saturating_add(length))
    });
    let paused = pause::pause(&context.state, name, until, "latido pause", at);
    client::poke_agent(&context.state, name, POKE_WITHIN);
    match paused.map_err(|error| failure(context, name, "pause", &error))? {
        Paused::Done | Paused::Already => print::note(&format!("job {name} is not judged {end}")),
        Paused::Stopped => return Err(stopped(name, "pause")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Carries `latido unpause` out.
pub(crate) fn unpause(args: &UnpauseArgs, context: &Context) -> Result<ExitCode, Failure> {
    let name = &args.subject;
    if !records::exists(&context.state.job(name)) {
        ask(context, name, Request::Unpause { subject: name.clone() }, "unpause")?;
        print::note(&format!("{name} is judged again"));
        return Ok(ExitCode::SUCCESS);
    }
    let unpaused = pause::unpause(&context.state, name, "latido unpause", subject::at());
    client::poke_agent(&context.state, name, POKE_WITHIN);
    match unpaused.map_err(|error| failure(context, name, "unpause", &error))? {
        Paused::Done => print::note(&format!("job {name} is judged again")),
        Paused::Already => print::note(&format!("job {name} is not paused")),
        Paused::Stopped => return Err(stopped(name, "unpause")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks and processes are known to the agent alone.
fn ask(context: &Context, name: &SubjectName, request: Request, doing: &str) -> Result<(), Failure> {
    let what = || format!("cannot {doing} `{name}`");
    match client::ask_agent_to(&context.state, request, AGENT_WITHIN) {
        Ok(()) => Ok(()),
        Err(AskError::NobodyThere { .. }) if is_configured(context, name) => {
            let next = "start the agent with `latido agent`";
            Err(Failure::unreachable(what(), "no agent runs that would judge it", next))
        }
        Err(AskError::NobodyThere { .. } | AskError::Unknown { .. }) => {
            Err(subject::unknown(&context.state, name, doing))
        }
        Err(AskError::Refused { message }) => {
            let next = "`latido status` lists what is watched";
            Err(Failure::refused(what(), format!("the agent cannot {message}"), next))
        }
        Err(error) => {
            let next = "is the agent stopped or starved? `latido doctor` looks";
            Err(Failure::unreachable(what(), format!("cannot {}", chain(&error)), next))
        }
    }
}

fn is_configured(context: &Context, name: &SubjectName) -> bool {
    context.settings.checks.contains_key(name) || context.settings.processes.contains_key(name)
}

fn stopped(name: &SubjectName, doing: &str) -> Failure {
    Failure::refused(
        format!("cannot {doing} job `{name}`"),
        "it is stopped, and a stop outranks a pause",
        format!("`latido resume {name}` runs it again"),
    )
}

fn failure(context: &Context, name: &SubjectName, doing: &str, error: &WantError) -> Failure {
    match error {
        WantError::NoJob { .. } => subject::unknown(&context.state, name, doing),
        WantError::Busy { .. } | WantError::Read { .. } | WantError::Write { .. } | _ => {
            let (what, why) = subject::parts(error);
            let next = format!("look at {}: is it writable, is its disk full?", context.state.path().display());
            Failure::itself(what, why, next)
        }
    }
}
