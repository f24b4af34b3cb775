//! The signals of `latido beat` that say how a run goes: told to the agent for a check, as the state of a job otherwise.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, AskError};
use latido::kept_signals::{self, KeptSignal};
use latido_protocol::SubjectName;
use latido_protocol::control::{Answer, CheckSignal, Request};
use latido_protocol::layout::StateDir;

use crate::args::BeatArgs;
use crate::beat::{UNANSWERED, again, undelivered};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::{print, subject};

/// An agent in the middle of a transaction answers within this.
const TRY_WITHIN: Duration = Duration::from_secs(1);

/// What the options say; a beat without any of them is a success.
pub(crate) fn signal(args: &BeatArgs) -> CheckSignal {
    match (args.start, args.fail, args.exit_status) {
        (true, _, _) => CheckSignal::Start,
        (_, true, _) => CheckSignal::Fail,
        (_, _, Some(status)) => CheckSignal::ExitStatus { status },
        (false, false, None) => CheckSignal::Success,
    }
}

/// The state of a job that says so: the word `failing` makes it failing, any other ends that.
pub(crate) fn state(args: &BeatArgs) -> Result<Option<String>, Failure> {
    let word = match signal(args) {
        CheckSignal::Start => "running",
        CheckSignal::Fail => "failing",
        CheckSignal::ExitStatus { status: 0 } => "succeeded",
        CheckSignal::ExitStatus { .. } => "failing",
        CheckSignal::Success | CheckSignal::Log => return Ok(args.state.clone()),
    };
    if args.state.is_some() {
        return Err(Failure::usage(
            "cannot send this beat",
            "--start, --fail and --exit-status are the state of a job, and --state is another one",
            "give one of them",
        ));
    }
    Ok(Some(word.to_owned()))
}

/// Sends the signal of a check to the agent.
pub(crate) fn run(args: &BeatArgs, check: &SubjectName, context: &Context) -> Result<ExitCode, Failure> {
    let request = Request::Signal {
        subject: check.clone(),
        signal: signal(args),
        run_id: args.run_id.clone(),
        state: args.state.clone(),
    };
    match again(|deadline| client::ask_agent_to(&context.state, request.clone(), deadline.turn(TRY_WITHIN))) {
        Ok(()) => {
            if args.answer {
                print::out("go-on\n")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(AskError::Unknown { .. }) => Err(subject::unknown(&context.state, check, "send a beat for")),
        Err(AskError::Refused { message }) => Err(Failure::usage(
            format!("cannot send a beat for `{check}`"),
            format!("the agent cannot {message}"),
            "see `latido beat --help`",
        )),
        Err(AskError::NobodyThere { .. }) if context.settings.checks.contains_key(check) => {
            Ok(keep(args, check, context))
        }
        Err(AskError::NobodyThere { .. }) => Err(subject::unknown(&context.state, check, "send a beat for")),
        Err(error) => Ok(undelivered(args, &format!("cannot {}", chain(&error)))),
    }
}

/// Keeps a signal for the next agent.
fn keep(args: &BeatArgs, check: &SubjectName, context: &Context) -> ExitCode {
    let at = subject::at();
    let signal = KeptSignal {
        id: format!("{}-{}", at.as_millis(), std::process::id()),
        at,
        check: check.clone(),
        signal: signal(args),
        run_id: args.run_id.clone(),
        state: args.state.clone(),
    };
    if let Err(error) = kept_signals::keep(&context.state, &signal) {
        return undelivered(args, &format!("no agent runs that would hear of check {check}: cannot {}", chain(&error)));
    }
    print::note(&format!("no agent runs that would hear of check {check}; the signal is kept until one does"));
    if args.answer { ExitCode::from(UNANSWERED) } else { ExitCode::SUCCESS }
}

/// Asks the agent, again and again within two seconds: it may be in the middle of a restart.
pub(crate) fn ask(state: &StateDir, request: &Request) -> Result<Answer, AskError> {
    again(|deadline| client::ask_agent(state, request.clone(), deadline.turn(TRY_WITHIN)))
}
