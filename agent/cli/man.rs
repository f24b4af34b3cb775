//! `latido man`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::failure::{Failure, chain};
use crate::print;

/// Prints the main page, or writes all pages into a folder.
pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    match &args.dir {
        Some(dir) => {
            let count = write_all(dir)?;
            print::note(&format!("{count} pages written to {}", dir.display()));
        }
        None => {
            let mut page = Vec::new();
            Man::new(Cli::command()).render(&mut page).map_err(|error| {
                Failure::itself("cannot make the man page", chain(&error), "report this with `latido --version`")
            })?;
            print::bytes(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_all(dir: &Path) -> Result<usize, Failure> {
    let refuse = |error: std::io::Error| {
        Failure::itself(
            format!("cannot write man pages to {}", dir.display()),
            chain(&error),
            "name a folder that you may write to",
        )
    };
    fs::create_dir_all(dir).map_err(refuse)?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(refuse)?;
    Ok(fs::read_dir(dir).map_err(refuse)?.filter_map(Result::ok).filter(|entry| is_page(&entry.path())).count())
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "1")
}
