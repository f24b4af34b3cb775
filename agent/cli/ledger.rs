//! `latido ledger`.

use std::process::ExitCode;

use latido_protocol::disk;
use latido_protocol::files::LedgerLine;
use serde::Serialize;

use crate::args::LedgerArgs;
use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::print;
use crate::table::Table;

#[derive(Serialize)]
struct Document {
    version: u32,
    attempts: Vec<LedgerLine>,
}

/// Carries the command out.
pub(crate) fn run(args: &LedgerArgs, context: &Context) -> Result<ExitCode, Failure> {
    let path = context.state.ledger();
    let lines = disk::read_lines::<LedgerLine>(&path).map_err(|error| {
        Failure::itself(
            "cannot show the ledger",
            chain(&error),
            "look at the state directory; --state-dir gives another",
        )
    })?;
    for number in &lines.damaged {
        print::warn(&format!("line {number} of {} is damaged", path.display()));
    }
    if args.json {
        let document = Document { version: latido_protocol::FORMAT_VERSION, attempts: lines.records };
        return print::json(&document).map(|()| ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ENDED", "JOB", "ATTEMPT", "EPOCH", "CLASS", "HOW", "LAUNCHED BECAUSE"]);
    for line in lines.records {
        table.row([
            line.ended_at.to_string(),
            line.job.to_string(),
            line.attempt.to_string(),
            line.epoch.to_string(),
            line.class.to_string(),
            line.outcome.detail,
            line.because,
        ]);
    }
    print::out(&table.to_string()).map(|()| ExitCode::SUCCESS)
}
