//! From the kill of a job to the moment at which the agent's driver takes its end in, as the journal has it.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
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

/// How much later an end may be taken in where plugins misbehave.
const DELAY_MS: f64 = 2.0;

/// What is measured: nothing is resumed.
const CONFIG: &str = "[policy.default.resume]\non = []\n";

/// Measures it over a hundred jobs, each killed once, beside a bare waiter at a pidfd; and once more beside plugins that
/// loop, flood their log, and wait for a server that never answers.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let agent = place.agent(CONFIG)?;
    let (ends, floors) = killed(place, "alone", true)?;
    drop(agent);
    // What it accepts is never read.
    let server = TcpListener::bind("127.0.0.1:0")?;
    let agent = place.agent(&format!("{CONFIG}{}", misbehaving(server.local_addr()?)))?;
    let (beside, _) = killed(place, "beside", false)?;
    let faults = place.latido(&["plugin", "list"]).stdout(std::process::Stdio::piped()).output()?;
    let faults = String::from_utf8_lossy(&faults.stdout).into_owned();
    drop(agent);
    ensure!(faults.contains("loops") && faults.contains("floods"), "the plugins were not there: {faults}");

    let ends =
        Series::millis("kill -9 of a job, the agent takes its end in (at most; the journal has whole ms)", &ends);
    let beside = Series::millis("the same beside plugins that loop, flood and hang", &beside);
    let floor = Series::millis("pidfd waiter that wakes up", &floors);
    table.figure(&ends, &[&floor], "p99 ≤ 2 ms", ends.at_part(99) <= TARGET_MS);
    let delay = beside.at_part(99) - ends.at_part(99);
    table.figure(&beside, &[&ends], &format!("p99 ≤ 2 ms later; {delay:.1} ms"), delay <= DELAY_MS);
    table.beside(&[&floor]);
    Ok(())
}

/// Three sinks that do what they must not with each batch that they get.
fn misbehaving(server: SocketAddr) -> String {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/components/guests/misbehave.wasm");
    let guest = |name: &str, what: &str| {
        let source = guest.display();
        format!(
            "[[sink]]\nname = \"{name}\"\nsource = \"{source}\"\nsettings = {{ where = \"write\", what = \"{what}\" }}\n"
        )
    };
    let hangs = format!(
        "[[sink]]\nname = \"hangs\"\nsource = \"builtin:webhook\"\nsettings = {{ preset = \"json\", url = \"http://{server}/\" }}\n\
         grant = {{ http = {{ origins = [\"http://{server}\"], private = [\"127.0.0.1\"] }} }}\n"
    );
    [guest("loops", "loop"), guest("floods", "flood-log"), hangs].concat()
}

/// Kills a hundred jobs, one after another: from each kill to the end in the journal, and as long by a bare waiter.
fn killed(place: &Place, name: &str, with_floor: bool) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    for job in 0..JOBS {
        let name = format!("{name}{job}");
        let status = place.latido(&["run", "--detach", "--name", &name, "--", "sleep", "3600"]).status()?;
        ensure!(status.success(), "`latido run --detach` ended with {status}");
    }
    rest(Duration::from_secs(2));
    let (mut killed, mut floors) = (Vec::new(), Vec::new());
    for job in 0..JOBS {
        let process = place.started(&format!("{name}{job}"))?.process.context("find no process")?;
        let process = Pidfd::open(&process)?.context("find no job")?;
        killed.push(at_a_tick());
        process.signal(Signal::KILL)?;
        rest(APART);
        if with_floor {
            floors.push(floor(place)?);
        }
    }
    let ends = until("every end in the journal", Duration::from_millis(100), || {
        let ends = ends(place, name).unwrap_or_default();
        (ends.len() == JOBS).then_some(ends)
    })?;
    let upper = |(job, at): &(usize, Duration)| (*at + JOURNAL_TICK).saturating_sub(killed[*job]);
    Ok((ends.iter().map(upper).collect(), floors))
}

/// The journal's clock as it has just ticked: so its bound of an end lies no further behind than it has to.
fn at_a_tick() -> Duration {
    /// How long after the tick it is early enough.
    const EARLY: Duration = Duration::from_micros(50);

    loop {
        let now = wall();
        if now.subsec_nanos() % 1_000_000 < EARLY.subsec_nanos() {
            return now;
        }
    }
}

/// Which jobs of this name and a number have ended in the journal, and when.
fn ends(place: &Place, name: &str) -> anyhow::Result<Vec<(usize, Duration)>> {
    let output = place.latido(&["events", "--json"]).stdout(std::process::Stdio::piped()).output()?;
    let mut ends = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let entry: Entry = serde_json::from_str(line)?;
        if let Body::AttemptEnded { subject, .. } = &entry.body {
            let job = subject.as_str().strip_prefix(name).and_then(|number| number.parse().ok());
            ends.extend(job.map(|job| (job, Duration::from_millis(entry.at.as_millis()))));
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
