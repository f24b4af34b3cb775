//! `latido run --slots`: the agent alone knows who else waits, so it starts the job when it is its turn.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client;
use latido::jobs::clock::Deadline;
use latido::jobs::make;
use latido_process::signals::Signals;
use latido_protocol::status::{Phase, SubjectStatus};
use latido_protocol::{FORMAT_VERSION, SubjectName};
use serde::Serialize;

use super::parent::Parent;
use super::{BY, POKE_WITHIN, foreground, interrupt, make_failure};
use crate::args::RunArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::outcome::{self, Asked, Next};
use crate::{print, subject};

/// A free slot is taken at once; whoever is not seen to run or wait by then is told of by `latido status`.
const SEEN_WITHIN: Duration = Duration::from_secs(2);
/// Between two questions.
const TURN: Duration = Duration::from_millis(20);

/// What `--json` prints of a job whose start is the agent's business.
#[derive(Serialize)]
struct InLine<'a> {
    version: u32,
    name: &'a SubjectName,
    phase: Phase,
    attempt: u32,
    place: Option<u32>,
}

/// Makes the job and leaves its start to the agent.
pub(super) fn run(
    args: &RunArgs,
    context: &Context,
    new: &make::NewJob,
    signals: Option<&Signals>,
    parent: Option<Parent>,
) -> Result<ExitCode, Failure> {
    if matches!(outcome::agent_status(&context.state, &new.name), Asked::NoAgent) {
        return Err(Failure::unreachable(
            format!("cannot start job `{}` in a slot", new.name),
            "no agent runs, and it alone knows who waits for a slot",
            "start one with `latido agent`, or run it without --slots",
        ));
    }
    let made = if args.name.is_some() {
        make::make(&context.state, new, subject::at())
    } else {
        make::make_numbered(&context.state, new, subject::at())
    };
    // The lock goes at once: the agent launches it.
    let name = made.map_err(|error| make_failure(new, &error))?.job.name;
    client::poke_agent(&context.state, &name, POKE_WITHIN);
    let status = seen(context, &name);
    let waits = status.as_ref().filter(|status| status.phase == Phase::Queued);
    if let Some(place) = waits.and_then(|status| status.place) {
        print::note(&format!("job {name} waits for {}: place {place} in line", new.settings.slots.join(", ")));
    }
    if args.json {
        let phase = status.as_ref().map_or(Phase::Pending, |status| status.phase);
        let attempt = status.as_ref().map_or(0, |status| status.attempt);
        let place = status.as_ref().and_then(|status| status.place);
        let shown = InLine { version: FORMAT_VERSION, name: &name, phase, attempt, place };
        match signals {
            None => return print::json(&shown).map(|()| ExitCode::SUCCESS),
            Some(_) => print::note(&serde_json::to_string(&shown).unwrap_or_default()),
        }
    }
    let Some(signals) = signals else { return print::out(&format!("{name}\n")).map(|()| ExitCode::SUCCESS) };
    if args.name.is_none() {
        print::note(&format!("job {name}"));
    }
    let mut interrupts = 0;
    loop {
        match outcome::next_attempt(&context.state, &name, 0, Some(signals)) {
            Next::Attempt(first) => return foreground(context, &name, first, signals, parent),
            Next::Nothing => {
                return Err(Failure::itself(
                    format!("cannot see job `{name}` start"),
                    format!("it is over before its first attempt, or the agent that {BY} left it to is gone"),
                    format!("`latido why {name}` shows what is known of it"),
                ));
            }
            Next::Signal => {
                interrupts += 1;
                interrupt(context, &name, interrupts);
            }
        }
    }
}

/// Its status as soon as the agent has decided about it.
fn seen(context: &Context, name: &SubjectName) -> Option<Box<SubjectStatus>> {
    let deadline = Deadline::after(SEEN_WITHIN);
    let mut last = None;
    loop {
        if let Asked::Status(status) = outcome::agent_status(&context.state, name) {
            let is_decided = !matches!(status.phase, Phase::Pending | Phase::Launching);
            last = Some(status);
            if is_decided {
                return last;
            }
        }
        if deadline.has_passed() {
            return last;
        }
        deadline.rest(TURN);
    }
}
