//! `latido stop`.

use std::process::ExitCode;

use latido::jobs::client::{self, AGENT_WITHIN, AskError, POKE_WITHIN};
use latido::jobs::records;
use latido::jobs::recover::OrphanError;
use latido::jobs::stop::{self, StopError, StopOrder, Stopped};

use latido_protocol::SubjectName;
use latido_protocol::control::Request;
use latido_protocol::registry::{Question, Reply};

use crate::args::StopArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::{print, registry, subject};

/// Carries the command out.
pub(crate) fn run(args: &StopArgs, context: &Context) -> Result<ExitCode, Failure> {
    let job = &args.subject;
    if !records::exists(&context.state.job(job)) {
        return stop_worker(args, context);
    }
    let order = StopOrder { grace: args.grace.map(|grace| grace.0), force: args.force, by: "latido stop".to_owned() };
    let stopped = stop::stop(&context.state, job, &order, subject::at());
    client::poke_agent(&context.state, job, POKE_WITHIN);
    let text = match stopped.map_err(|error| failure(args, context, &error))? {
        Stopped::NeverStarted => format!("job {job} had not been started, and will not be"),
        Stopped::HadEnded(end) => format!("job {job} had ended before: {}", end.outcome.detail),
        Stopped::WasLost(end) => format!("job {job} was dead already: {}", end.outcome.detail),
        Stopped::Ended(end) => format!("job {job} has ended: {}", end.outcome.detail),
    };
    print::note(&text);
    Ok(ExitCode::SUCCESS)
}

/// A worker is no process of latido's: it is told with its next beat.
fn stop_worker(args: &StopArgs, context: &Context) -> Result<ExitCode, Failure> {
    let worker = &args.subject;
    let what = format!("stop `{worker}`");
    let request = Request::Registry { question: Question::Stop { worker: worker.clone() } };
    let reply = match client::ask_agent(&context.state, request, AGENT_WITHIN) {
        Err(AskError::NobodyThere { .. }) => return Err(subject::unknown(&context.state, worker, "stop")),
        answer => registry::reply(answer, &what)?,
    };
    match reply {
        Reply::UnknownWorker => Err(subject::unknown(&context.state, worker, "stop")),
        Reply::Done if args.force || args.grace.is_some() => {
            print::warn("--force and --grace say nothing to a worker: latido sends it no signal");
            Ok(told(worker))
        }
        Reply::Done => Ok(told(worker)),
        Reply::Opened { .. }
        | Reply::Registered { .. }
        | Reply::Advised { .. }
        | Reply::Claimed { .. }
        | Reply::AlreadyClaimed { .. }
        | Reply::CapacityRejected { .. }
        | Reply::NotClaimed
        | Reply::Refused { .. } => {
            Err(registry::refused(&what, &reply, "`latido worker list` shows who is registered"))
        }
    }
}

fn told(worker: &SubjectName) -> ExitCode {
    print::note(&format!("worker {worker} takes nothing more, and its next beat is answered with stop"));
    ExitCode::SUCCESS
}

fn failure(args: &StopArgs, context: &Context, error: &StopError) -> Failure {
    let job = &args.subject;
    let (what, why) = subject::parts(error);
    match error {
        StopError::NoJob { .. } => subject::unknown(&context.state, job, "stop"),
        StopError::Wanted { .. } | StopError::Recover { .. } => Failure::itself(
            what,
            why,
            format!("look at {}: is it writable, is its disk full?", context.state.path().display()),
        ),
        StopError::Unanswered { supervisor, .. } => Failure::unreachable(
            what,
            why,
            format!(
                "is process {supervisor} stopped? continue it with `kill -CONT {supervisor}`, or end both with \
                 `latido stop {job} --force`"
            ),
        ),
        StopError::Orphan { source: OrphanError::Survivors { .. }, .. } | StopError::StillThere { .. } => Failure::no(
            what,
            why,
            format!("`latido stop {job} --force` kills at once; what the kernel does not end is named in the cause"),
        ),
        StopError::Refused { .. } | StopError::Unknown { .. } | StopError::Orphan { .. } => {
            Failure::refused(what, why, format!("`latido why {job}` shows what is known of it"))
        }
        _ => Failure::itself(what, why, format!("`latido why {job}` shows what is known of it")),
    }
}
