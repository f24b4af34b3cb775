//! `latido orphans`.

use std::process::ExitCode;
use std::time::Duration;

use latido::jobs::client::{self, POKE_WITHIN};
use latido::jobs::inspect::{self, Living};
use latido::jobs::{orphans, recover};
use latido_protocol::{FORMAT_VERSION, SubjectName};
use serde::Serialize;

use crate::args::OrphansArgs;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::table::Table;
use crate::{print, subject};

/// Between SIGTERM and SIGKILL, where the job does not say.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Document {
    version: u32,
    orphans: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    job: SubjectName,
    attempt: u32,
    pid: u32,
    name: String,
}

/// Carries the command out.
pub(crate) fn run(args: &OrphansArgs, context: &Context) -> Result<ExitCode, Failure> {
    let found = find(context)?;
    if args.kill {
        for orphan in &found {
            let folder = context.state.job(&orphan.job);
            let grace = inspect::inspect(&context.state, &orphan.job)
                .and_then(|facts| facts.job)
                .map_or(GRACE, |job| job.settings.grace.0);
            if let Err(error) = recover::end_orphan(&orphan.job, &folder, orphan.attempt, grace) {
                print::warn(&format!("cannot {}", chain(&error)));
            }
            client::poke_agent(&context.state, &orphan.job, POKE_WITHIN);
        }
    }
    let left = if args.kill { find(context)? } else { found };
    let rows: Vec<Row> = left
        .iter()
        .flat_map(|orphan| {
            orphan.living.iter().map(|Living { pid, name }| Row {
                job: orphan.job.clone(),
                attempt: orphan.attempt,
                pid: *pid,
                name: name.clone(),
            })
        })
        .collect();
    let is_clean = rows.is_empty();
    if args.json {
        print::json(&Document { version: FORMAT_VERSION, orphans: rows })?;
    } else {
        let mut table = Table::new(&["PID", "NAME", "JOB", "ATTEMPT"]);
        for row in rows {
            table.row([row.pid.to_string(), row.name, row.job.to_string(), row.attempt.to_string()]);
        }
        print::out(&if is_clean { String::new() } else { table.to_string() })?;
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn find(context: &Context) -> Result<Vec<orphans::Orphan>, Failure> {
    let (found, blind) = orphans::find(&context.state).map_err(|error| subject::unreadable(&context.state, &error))?;
    for message in blind {
        print::warn(&message);
    }
    Ok(found)
}
