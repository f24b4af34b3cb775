//! `latido worker`.

use std::process::ExitCode;

use latido::jobs::launch::host_name;
use latido_protocol::control::{Answer, Request};
use latido_protocol::registry::{Question, Registration, RegistryStatus, Reply};

use crate::args::{WorkerArgs, WorkerCommand, WorkerListArgs, WorkerRegisterArgs};
use crate::context::Context;
use crate::failure::Failure;
use crate::table::Table;
use crate::{print, registry};

/// Carries the command out.
pub(crate) fn run(args: &WorkerArgs, context: &Context) -> Result<ExitCode, Failure> {
    match &args.command {
        WorkerCommand::Register(args) => register(args, context),
        WorkerCommand::List(args) => list(args, context),
        WorkerCommand::Leave(args) => {
            let what = format!("let worker {} leave", args.worker);
            let question = Question::Leave { worker: args.worker.clone(), epoch: args.epoch };
            registry::done(context, question, &what, "`latido worker list` shows who is registered")
        }
    }
}

fn register(args: &WorkerRegisterArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("register worker {}", args.worker);
    let question = Question::Register(Registration {
        worker: args.worker.clone(),
        group: args.group.clone(),
        instance: args.instance,
        interval_s: args.interval,
        ttl_s: args.ttl,
        missed: args.missed,
        start_within_s: args.start_within,
        host: Some(args.host.clone().unwrap_or_else(host_name)),
        pid: args.pid,
    });
    let reply = registry::ask(context, question, &what)?;
    let Reply::Registered { epoch, .. } = reply else {
        let next = "give a ttl of more than one interval, and the instance that `latido group open` printed";
        return Err(registry::refused(&what, &reply, next));
    };
    registry::show(&reply, args.json, || epoch.to_string())
}

fn list(args: &WorkerListArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = "list the workers";
    let answer = registry::request(context, Request::Workers, what)?;
    let Answer::Workers { status } = answer else { return Err(registry::unexpected(what)) };
    if args.json {
        return registry::json(&status).map(|()| ExitCode::SUCCESS);
    }
    print::out(&table(&status).to_string()).map(|()| ExitCode::SUCCESS)
}

fn table(status: &RegistryStatus) -> Table {
    let mut table =
        Table::new(&["WORKER", "GROUP", "EPOCH", "STATUS", "VERDICT", "SILENCE", "ERRORS", "STATE", "TARGETS"]);
    for worker in &status.workers {
        let targets: Vec<&str> = worker.targets.iter().map(|target| target.as_str()).collect();
        table.row([
            worker.name.to_string(),
            worker.group.to_string(),
            worker.epoch.to_string(),
            worker.status.to_string(),
            worker.verdict.to_string(),
            format!("{}s", worker.silence_s.0.as_secs()),
            worker.errors.to_string(),
            worker.state.clone().unwrap_or_else(|| "-".to_owned()),
            if targets.is_empty() { "-".to_owned() } else { targets.join(", ") },
        ]);
    }
    table
}
