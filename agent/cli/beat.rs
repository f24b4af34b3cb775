//! `latido beat`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, ATTEMPT_WITHIN, AskError};
use latido::jobs::clock::Deadline;
use latido::jobs::inspect::{self, AttemptState};
use latido::jobs::records;
use latido_protocol::attempt::{Advice, Answer, Beat, Request, TOKEN_FILE};
use latido_protocol::control;
use latido_protocol::layout::StateDir;
use latido_protocol::registry::{Question, Reply, WorkerBeat};
use latido_protocol::{Line, LineError, Progress, SubjectName};

use crate::args::BeatArgs;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::{print, signal, subject};

/// A beat that is lost once is sent again; a job must not hang on it.
const WITHIN: Duration = Duration::from_secs(2);
/// The first pause between two tries, doubled each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// No pause is longer.
const BACKOFF_LONGEST: Duration = Duration::from_millis(500);
/// Nobody could answer.
pub(crate) const UNANSWERED: u8 = 3;

/// Carries the command out.
pub(crate) fn run(args: &BeatArgs, context: &Context) -> Result<ExitCode, Failure> {
    let is_signal = args.start || args.fail || args.exit_status.is_some() || args.run_id.is_some();
    let worker = worker(args, &context.state).filter(|_| !is_signal);
    if let Some(told) = worker.and_then(|worker| beat_of(worker, args, context)) {
        return told;
    }
    if let Some(check) = check(args, &context.state) {
        return signal::run(args, check, context);
    }
    let beat = beat(args)?;
    let target = match target(args, &context.state) {
        Ok(target) => target,
        Err(Untold::Usage(failure)) => return Err(failure),
        Err(Untold::Nobody(why)) => return Ok(undelivered(args, &why)),
    };
    let beat = if target.is_own { with_marks(beat) } else { Beat { token: target.token, ..beat } };
    match ask(&target.socket, &Request::Beat(beat)) {
        Ok(Answer::Advice { advice }) => told(args, advice),
        Ok(Answer::Error { message }) => Ok(undelivered(args, &format!("the supervisor cannot {message}"))),
        Ok(Answer::Stopping | Answer::Status { .. }) => Ok(undelivered(args, "the supervisor answered something else")),
        Err(error) => Ok(undelivered(args, &format!("cannot {}", chain(&error)))),
    }
}

/// The subject, where it is no job: only the agent knows whether it is a check.
fn check<'a>(args: &'a BeatArgs, state: &StateDir) -> Option<&'a SubjectName> {
    let subject = args.subject.as_ref()?;
    let is_own = variable("LATIDO_JOB").as_deref() == Some(subject.as_str());
    (!is_own && !records::exists(&state.job(subject))).then_some(subject)
}

fn beat(args: &BeatArgs) -> Result<Beat, Failure> {
    let progress = Progress {
        fraction: args.progress,
        done: args.done,
        total: args.total,
        step: args.step.clone(),
        checkpoint: args.checkpoint.clone(),
    };
    progress.check().map_err(|error| {
        Failure::usage("cannot send this beat", chain(&error), "shorten it: a checkpoint is a line, not a document")
    })?;
    Ok(Beat { progress, state: signal::state(args)?, errors: args.errors, spent: args.spent(), ..Beat::default() })
}

/// The name that is no job's: a worker's, which only the agent knows.
fn worker<'a>(args: &'a BeatArgs, state: &StateDir) -> Option<&'a SubjectName> {
    args.subject.as_ref().filter(|name| inspect::inspect(state, name).is_none())
}

/// `None` where nobody knows a worker of that name.
fn beat_of(worker: &SubjectName, args: &BeatArgs, context: &Context) -> Option<Result<ExitCode, Failure>> {
    let (state, active_job) = match (line(args.state.as_deref()), line(args.active_job.as_deref())) {
        (Ok(state), Ok(active_job)) => (state, active_job),
        (Err(failure), _) | (_, Err(failure)) => return Some(Err(failure)),
    };
    let question = Question::Beat(WorkerBeat {
        worker: worker.clone(),
        epoch: args.epoch,
        sequence: None,
        state,
        active_job,
        errors: args.errors.unwrap_or(0),
    });
    let request = control::Request::Registry { question };
    // An epoch names a worker: that the agent is away is no reason to fail it, and it may be in the middle of a restart.
    let answer = match args.epoch {
        Some(_) => signal::ask(&context.state, &request),
        None => client::ask_agent(&context.state, request, WITHIN),
    };
    match answer {
        Ok(control::Answer::Registry { reply: Reply::Advised { advice } }) => Some(told(args, advice)),
        Ok(control::Answer::Registry { .. }) => None,
        Err(AskError::NobodyThere { .. }) if args.epoch.is_none() => None,
        Ok(_) => Some(Ok(undelivered(args, &format!("cannot {}", chain(&AskError::OtherAnswer))))),
        Err(error) => Some(Ok(undelivered(args, &format!("cannot {}", chain(&error))))),
    }
}

/// What a worker says of itself is kept with it, so it is short.
fn line(text: Option<&str>) -> Result<Option<Line>, Failure> {
    text.map(str::parse).transpose().map_err(|error: LineError| {
        Failure::usage("cannot send this beat", format!("of a state or an active job: {error}"), "give a short line")
    })
}

/// Where a beat goes.
struct Target {
    socket: PathBuf,
    /// it is the attempt that this process runs in
    is_own: bool,
    /// the token of another attempt, which whoever may read its private folder may use
    token: Option<String>,
}

/// Why there is nowhere to send it.
enum Untold {
    Usage(Failure),
    Nobody(String),
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn target(args: &BeatArgs, state: &StateDir) -> Result<Target, Untold> {
    let own = variable("LATIDO_JOB");
    let is_own = args.subject.as_ref().is_none_or(|subject| own.as_deref() == Some(subject.as_str()));
    if is_own && let Some(socket) = variable("LATIDO_SOCKET") {
        return Ok(Target { socket: socket.into(), is_own: true, token: None });
    }
    let Some(job) = &args.subject else {
        return Err(Untold::Usage(Failure::usage(
            "cannot tell whose beat this is",
            "LATIDO_SOCKET is not set, so this does not run inside an attempt",
            "name the job: `latido beat JOB`",
        )));
    };
    if let Some(own) = own.filter(|own| own != job.as_str()) {
        return Err(Untold::Nobody(format!("this runs inside job {own}, and no job can beat for another")));
    }
    by_name(state, job)
}

fn by_name(state: &StateDir, job: &SubjectName) -> Result<Target, Untold> {
    let Some(facts) = inspect::inspect(state, job) else {
        return Err(Untold::Usage(subject::unknown(state, job, "send a beat for")));
    };
    let Some(latest) = facts.latest else { return Err(Untold::Nobody(format!("job {job} has no attempt yet"))) };
    match latest.state {
        AttemptState::Ended => Err(Untold::Nobody(format!("attempt {} of job {job} has ended", latest.records.number))),
        AttemptState::Dead { proof } => Err(Untold::Nobody(format!("job {job} is dead: {proof}"))),
        AttemptState::Launching
        | AttemptState::Running
        | AttemptState::Orphaned { .. }
        | AttemptState::Unknown { .. } => match inspect::control_socket(&latest.records) {
            Some(socket) => {
                // Without it the supervisor refuses, and says what is missing.
                let token = std::fs::read_to_string(socket.with_file_name(TOKEN_FILE)).ok();
                Ok(Target { socket, is_own: false, token })
            }
            None => Err(Untold::Nobody(format!("the socket of job {job} cannot be told"))),
        },
    }
}

/// The marks by which the supervisor knows its own attempt.
fn with_marks(beat: Beat) -> Beat {
    Beat {
        token: variable("LATIDO_TOKEN"),
        attempt: variable("LATIDO_ATTEMPT").and_then(|text| text.parse().ok()),
        epoch: variable("LATIDO_EPOCH").and_then(|text| text.parse().ok()),
        ..beat
    }
}

/// Asks a supervisor, again and again within two seconds.
pub(crate) fn ask(socket: &std::path::Path, request: &Request) -> Result<Answer, AskError> {
    again(|deadline| client::ask_attempt(socket, request, deadline.turn(ATTEMPT_WITHIN)))
}

/// Asks again and again within two seconds, until there is an answer.
pub(crate) fn again<T>(ask: impl Fn(&Deadline) -> Result<T, AskError>) -> Result<T, AskError> {
    let deadline = Deadline::after(WITHIN);
    let mut pause = BACKOFF_FIRST;
    loop {
        match ask(&deadline) {
            Ok(answer) => return Ok(answer),
            // A refusal is an answer.
            Err(error @ (AskError::Refused { .. } | AskError::Unknown { .. })) => return Err(error),
            Err(error) if deadline.has_passed() => return Err(error),
            Err(error) => {
                deadline.rest(pause);
                if deadline.has_passed() {
                    return Err(error);
                }
                pause = (pause * 2).min(BACKOFF_LONGEST);
            }
        }
    }
}

/// A beat never fails the job.
pub(crate) fn undelivered(args: &BeatArgs, why: &str) -> ExitCode {
    print::warn(&format!("the beat was not delivered: {why}"));
    if args.answer { ExitCode::from(UNANSWERED) } else { ExitCode::SUCCESS }
}

fn told(args: &BeatArgs, advice: Advice) -> Result<ExitCode, Failure> {
    let (word, code) = match advice {
        Advice::GoOn => ("go-on", 0),
        Advice::Drain => ("drain", 10),
        Advice::Stop => ("stop", 11),
        Advice::Superseded => ("superseded", SUPERSEDED),
    };
    if args.answer {
        print::out(&format!("{word}\n"))?;
        return Ok(ExitCode::from(code));
    }
    if advice == Advice::Superseded {
        print::warn("the beat was refused: another attempt has taken over, with a higher epoch");
    }
    Ok(ExitCode::SUCCESS)
}

/// Another attempt has taken over.
pub(crate) const SUPERSEDED: u8 = 12;
