//! Hashes every file below a directory and records path, size, time and hash in a database of its own.
//!
//! An ordinary program that latido can resume: it commits as it goes, says how far it is by `sd_notify`, and on a start
//! passes over what is recorded and unchanged. It knows latido by two variables of the environment that any program can
//! use, `NOTIFY_SOCKET` and `LATIDO_CHECKPOINT`, and works without either.

mod books;
mod hash;
mod notify;
mod pace;
mod walk;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use books::{Books, Record};
use notify::Notifier;
use pace::Pace;

/// A commit stands at every file of this number, its double and so on.
const COMMIT_EVERY: u64 = 200;

/// Files that are hashed and not yet committed, at most. One less than [`COMMIT_EVERY`]: a kill may come after the last
/// hash and before the commit has ended, and costs this many then.
const PENDING_MAX: usize = 199;

/// Hashes every regular file below a directory and records it, going on where an earlier run was.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// What is walked; symbolic links are not followed
    directory: PathBuf,
    /// Where it is recorded: a SQLite file; beside it FILE.log gets a line for each hash that begins
    #[arg(long, value_name = "FILE")]
    database: PathBuf,
    /// Spreads the work so that hashing all files takes at least this long, such as 20s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pace: Option<Duration>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let directory = arguments.directory.canonicalize();
    let directory =
        directory.with_context(|| format!("cannot find the directory {}", arguments.directory.display()))?;
    ensure!(directory.is_dir(), "cannot walk {}: it is no directory", directory.display());
    let books = Books::open(&arguments.database)?;
    let mut catalogue =
        Catalogue { books, notifier: Notifier::from_environment(), done: 0, total: 0, pending: Vec::new() };
    catalogue.run(&directory, arguments.pace)
}

struct Catalogue {
    books: Books,
    notifier: Notifier,
    /// files that are recorded and committed
    done: u64,
    /// files in all
    total: u64,
    /// files that are hashed and not yet committed
    pending: Vec<Record>,
}

impl Catalogue {
    fn run(&mut self, directory: &Path, pace: Option<Duration>) -> Result<()> {
        let walked = walk::walk(directory, &self.books.own_files());
        self.books.record_folders(&walked.unread)?;
        self.total = walked.files.len() as u64;
        let left = self.books.left(walked.files)?;
        self.done = self.total - left.len() as u64;
        self.books.passed_over(self.done)?;
        self.begin(directory, left.len());

        let mut pace = Pace::new(pace, self.total);
        for path in left {
            self.books.log(&path)?;
            let record = hash::record(path, &mut || self.notifier.beat(self.fraction()));
            self.pending.push(record);
            while pace.wait() {
                self.notifier.beat(self.fraction());
            }
            let reached = self.done + self.pending.len() as u64;
            if self.pending.len() == PENDING_MAX || reached.is_multiple_of(COMMIT_EVERY) {
                self.commit()?;
            }
        }
        self.commit()?;
        let summary = self.books.complete()?;
        say(&format!(
            "completed: {} files recorded, {} of them unreadable; {} hashed by this run",
            self.total, summary.unreadable, summary.hashed
        ));
        self.notifier.send("STOPPING=1\nSTATUS=completed");
        Ok(())
    }

    fn begin(&mut self, directory: &Path, left: usize) {
        let run = self.books.run();
        say(&format!(
            "run {run}: {} files below {}, {} recorded, {left} to hash",
            self.total,
            directory.display(),
            self.done
        ));
        if let Some(checkpoint) = std::env::var("LATIDO_CHECKPOINT").ok().filter(|text| !text.is_empty()) {
            say(&format!("the checkpoint handed over is {checkpoint}; the database has {}, and counts", self.done));
        }
        self.notifier.send("READY=1");
        self.report();
    }

    fn commit(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.books.commit(&self.pending)?;
        self.done += self.pending.len() as u64;
        self.pending.clear();
        if self.done.is_multiple_of(COMMIT_EVERY) || self.done == self.total {
            say(&format!("{} of {} files recorded", self.done, self.total));
        }
        self.report();
        Ok(())
    }

    /// Tells what is committed, and nothing that a kill could take back.
    fn report(&mut self) {
        let (done, total, fraction) = (self.done, self.total, self.fraction());
        self.notifier.send(&format!(
            "WATCHDOG=1\nSTATUS={done}/{total} files\nX_LATIDO_PROGRESS={fraction:.6}\n\
             X_LATIDO_STEP={done} of {total} files recorded\nX_LATIDO_CHECKPOINT={done}"
        ));
    }

    /// The share of files that are hashed, committed or not.
    #[expect(clippy::cast_precision_loss, reason = "a share of files, for people")]
    fn fraction(&self) -> f64 {
        let hashed = self.done + self.pending.len() as u64;
        if self.total == 0 { 1.0 } else { hashed as f64 / self.total as f64 }
    }
}

/// Prints a line. Whoever reads it may be gone, which is no reason to end.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
