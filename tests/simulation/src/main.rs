//! `cargo xtask simulate`: many seeds, or one of them explained.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

const DAY: Duration = Duration::from_secs(86_400);

/// Seeds between two lines that tell how far it has come.
const TOLD_EVERY: u64 = 10_000;

/// Failing seeds after which no more are looked for.
const FAILURES_MAX: usize = 20;

/// Runs the driver through worlds of faults, each made from its seed.
#[derive(Debug, clap::Parser)]
struct Options {
    /// How many seeds
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Tell the story of this one alone; of one that fails the shortest that can be found
    #[arg(long, conflicts_with_all = ["seeds", "from", "steady"])]
    seed: Option<u64>,
    /// Run so many jobs without any fault, to measure the speed
    #[arg(long, value_name = "JOBS", conflicts_with_all = ["seeds", "from"])]
    steady: Option<usize>,
    /// For so many days of theirs
    #[arg(long, default_value_t = 1, requires = "steady")]
    days: u32,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(seed) = options.seed {
        return explain(seed);
    }
    if let Some(jobs) = options.steady {
        let run = latido_simulation::steady(jobs, DAY * options.days);
        say(&format!("{} passes, {} s of subjects, {:?}", run.steps, run.subject_time.as_secs(), run.failure));
        return ExitCode::SUCCESS;
    }
    many(options.from, options.seeds)
}

fn explain(seed: u64) -> ExitCode {
    match latido_simulation::explain(seed) {
        Some(story) => {
            say(&story);
            ExitCode::FAILURE
        }
        None => {
            say(&format!("{}\nseed {seed} holds", latido_simulation::transcript(seed).join("\n")));
            ExitCode::SUCCESS
        }
    }
}

fn many(from: u64, count: u64) -> ExitCode {
    let (mut failing, mut steps, mut subject_time) = (Vec::new(), 0, Duration::ZERO);
    for seed in from..from + count {
        let run = latido_simulation::run(seed);
        steps += run.steps;
        subject_time += run.subject_time;
        if let Some(failure) = run.failure {
            say(&format!("seed {seed}: {failure}"));
            failing.push(seed);
        }
        if failing.len() >= FAILURES_MAX {
            break;
        }
        if (seed - from + 1).is_multiple_of(TOLD_EVERY) {
            say(&format!("{} seeds, {steps} passes, {} h of subjects", seed - from + 1, subject_time.as_secs() / 3600));
        }
    }
    match failing.first() {
        None => {
            say(&format!("{count} seeds hold: {steps} passes, {} h of subjects", subject_time.as_secs() / 3600));
            ExitCode::SUCCESS
        }
        Some(first) => {
            say(&format!("{} seeds fail; `cargo xtask simulate --seed {first}` explains the first", failing.len()));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "what it has to say is its output")]
fn say(line: &str) {
    println!("{line}");
}
