//! `latido run`.

mod line;
mod parent;
mod plan;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client;
use latido::jobs::inspect::Living;
use latido::jobs::launch::{self, LaunchError, LaunchOrder, Launched};
use latido::jobs::make::{self, MakeError, NewJob};
use latido::jobs::stop::{self, StopOrder};
use latido_process::Signal;
use latido_process::signals::Signals;
use latido_protocol::control::{Answer, Request};
use latido_protocol::status::SubjectKind;
use latido_protocol::{FORMAT_VERSION, SubjectName};
use serde::Serialize;

use crate::args::RunArgs;
use crate::context::{Context, settings_failure};
use crate::failure::{Failure, FailureKind, chain};
use crate::follow::{Follower, Over, Shown};
use crate::outcome::{self, Next};
use crate::{print, subject};

use parent::Parent;

/// Who asks, in the records.
const BY: &str = "latido run";
/// `--detach` returns in well under a second, also when an agent is there and does not answer.
const POKE_WITHIN: Duration = Duration::from_millis(300);

/// What `--json` prints of a start.
#[derive(Serialize)]
struct Started<'a> {
    version: u32,
    name: &'a SubjectName,
    attempt: u32,
    epoch: u64,
    pid: u32,
}

/// Carries the command out.
pub(crate) fn run(args: &RunArgs, context: &Context) -> Result<ExitCode, Failure> {
    let settings =
        context.settings.job_settings(&args.policy, &args.overrides()).map_err(|error| settings_failure(&error))?;
    let name = args.name.clone().unwrap_or_else(|| SubjectName::suggest(&args.command[0]));
    let mut new = NewJob {
        name,
        command: args.command.clone(),
        directory: directory(args)?,
        environment: environment(args),
        settings,
        by: BY.to_owned(),
    };
    if let Some(name) = &args.name {
        free_of_others(context, name)?;
    }
    let parent = if args.child { Some(Parent::of_environment()?) } else { None };
    if args.dry_run {
        if args.name.is_none() {
            new.name = make::free_name(&context.state, &new.name).unwrap_or(new.name);
        }
        return plan::dry_run(args, &new, &context.settings.agent.redaction);
    }
    // A Ctrl-C from here on is for the job, so it is heard from before the job exists.
    let signals = if args.detach { None } else { Some(listen()?) };
    if !new.settings.slots.is_empty() {
        return line::run(args, context, &new, signals.as_ref(), parent);
    }
    let (name, launched) = start(args, context, &new)?;
    let (attempt, epoch, pid) = match launched {
        Launched::Started { attempt, epoch, pid } => (attempt, epoch, pid),
        Launched::Failed { detail, .. } => {
            client::poke_agent(&context.state, &name, POKE_WITHIN);
            return Err(not_started(&name, &args.command[0], detail));
        }
    };
    client::poke_agent(&context.state, &name, POKE_WITHIN);
    let started = Started { version: FORMAT_VERSION, name: &name, attempt, epoch, pid };
    match signals {
        None if args.json => print::json(&started).map(|()| ExitCode::SUCCESS),
        None => print::out(&format!("{name}\n")).map(|()| ExitCode::SUCCESS),
        Some(signals) => {
            // In the foreground stdout belongs to the job.
            if args.json {
                print::note(&serde_json::to_string(&started).unwrap_or_default());
            } else if args.name.is_none() {
                print::note(&format!("job {name}"));
            }
            foreground(context, &name, attempt, &signals, parent)
        }
    }
}

/// A name stands for one subject: beats for it would reach the wrong one.
fn free_of_others(context: &Context, name: &SubjectName) -> Result<(), Failure> {
    let request = Request::Status { subjects: vec![name.clone()] };
    let kind = if context.settings.checks.contains_key(name) {
        Some(SubjectKind::Check)
    } else if context.settings.processes.contains_key(name) {
        Some(SubjectKind::Process)
    } else if let Ok(Answer::Status { document }) = client::ask_agent(&context.state, request, POKE_WITHIN) {
        document.subjects.into_iter().map(|subject| subject.kind).find(|kind| *kind != SubjectKind::Job)
    } else {
        None
    };
    let other = match kind {
        None | Some(SubjectKind::Job) => return Ok(()),
        Some(SubjectKind::Check) => "a check",
        Some(SubjectKind::Process) => "a watched process",
        Some(SubjectKind::Worker) => "a worker",
    };
    let why = format!("the name is in use by {other}");
    Err(Failure::refused(format!("cannot start a job `{name}`"), why, "choose another --name"))
}

fn listen() -> Result<Signals, Failure> {
    Signals::listen(&[Signal::INT, Signal::TERM]).map_err(|error| {
        Failure::itself("cannot watch a job in the foreground", chain(&error), "use `latido run --detach`")
    })
}

fn directory(args: &RunArgs) -> Result<PathBuf, Failure> {
    let given = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let absolute = std::path::absolute(&given).and_then(|path| path.canonicalize());
    match absolute {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(path) => Err(Failure::usage(
            format!("cannot run a job in {}", path.display()),
            "it is not a directory",
            "give a directory with --cwd",
        )),
        Err(error) => Err(Failure::usage(
            format!("cannot run a job in {}", given.display()),
            chain(&error),
            "give a directory that exists with --cwd",
        )),
    }
}

fn environment(args: &RunArgs) -> BTreeMap<String, String> {
    let mut environment = make::kept_environment(std::env::vars_os());
    environment.extend(args.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())));
    environment
}

/// Makes the job and launches its first attempt.
fn start(args: &RunArgs, context: &Context, new: &NewJob) -> Result<(SubjectName, Launched), Failure> {
    // Without it nothing could be launched, and a job would be left behind that never ran.
    launch::supervisor_program().map_err(|error| launch_failure(&new.name, &error))?;
    let made = if args.name.is_some() {
        make::make(&context.state, new, subject::at())
    } else {
        make::make_numbered(&context.state, new, subject::at())
    };
    let made = made.map_err(|error| make_failure(new, &error))?;
    let name = made.job.name;
    let order = LaunchOrder {
        because: "first attempt".to_owned(),
        by: BY.to_owned(),
        lock: Some(made.lock),
        ..LaunchOrder::default()
    };
    match launch::launch(&context.state, &name, order, subject::at()) {
        Ok(launched) => Ok((name, launched)),
        Err(error) => Err(launch_failure(&name, &error)),
    }
}

/// What to do about a state directory that others may replace.
pub(crate) const NOT_EXPOSED: &str = "give it to this user, take write permission for all from the folders above it \
                                      (`chmod o-w`), or name another with --state-dir";

fn make_failure(new: &NewJob, error: &MakeError) -> Failure {
    let name = &new.name;
    match error {
        MakeError::NameInUse { name, existing } => Failure::refused(
            format!("cannot start a job `{name}`"),
            format!("the name is in use by {existing}"),
            format!(
                "choose another --name, or free it with `latido remove {name}`; `latido resume {name}` runs it again"
            ),
        ),
        MakeError::Unrecorded { living, .. } => {
            let (what, why) = subject::parts(error);
            Failure::refused(what, why, end_unrecorded(living))
        }
        MakeError::Exposed { .. } => {
            let (what, why) = subject::parts(error);
            Failure::refused(what, why, NOT_EXPOSED)
        }
        MakeError::Unseen { .. } => {
            let (what, why) = subject::parts(error);
            Failure::refused(what, why, "`latido doctor` shows what keeps processes from being seen")
        }
        MakeError::NoFreeName { .. } => Failure::refused(
            format!("cannot find a free name like `{name}`"),
            chain(error),
            "give one with --name, or free some with `latido remove`",
        ),
        MakeError::NoCommand { .. } | MakeError::NoDirectory { .. } | MakeError::OwnDirectory { .. } => {
            Failure::usage(format!("cannot start a job `{name}`"), chain(error), "`latido run --help` shows how")
        }
        MakeError::StateDir { .. } | MakeError::Folder { .. } | MakeError::Lock { .. } | MakeError::Record { .. } => {
            files_failure(name, chain(error))
        }
        _ => files_failure(name, chain(error)),
    }
}

/// What to do about processes whose files were removed: nothing else knows of them.
fn end_unrecorded(living: &[Living]) -> String {
    let pids: Vec<String> = living.iter().map(|process| process.pid.to_string()).collect();
    format!("let it end, or end it with `kill {}`; then try again", pids.join(" "))
}

fn files_failure(name: &SubjectName, why: String) -> Failure {
    Failure::itself(
        format!("cannot start a job `{name}`"),
        why,
        "look at the state directory: is it writable, is its disk full? --state-dir gives another",
    )
}

/// A launch that did not take place.
pub(crate) fn launch_failure(name: &SubjectName, error: &LaunchError) -> Failure {
    let (what, why) = subject::parts(error);
    match error {
        LaunchError::NoSupervisor { .. } => Failure::itself(
            what,
            why,
            format!("install it beside `latido`, or name it in {}", launch::SUPERVISOR_VARIABLE),
        ),
        LaunchError::Locked { .. } | LaunchError::Survivors { .. } | LaunchError::Unknown { .. } => {
            Failure::refused(what, why, format!("`latido why {name}` shows what is known of it"))
        }
        LaunchError::NoDirectory { directory, .. } => Failure::refused(
            what,
            why,
            format!("make {} again, or start a job anew with --cwd elsewhere", directory.display()),
        ),
        LaunchError::Unrecorded { living, .. } => Failure::refused(what, why, end_unrecorded(living)),
        LaunchError::NotWanted { .. } | LaunchError::Superseded { .. } => {
            Failure::refused(what, why, format!("`latido status {name}` shows how it is"))
        }
        LaunchError::Supervisor { .. } | LaunchError::Silent { .. } => {
            Failure::itself(what, why, format!("`latido why {name}` shows what is known of it"))
        }
        LaunchError::NoJob { .. }
        | LaunchError::Previous { .. }
        | LaunchError::Wanted { .. }
        | LaunchError::Lock { .. }
        | LaunchError::Identity { .. }
        | LaunchError::Sockets { .. }
        | LaunchError::Folder { .. }
        | LaunchError::Record { .. }
        | _ => files_failure(name, chain(error)),
    }
}

/// The job's program could not be started.
pub(crate) fn not_started(name: &SubjectName, program: &str, detail: String) -> Failure {
    Failure::itself(
        format!("cannot start {program:?} as job `{name}`"),
        detail,
        format!("mend the command; `latido remove {name}` frees the name"),
    )
}

/// The job's ending is what the command answers with, also where nobody reads the output any more.
fn unless_gone(shown: Result<(), Failure>) -> Result<(), Failure> {
    match shown {
        Err(failure) if failure.kind() == FailureKind::ReaderGone => Ok(()),
        other => other,
    }
}

/// Streams the output until the job is over, and ends as it did.
fn foreground(
    context: &Context,
    name: &SubjectName,
    first: u32,
    signals: &Signals,
    parent: Option<Parent>,
) -> Result<ExitCode, Failure> {
    let folder = context.state.job(name);
    if let Some(parent) = parent {
        parent.hear_of(name.clone(), folder.clone());
    }
    let mut number = first;
    let mut interrupts = 0;
    loop {
        let mut shown = Shown::on_stdout();
        let mut take = |bytes: &[u8]| unless_gone(shown.bytes(bytes));
        let mut follower = Follower::new(&folder, number, Some(signals), &mut take);
        let status = loop {
            match follower.follow()? {
                Over::Signal => {
                    interrupts += 1;
                    interrupt(context, name, interrupts);
                }
                Over::Ended(end) => break outcome::exit_status(&end),
                Over::Lost(why) => {
                    print::warn(&format!("attempt {number} of job {name} was lost: {why}"));
                    break outcome::LOST;
                }
            }
        };
        unless_gone(shown.finish())?;
        loop {
            match outcome::next_attempt(&context.state, name, number, Some(signals)) {
                Next::Attempt(next) => {
                    print::note(&format!("job {name} goes on as attempt {next}"));
                    number = next;
                    break;
                }
                Next::Nothing => return Ok(ExitCode::from(status)),
                Next::Signal => {
                    interrupts += 1;
                    interrupt(context, name, interrupts);
                }
            }
        }
    }
}

/// The first interrupt stops the job, every further one kills it.
fn interrupt(context: &Context, name: &SubjectName, count: u32) {
    let order = StopOrder { grace: None, force: count > 1, by: "Ctrl-C".to_owned() };
    print::note(if order.force { "killing the job" } else { "stopping the job; Ctrl-C again kills it" });
    match stop::begin(&context.state, name, &order, subject::at()) {
        Ok(_) => {
            client::poke_agent(&context.state, name, POKE_WITHIN);
        }
        Err(error) => print::warn(&format!("cannot {}", chain(&error))),
    }
}
