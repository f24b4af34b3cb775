//! The storm: many jobs of every habit, while agent, supervisors and jobs are killed at random, and stopped and resumed.
//!
//! `cargo xtask storm` is the long form. Both print the seed of what they do.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use latido::jobs::records;
use latido_process::{Pidfd, Signal};
use latido_protocol::Class;
use latido_protocol::files::{Identity, LedgerLine};
use latido_protocol::layout::StateDir;
use latido_protocol::status::Verdict;

use crate::support::{Agent, World, wait_long_until, wait_until};

/// What a job of the storm does beside its work.
const KINDS: [&str; 6] = ["plain", "fork", "session", "stubborn", "pipe", "twice"];

/// Every death is resumed at once, as often as there are deaths.
const CONFIG: &str = r#"
sink = []
rule = []
[agent]
resumes_at_once = 1000
[policy.default]
grace = "300ms"
linger = "300ms"
[policy.default.resume]
on = ["lost"]
max_attempts = 1000
max_pickups = 1000
backoff = "0s..1s"
"#;

/// How hard it blows.
struct Storm {
    seed: u64,
    jobs: usize,
    steps: usize,
    kills: usize,
}

impl Storm {
    /// The short form, unless the environment asks for more.
    fn asked() -> Self {
        let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
        let count = |name, short| usize::try_from(asked(name).unwrap_or(short)).unwrap();
        let jobs = count("LATIDO_STORM_JOBS", 12);
        let kills = count("LATIDO_STORM_KILLS", 60);
        // Enough work that the last kill still finds some, also where there are many.
        let steps = 20 + kills / jobs + kills / 100;
        Self { seed: asked("LATIDO_STORM_SEED").unwrap_or_else(|| fastrand::u64(..1_000_000)), jobs, steps, kills }
    }
}

/// One job, by its number.
fn name(number: usize) -> String {
    format!("storm-{number}")
}

/// Where it works.
fn folder(world: &World, number: usize) -> PathBuf {
    world.home().join(name(number))
}

/// Kills a process if it is still that one.
fn kill(identity: Option<&Identity>) -> bool {
    identity
        .and_then(|identity| Pidfd::open(identity).ok().flatten())
        .is_some_and(|process| process.signal(Signal::KILL).unwrap_or(false))
}

/// The newest attempt of a job: its supervisor and its first process.
fn newest(state: &StateDir, number: usize) -> (Option<Identity>, Option<Identity>) {
    let job = state.job(&name(number).parse().unwrap());
    let Some(attempt) = records::attempt_numbers(&job).unwrap_or_default().last().copied() else { return (None, None) };
    let start = records::read_attempt(&job, attempt, &mut Vec::new()).start;
    start.map_or((None, None), |start| (start.supervisor, start.process))
}

/// Every process of the machine that carries a mark of this state directory.
fn marked(state: &Path) -> BTreeMap<u32, String> {
    let mark = state.as_os_str().as_encoded_bytes();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(mark.len()).any(|window| window == mark) {
            found.insert(pid, fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " "));
        }
    }
    found
}

/// Children of the agent that have ended and were not waited for.
fn zombies_of(parent: u32) -> Vec<String> {
    let stats =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
            fields.first() == Some(&"Z") && fields.get(1).and_then(|field| field.parse().ok()) == Some(parent)
        })
        .collect()
}

#[expect(clippy::print_stdout, reason = "shown by the runner with the failed test, and by the long form")]
fn say(what: &str) {
    println!("{what}");
}

#[test]
fn a_storm_of_kills_doubles_nothing_loses_nothing_and_leaves_nothing_behind() {
    let storm = Storm::asked();
    say(&format!("storm: seed {}, {} jobs, {} kills", storm.seed, storm.jobs, storm.kills));
    let world = World::new();
    let program = world.home().join("job.sh");
    fs::write(&program, include_str!("storm/job.sh")).unwrap();
    let mut agent = Agent::start(&world, CONFIG);
    for number in 0..storm.jobs {
        launch(&world, &storm, &program, number);
    }
    let mut random = Rng::with_seed(storm.seed);
    let mut killed = 0;
    while killed < storm.kills {
        let number = random.usize(..storm.jobs);
        let (supervisor, process) = newest(world.state(), number);
        killed += match random.u32(..100) {
            0..5 => {
                agent.kill();
                agent = Agent::spawn(&world, CONFIG);
                1
            }
            5..50 => usize::from(kill(process.as_ref())),
            50..75 => usize::from(kill(supervisor.as_ref())),
            75..85 => usize::from(kill(supervisor.as_ref())) + usize::from(kill(process.as_ref())),
            85..90 => usize::from(kill(process.as_ref())) + usize::from(kill(supervisor.as_ref())),
            90..95 => order(&world, "stop", number),
            _ => order(&world, "resume", number),
        };
    }
    // The storm is over: what was stopped is asked for again, and all come to their end.
    wait_until("the agent's answer", || agent.status().is_some());
    let within = Duration::from_secs(60 + storm.kills as u64 / 4);
    wait_long_until("the end of all jobs", within, || {
        (0..storm.jobs).all(|number| {
            let status = world.status(&name(number));
            let class = status.outcome.as_ref().map(|outcome| outcome.class);
            if status.verdict == Verdict::Ended && class != Some(Class::Completed) {
                order(&world, "resume", number);
            }
            class == Some(Class::Completed)
        })
    });
    let attempts = (0..storm.jobs).map(|number| check(&world, &storm, number)).sum::<usize>();
    world.latido(&["orphans"]).ends_with(0);
    wait_until("the end of all zombies", || zombies_of(agent.pid()).is_empty());
    agent.end();
    wait_until("the end of all processes", || marked(world.state().path()).is_empty());
    say(&format!("storm: {attempts} attempts"));
}

/// Starts a job.
fn launch(world: &World, storm: &Storm, program: &Path, number: usize) {
    let own = folder(world, number);
    fs::create_dir(&own).unwrap();
    let kind = KINDS[number % KINDS.len()];
    let (program, own, steps) = (program.to_str().unwrap(), own.to_str().unwrap(), storm.steps.to_string());
    let name = name(number);
    world.latido(&["run", "--detach", "--name", &name, "--", "sh", program, own, &steps, kind]).ends_with(0);
}

/// Gives an order by hand. Whether it is refused depends on where the storm has come to; a crash or rubbish is neither.
fn order(world: &World, order: &str, number: usize) -> usize {
    let ran = world.latido(&[order, &name(number)]);
    assert!(matches!(ran.code, Some(0 | 1 | 3 | 4)), "{order} {number}: {ran:?}");
    0
}

/// Looks for doubles and losses; answers how many attempts there were.
fn check(world: &World, storm: &Storm, number: usize) -> usize {
    let (own, name) = (folder(world, number), name(number));
    let doubled = fs::read_to_string(own.join("doubled")).unwrap_or_default();
    assert_eq!(doubled, "", "{name} ran twice");
    let work: Vec<usize> =
        fs::read_to_string(own.join("work")).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(work, (1..=storm.steps).collect::<Vec<_>>(), "{name} did a step twice, or left one out");
    let attempts = world.attempts(&name);
    for attempt in &attempts {
        world.end(&name, *attempt);
    }
    let mut lines = Vec::new();
    for line in fs::read_to_string(world.state().ledger()).unwrap().lines() {
        let line: LedgerLine = serde_json::from_str(line).unwrap();
        if line.job.as_str() == name {
            lines.push(line.attempt);
        }
    }
    lines.sort_unstable();
    assert_eq!(lines, attempts, "the ledger of {name}");
    attempts.len()
}
