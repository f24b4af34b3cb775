//! `latido metrics`.

use std::process::ExitCode;

use crate::context::Context;
use crate::failure::{Failure, chain};
use crate::{print, status};

/// Carries the command out.
pub(crate) fn run(context: &Context) -> Result<ExitCode, Failure> {
    let document = status::document(context, &[], "measure")?;
    let text = latido::metrics::text(&document).map_err(|error| {
        Failure::itself("cannot write the figures", chain(&error), "run `latido status --json`, and report this")
    })?;
    print::out(&text)?;
    Ok(ExitCode::SUCCESS)
}
