//! Watches that at no moment two copies of the job live.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::processes::{self, Process, Seen};
use crate::clock::{Stopwatch, pause};

/// Between two looks. With the look itself that makes well over the [`LOOKS_PER_SECOND_MIN`].
const EVERY: Duration = Duration::from_millis(8);

/// A watch that looked less often than this proves nothing.
const LOOKS_PER_SECOND_MIN: f64 = 20.0;

/// A thread that looks at the process table until it is asked.
pub(crate) struct Watch {
    thread: Option<JoinHandle<Findings>>,
    end: Arc<AtomicBool>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    looks: u64,
    time: Duration,
    /// Every process of the job that was seen, with its attempt.
    copies: BTreeMap<Process, String>,
    /// Two attempts that lived at the same moment.
    doubles: Vec<String>,
}

impl Watch {
    /// Begins to watch for `program` with an attempt's directory under `state`.
    pub(crate) fn start(state: &Path, program: &Path) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let (state, program, ended) = (state.to_owned(), program.to_owned(), Arc::clone(&end));
        let thread = std::thread::spawn(move || watch(&state, &program, &ended));
        Self { thread: Some(thread), end }
    }

    /// Ends the watch and returns what it saw.
    ///
    /// # Errors
    ///
    /// Fails where the thread panicked.
    pub(crate) fn finish(mut self) -> Result<Findings> {
        self.end.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the watch has ended before")?;
        thread.join().map_err(|_| anyhow!("the watch for copies panicked"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(state: &Path, program: &PathBuf, end: &AtomicBool) -> Findings {
    let stopwatch = Stopwatch::start();
    let mut findings = Findings::default();
    while !end.load(Ordering::Relaxed) {
        let seen = processes::under(state).into_iter().filter(|seen| &seen.program == program).collect();
        findings.add(seen, Process::is_alive);
        pause(EVERY);
    }
    findings.time = stopwatch.elapsed();
    findings
}

impl Findings {
    /// Takes one look's result.
    ///
    /// A look takes time: the first of two may have ended before the second started. So the earlier ones are looked at
    /// again; who lived before and after another was seen, lived beside it.
    fn add(&mut self, seen: Vec<Seen>, is_alive: impl Fn(Process) -> bool) {
        self.looks += 1;
        let attempts: Vec<(Process, String)> = seen
            .into_iter()
            .map(|seen| (seen.process, seen.environment.get("LATIDO_ATTEMPT").cloned().unwrap_or_default()))
            .collect();
        for (index, (later, attempt)) in attempts.iter().enumerate() {
            for (earlier, other) in &attempts[..index] {
                if other != attempt && is_alive(*earlier) {
                    self.doubles.push(format!(
                        "attempt {other} (pid {}) and attempt {attempt} (pid {})",
                        earlier.pid, later.pid
                    ));
                }
            }
        }
        self.copies.extend(attempts);
    }

    /// Checks that `attempts` attempts were seen, one process each, and never two at once.
    ///
    /// # Errors
    ///
    /// Says what was seen instead, or that the watch looked too seldom to prove anything.
    pub(crate) fn check(&self, attempts: usize) -> Result<String> {
        if let Some(double) = self.doubles.first() {
            bail!("two copies lived at the same moment: {double}");
        }
        let seconds = self.time.as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = u32::try_from(self.looks).map_or(f64::INFINITY, f64::from) / seconds;
        if rate < LOOKS_PER_SECOND_MIN {
            bail!("the watch for copies looked {rate:.0} times a second, {LOOKS_PER_SECOND_MIN:.0} are needed");
        }
        if self.copies.len() != attempts {
            bail!("{} processes of the job were seen, {attempts} were expected: {:?}", self.copies.len(), self.copies);
        }
        Ok(format!("{} looks ({rate:.0} a second) saw {attempts} processes of the job, never two at once", self.looks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: u32, attempt: &str) -> Seen {
        Seen {
            process: Process { pid, start_time: 1 },
            program: PathBuf::from("/catalogue"),
            environment: BTreeMap::from([("LATIDO_ATTEMPT".to_owned(), attempt.to_owned())]),
        }
    }

    fn findings(looks: Vec<Vec<Seen>>, is_alive: fn(Process) -> bool) -> Findings {
        let mut findings = Findings { time: Duration::from_millis(10), ..Findings::default() };
        looks.into_iter().for_each(|look| findings.add(look, is_alive));
        findings
    }

    #[test]
    fn one_after_the_other_is_fine() {
        let one_by_one = findings(vec![vec![seen(1, "1")], vec![], vec![seen(2, "2")]], |_| true);
        one_by_one.check(2).unwrap();
        assert!(one_by_one.check(3).unwrap_err().to_string().contains("2 processes"));
    }

    #[test]
    fn two_at_once_are_found() {
        let error = findings(vec![vec![seen(1, "1"), seen(2, "2")]], |_| true).check(2).unwrap_err();
        assert_eq!(error.to_string(), "two copies lived at the same moment: attempt 1 (pid 1) and attempt 2 (pid 2)");
    }

    #[test]
    fn one_that_ended_during_the_look_is_not_a_double() {
        findings(vec![vec![seen(1, "1"), seen(2, "2")]], |_| false).check(2).unwrap();
    }

    #[test]
    fn a_watch_that_slept_proves_nothing() {
        let mut slow = findings(vec![vec![seen(1, "1")]], |_| true);
        slow.time = Duration::from_secs(1);
        assert!(slow.check(1).unwrap_err().to_string().contains("times a second"));
    }
}
