//! From the kill of a job to the moment at which the agent's driver takes its end in, as the journal has it.

use std::os::fd::AsFd as _;
use std::time::Duration;

use anyhow::Context as _;
use latido::jobs::clock::Deadline;
use latido_process::{Pidfd, Signal};
use latido_protocol::journal::{Body, Entry};
use rustix::process::{Pid, PidfdFlags};

use crate::place::{Guarded, Place, monotonic, rest, until, wall};
use crate::table::{Series, Table};

const JOBS: usize = 100;

/// The journal's clock counts in milliseconds: an end lies up to one after the moment that it says.
const JOURNAL_TICK: Duration = Duration::from_millis(1);

/// Between two kills: each end is taken in by itself.
const APART: Duration = Duration::from_millis(40);

const TARGET_MS: f64 = 2.0;

/// Measures it over a hundred jobs, each killed once, beside a bare waiter at a pidfd.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let agent = place.agent("[policy.default.resume]\non = []\n")?;
    for job in 0..JOBS {
        let status = place.latido(&["run", "--detach", "--name", &name(job), "--", "sleep", "3600"]).status()?;
        anyhow::ensure!(status.success(), "`latido run --detach` ended with {status}");
    }
    rest(Duration::from_secs(2));
    let (mut killed, mut floors) = (Vec::new(), Vec::new());
    for job in 0..JOBS {
        let process = place.started(&name(job))?.process.context("find no process")?;
        let process = Pidfd::open(&process)?.context("find no job")?;
        killed.push(wall());
        process.signal(Signal::KILL)?;
        rest(APART);
        floors.push(floor(place)?);
    }
    let ends = until("every end in the journal", Duration::from_millis(100), || {
        let ends = ends(place).unwrap_or_default();
        (ends.len() == JOBS).then_some(ends)
    })?;
    drop(agent);

    let upper = |(job, at): &(usize, Duration)| (*at + JOURNAL_TICK).saturating_sub(killed[*job]);
    let detected: Vec<Duration> = ends.iter().map(upper).collect();
    let detected =
        Series::millis("kill -9 of a job, the agent takes its end in (at most; the journal has whole ms)", &detected);
    let floor = Series::millis("pidfd waiter that wakes up", &floors);
    table.figure(&detected, &[&floor], "p99 ≤ 2 ms", detected.at_part(99) <= TARGET_MS);
    table.beside(&[&floor]);
    Ok(())
}

fn name(job: usize) -> String {
    format!("killed{job}")
}

/// Which jobs have ended in the journal, and when.
fn ends(place: &Place) -> anyhow::Result<Vec<(usize, Duration)>> {
    let output = place.latido(&["events", "--json"]).stdout(std::process::Stdio::piped()).output()?;
    let mut ends = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let entry: Entry = serde_json::from_str(line)?;
        if let Body::AttemptEnded { subject, .. } = &entry.body {
            let job = subject.as_str().trim_start_matches("killed").parse()?;
            ends.push((job, Duration::from_millis(entry.at.as_millis())));
        }
    }
    Ok(ends)
}

/// The same by nothing but the system: a thread that waits at a child's pidfd.
fn floor(place: &Place) -> anyhow::Result<Duration> {
    let child = Guarded::start(place.command("sleep").arg("3600"), Signal::KILL)?;
    let pid = Pid::from_raw(child.pid().cast_signed()).context("find no child")?;
    let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            Deadline::NEVER.readable(pidfd.as_fd());
            monotonic()
        });
        rest(Duration::from_millis(10)); // the waiter waits by then
        let from = monotonic();
        rustix::process::pidfd_send_signal(&pidfd, Signal::KILL)?;
        let woken = waiter.join().map_err(|_panic| anyhow::anyhow!("the waiter panicked"))?;
        anyhow::Ok(woken.saturating_sub(from))
    })
}
