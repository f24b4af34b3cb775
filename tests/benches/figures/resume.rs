//! From the kill of a job to the first instruction of its next attempt.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use latido::jobs::clock::Deadline;
use latido_process::Signal;
use rustix::process::{Pid, PidfdFlags};

use crate::peer::Service;
use crate::place::{Guarded, Mark, Place, marks, monotonic, next_mark, rest};
use crate::table::{Series, Table};

const ROUNDS: usize = 15;

const TARGET_MS: f64 = 15.0;

/// runit starts nothing twice within a second, and a job that settled is what is killed in practice.
const SETTLED: Duration = Duration::from_millis(1200);

/// No delay of the policy, no pace, no end of attempts: only the path itself is measured. The strategy is the built-in one.
const CONFIG: &str =
    "[agent]\nresumes_at_once = 1000\n[policy.default.resume]\nmax_attempts = 1000\nmax_pickups = 1000\n";

/// Measures it with an agent and the built-in plugins, in rounds with a bare waiter and with `runsv`.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let agent = place.agent(CONFIG)?;
    let file = place.path("marks-resumed");
    let words = place.marker_words(&file)?;
    let mut command = place.latido(&["run", "--detach", "--name", "resumed", "--backoff", "0s..0s", "--config"]);
    anyhow::ensure!(command.arg(place.config()).arg("--").args(words).status()?.success(), "cannot run the job");

    let peer_file = place.path("marks-runsv");
    let words = place.marker_words(&peer_file)?;
    let service = Service::start(place, "runsv", "service-resume", &words, false)?;

    let (mut resumed, mut floors, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        rest(SETTLED);
        let measured = killed(&file, round)?;
        let floor = floor(place, round)?;
        let peer = service.is_some().then(|| killed(&peer_file, round)).transpose()?;
        if round > 0 {
            // The first round loads the strategy's instance.
            resumed.push(measured);
            floors.push(floor);
            peers.extend(peer);
        }
    }
    drop(agent);
    place.end("resumed");

    let resumed = Series::millis("2 kill -9 of the job, the next attempt runs", &resumed);
    let floor = Series::millis("pidfd waiter that spawns again", &floors);
    let runsv = Series::millis("`runsv`, kill -9, it runs again", &peers);
    table.figure(&resumed, &[&floor, &runsv], "≤ 15 ms, then runit's", resumed.median() <= TARGET_MS);
    table.beside(&[&floor, &runsv]);
    Ok(())
}

/// Kills what made the newest mark and waits for the next one; `round` marks came before it.
fn killed(file: &Path, round: usize) -> anyhow::Result<Duration> {
    let mark = next_mark(file, round)?;
    let from = kill(mark)?;
    Ok(next_mark(file, round + 1)?.at.saturating_sub(from))
}

/// Kills a marked process and says when.
fn kill(mark: Mark) -> anyhow::Result<Duration> {
    let pid = Pid::from_raw(mark.pid).context("find no pid in the mark")?;
    let from = monotonic();
    rustix::process::kill_process(pid, Signal::KILL)?;
    Ok(from)
}

/// The same by nothing but the system: wait for a child's end by its pidfd, spawn another.
fn floor(place: &Place, round: usize) -> anyhow::Result<Duration> {
    let file = place.path(&format!("marks-floor-{round}"));
    let mut command = place.marker(&file);
    let first = Guarded::start(&mut command, Signal::KILL)?;
    let pid = Pid::from_raw(first.pid().cast_signed()).context("find no child")?;
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    next_mark(&file, 0)?;
    let killer = marks(&file).first().copied().context("find no mark")?;
    let from = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            Deadline::NEVER.readable(pidfd.as_fd());
            drop(first);
            Guarded::start(&mut command, Signal::KILL)
        });
        rest(Duration::from_millis(50)); // the waiter waits by then
        let from = kill(killer)?;
        let second = waiter.join().map_err(|_panic| anyhow::anyhow!("the waiter panicked"))??;
        next_mark(&file, 1)?;
        drop(second);
        anyhow::Ok(from)
    })?;
    Ok(next_mark(&file, 1)?.at.saturating_sub(from))
}
