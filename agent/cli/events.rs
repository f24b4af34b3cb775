//! `latido events`.

use std::process::ExitCode;

use latido::jobs::client::{AskError, EventStream};
use latido_protocol::WallTime;
use latido_protocol::journal::{AlertTold, Body, Entry};
use latido_store::{SqliteStore, Store};

use crate::args::EventsArgs;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::print;
use crate::table::one_line;

/// Entries of one read from the store.
const BATCH: usize = 1000;

/// Carries the command out.
pub(crate) fn run(args: &EventsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let mut stream = match EventStream::open(&context.state, 0, args.follow) {
        Ok(stream) => stream,
        Err(AskError::NobodyThere { .. }) if !args.follow => return from_store(args, context),
        Err(error) => return Err(unreachable(&error)),
    };
    loop {
        match stream.next_entry() {
            Ok(Some(entry)) => show(args, &entry)?,
            Ok(None) => return Ok(ExitCode::SUCCESS),
            Err(AskError::Refused { message }) => {
                return Err(Failure::refused(
                    "cannot show the journal",
                    format!("the agent cannot {message}"),
                    "is the agent of the same version? `latido status` asks it too",
                ));
            }
            Err(error) => return Err(unreachable(&error)),
        }
    }
}

fn unreachable(error: &AskError) -> Failure {
    Failure::unreachable(
        "cannot follow the journal",
        chain(error),
        "start the agent with `latido agent`; without -f what is recorded is shown",
    )
}

/// Without an agent nobody writes the journal; what it holds can be read.
fn from_store(args: &EventsArgs, context: &Context) -> Result<ExitCode, Failure> {
    let path = context.state.database();
    if !path.exists() {
        return Ok(ExitCode::SUCCESS);
    }
    let fail = |why: String| {
        Failure::itself(
            format!("cannot read the journal in {}", path.display()),
            why,
            "start the agent with `latido agent`: it mends its store",
        )
    };
    let store = SqliteStore::open(&path).map_err(|error| fail(chain(&error)))?;
    let mut after = 0;
    loop {
        let rows = store.entries_after(after, &[], BATCH).map_err(|error| fail(chain(&error)))?;
        let Some(last) = rows.last().map(|row| row.sequence) else { return Ok(ExitCode::SUCCESS) };
        after = last;
        for row in rows {
            match serde_json::from_str::<Body>(&row.body) {
                Ok(body) => {
                    let agent = store.journal_id().to_owned();
                    let at = WallTime::from_millis(row.at_ms);
                    show(args, &Entry { sequence: row.sequence, agent, at, body })?;
                }
                Err(error) => print::warn(&format!("entry {} cannot be read: {error}", row.sequence)),
            }
        }
    }
}

fn show(args: &EventsArgs, entry: &Entry) -> Result<(), Failure> {
    if args.json {
        return print::json_line(entry);
    }
    let subject = entry.body.subject().unwrap_or("-");
    let line = format!("{} {} {} {subject} {}", entry.sequence, entry.at, entry.body.kind(), words(&entry.body));
    print::out(&format!("{}\n", one_line(line.trim_end())))
}

fn words(body: &Body) -> String {
    match body {
        Body::Beat { attempt, beat, .. } => format!("attempt {attempt}, beat {beat}"),
        Body::Transition { previous, current, reason, .. } => format!("{previous} -> {current}: {reason}"),
        Body::Phase { phase, reason, .. } => format!("{phase}: {reason}"),
        Body::AttemptStarted { attempt, epoch, reason, .. } => format!("attempt {attempt}, epoch {epoch}: {reason}"),
        Body::AttemptEnded { attempt, outcome, .. } => {
            format!("attempt {attempt}: {}, {}", outcome.class, outcome.detail)
        }
        Body::LeaseExpired { attempt, previous_holder, target, silence_s, pickups, .. } => {
            let of = match (target, previous_holder) {
                (Some(target), Some(holder)) => format!("target {target}, held by {holder}"),
                (Some(target), None) => format!("target {target}"),
                (None, _) => format!("attempt {attempt}"),
            };
            format!("{of}, silent for {silence_s}, lost {pickups} times")
        }
        Body::Alert(told) => {
            let AlertTold { rule, summary, telling, reason, .. } = &**told;
            let because = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            format!("{telling}, by {rule}: {summary}{because}")
        }
        Body::Agent { what, detail } => format!("{what}: {detail}"),
    }
}
