//! From `latido run --detach` to its return and to the job's first instruction.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use latido_process::Signal;

use crate::peer::Service;
use crate::place::{Guarded, Place, monotonic, next_mark, rest};
use crate::table::{Series, Table};

const ROUNDS: usize = 20;

/// runit starts nothing twice within a second.
const SETTLED: Duration = Duration::from_millis(1100);

/// What a launch makes durable before the job runs, as a count of small files.
const RECORDS: usize = 4;

const TARGET_MS: f64 = 20.0;

/// The durations of all rounds: until the command returned and until the job ran.
#[derive(Default)]
struct Pairs {
    returned: Vec<Duration>,
    ran: Vec<Duration>,
}

impl Pairs {
    fn add(&mut self, from: Duration, returned: Duration, ran: Duration) {
        self.returned.push(returned.saturating_sub(from));
        self.ran.push(ran.saturating_sub(from));
    }
}

/// Measures it without and with an agent, in rounds with the floors and with `sv up`.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    let (mut alone, mut told) = (Pairs::default(), Pairs::default());
    let (mut plain, mut durable, mut peer) = (Pairs::default(), Pairs::default(), Pairs::default());
    let service_marks = place.path("marks-sv");
    let words = place.marker_words(&service_marks)?;
    let service = Service::start(place, "runsv", "service-launch", &words, true)?;
    for round in 0..ROUNDS {
        product(place, &format!("alone{round}"), &mut alone)?;
        let agent = (round == 0).then(|| place.agent("")).transpose()?;
        drop(agent); // the first start compiles the plugins, which is not what is measured
        floor(place, &format!("plain{round}"), 0, &mut plain)?;
        floor(place, &format!("durable{round}"), RECORDS, &mut durable)?;
        if let Some(service) = &service {
            rest(SETTLED);
            let from = monotonic();
            Service::order(place, "up", &service.folder)?;
            let returned = monotonic();
            peer.add(from, returned, next_mark(&service_marks, round)?.at);
            Service::order(place, "force-stop", &service.folder)?;
        }
    }
    let agent = place.agent("")?;
    rest(Duration::from_secs(1));
    for round in 0..ROUNDS {
        product(place, &format!("told{round}"), &mut told)?;
    }
    drop(agent);

    let plain = Series::millis("fork + exec until the job runs", &plain.ran);
    let durable = Series::millis("the same after 4 fdatasync", &durable.ran);
    let up = Series::millis("`sv up` returns", &peer.returned);
    let up_ran = Series::millis("`sv up`, the job runs", &peer.ran);
    let target = "≤ 20 ms, then ≤ 2 × `sv up`";
    for (which, pairs) in [("no agent", &alone), ("an agent", &told)] {
        let returned = Series::millis(format!("1 `run --detach` returns, {which}"), &pairs.returned);
        table.figure(&returned, &[&durable, &up], "≤ 20 ms", returned.median() <= TARGET_MS);
        let ran = Series::millis(format!("1 `run --detach`, the job runs, {which}"), &pairs.ran);
        table.figure(&ran, &[&durable, &up_ran], target, ran.median() <= TARGET_MS);
    }
    table.beside(&[&plain, &durable, &up, &up_ran]);
    Ok(())
}

/// One launch by the command; the job is killed afterwards.
fn product(place: &Place, name: &str, pairs: &mut Pairs) -> anyhow::Result<()> {
    let file = place.path(&format!("marks-{name}"));
    let words = place.marker_words(&file)?;
    let mut command = place.latido(&["run", "--detach", "--name", name, "--"]);
    command.args(words);
    let from = monotonic();
    let status = command.status()?;
    let returned = monotonic();
    ensure!(status.success(), "`latido run --detach` ended with {status}");
    pairs.add(from, returned, next_mark(&file, 0)?.at);
    rest(Duration::from_millis(30)); // what the supervisor still records after the start is not the next one's time
    let stopped = place.latido(&["stop", name]).status()?;
    ensure!(stopped.success(), "`latido stop` ended with {stopped}");
    Ok(())
}

/// One launch by nothing but the system, after `records` small files were made durable in the state directory.
fn floor(place: &Place, name: &str, records: usize, pairs: &mut Pairs) -> anyhow::Result<()> {
    let file = place.path(&format!("marks-{name}"));
    let folder = place.state().path().to_owned();
    let mut command = place.marker(&file);
    let from = monotonic();
    for record in 0..records {
        durable(&folder.join(format!("floor-{record}")))?;
    }
    let child = Guarded::start(&mut command, Signal::KILL)?;
    let returned = monotonic();
    pairs.add(from, returned, next_mark(&file, 0)?.at);
    drop(child);
    Ok(())
}

fn durable(path: &Path) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&[b'r'; 300])?;
    file.sync_data()?;
    Ok(())
}
