//! `latido group`.

use std::io::Read;
use std::process::ExitCode;

use latido_process::lock::Lock;
use latido_protocol::registry::{Question, Reply};

use crate::args::{GroupArgs, GroupCommand, GroupOpenArgs};
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::registry;

/// Carries the command out.
pub(crate) fn run(args: &GroupArgs, context: &Context) -> Result<ExitCode, Failure> {
    match &args.command {
        GroupCommand::Open(args) => open(args, context),
    }
}

/// The lock is taken first and held while the agent is asked, which looks whether it is.
fn open(args: &GroupOpenArgs, context: &Context) -> Result<ExitCode, Failure> {
    let what = format!("open group {}", args.group);
    let lock = take(args, context, &what)?;
    let reply = registry::ask(context, Question::OpenGroup { group: args.group.clone() }, &what)?;
    let Reply::Opened { instance } = reply else {
        return Err(registry::refused(&what, &reply, "ask again; `latido worker list` shows who is registered"));
    };
    let code = registry::show(&reply, args.json, || instance.to_string())?;
    if args.hold {
        let mut rest = Vec::new();
        // An input that cannot be read has ended.
        let _ended = std::io::stdin().lock().read_to_end(&mut rest);
    }
    drop(lock);
    Ok(code)
}

fn take(args: &GroupOpenArgs, context: &Context, what: &str) -> Result<Lock, Failure> {
    let path = context.state.group_lock(&args.group);
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let itself = |why: String| {
        let next = format!("look at {}: is it writable, is its disk full?", path.display());
        Failure::itself(format!("cannot {what}"), why, next)
    };
    made.map_err(|error| itself(chain(&error)))?;
    let taken = Lock::take(&path).map_err(|error| itself(chain(&error)))?;
    taken.ok_or_else(|| {
        let holders: Vec<String> = latido_process::lock::holders(&path).iter().map(u32::to_string).collect();
        let who =
            if holders.is_empty() { "another process".to_owned() } else { format!("process {}", holders.join(", ")) };
        Failure::refused(format!("cannot {what}"), format!("{who} holds its lock"), "end that executor first")
    })
}
