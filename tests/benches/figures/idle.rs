//! What a hundred live jobs cost while nothing happens: a supervisor's memory, the agent's memory and CPU.

use std::time::Duration;

use anyhow::Context as _;

use crate::peer::Service;
use crate::place::{Place, cpu_of, pss_kib, rest};
use crate::table::{Series, Table};

const JOBS: usize = 100;

const SUPERVISOR_KIB: f64 = 250.0;

const AGENT_PERCENT: f64 = 0.02;

/// After a start there is something to do; at rest there is not. Idle threads of the agent's pool end after 10 s, and
/// what they used would vanish from the sum.
const SETTLED: Duration = Duration::from_secs(12);

/// How long the CPU is watched: once round for what happens each minute. In how many samples: what a thread used that
/// ends meanwhile is known up to the last one.
const WINDOW: Duration = Duration::from_secs(60);
const SAMPLES: u32 = 60;

/// The agent's configs, with the most memory that each may occupy in KiB.
const AGENTS: [(&str, &str, f64); 2] = [
    ("no plugins", "sink = []\nrule = []\nstrategy = []\n", 10.0 * 1024.0),
    ("the built-in plugins", "", 20.0 * 1024.0),
];

/// Measures the supervisors of a hundred jobs, beside a hundred of each peer, and then agents over them.
pub(crate) fn measure(place: &Place, table: &mut Table) -> anyhow::Result<()> {
    for job in 0..JOBS {
        let name = format!("idle{job}");
        let status = place.latido(&["run", "--detach", "--name", &name, "--", "sleep", "3600"]).status()?;
        anyhow::ensure!(status.success(), "`latido run --detach` ended with {status}");
    }
    let runsv = peers(place, "runsv")?;
    let s6 = peers(place, "s6-supervise")?;
    let mut ours = Vec::new();
    for job in 0..JOBS {
        let start = place.started(&format!("idle{job}"))?;
        ours.push(pss_kib(start.supervisor.context("find no supervisor")?.pid)?);
    }
    let ours = Series::new("3 a supervisor at rest, PSS, each of 100", "KiB", ours);
    let target = "≤ 250 KiB, then 1.2 × runsv";
    table.figure(&ours, &[&runsv, &s6], target, ours.median() <= SUPERVISOR_KIB);
    table.beside(&[&runsv, &s6]);

    for (which, config, memory) in AGENTS {
        let agent = place.agent(config)?;
        rest(SETTLED);
        let used = used_at_rest(agent.pid())?;
        let percent = 100.0 * used.as_secs_f64() / WINDOW.as_secs_f64();
        let cpu =
            Series::new(format!("4 the agent at rest over 100 jobs, CPU in a minute, {which}"), "%", vec![percent]);
        table.figure(&cpu, &[], "≤ 0.02 %", percent <= AGENT_PERCENT);
        let pss = pss_kib(agent.pid())?;
        let series = Series::new(format!("4 the agent at rest over 100 jobs, PSS, {which}"), "KiB", vec![pss]);
        table.figure(&series, &[], &format!("≤ {memory} KiB"), pss <= memory);
    }
    Ok(())
}

/// The memory of a hundred of a peer's supervisors, which end before this returns.
fn peers(place: &Place, supervisor: &str) -> anyhow::Result<Series> {
    let words = ["sleep".to_owned(), "3600".to_owned()];
    let mut services = Vec::new();
    for job in 0..JOBS {
        services.extend(Service::start(place, supervisor, &format!("{supervisor}-{job}"), &words, false)?);
    }
    rest(Duration::from_secs(1));
    let values: Result<Vec<f64>, _> = services.iter().map(|service| pss_kib(service.supervisor.pid())).collect();
    for service in &services {
        service.supervisor.signal();
    }
    Ok(Series::new(format!("`{supervisor}` at rest, PSS, each of 100"), "KiB", values?))
}

/// What a process uses of the CPUs within the window.
fn used_at_rest(pid: u32) -> anyhow::Result<Duration> {
    let before: Duration = cpu_of(pid)?.into_values().sum();
    let mut seen = cpu_of(pid)?;
    for _sample in 0..SAMPLES {
        rest(WINDOW / SAMPLES);
        seen.extend(cpu_of(pid)?);
    }
    Ok(seen.into_values().sum::<Duration>().saturating_sub(before))
}
