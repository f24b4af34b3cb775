//! `cargo xtask simulate`: many seeds, or one of them explained.

use std::process::ExitCode;
use std::time::Duration;

/// Seeds between two lines that tell how far it has come.
const TOLD_EVERY: u64 = 10_000;

/// Failing seeds after which no more are looked for.
const FAILURES_MAX: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    if let Some(seed) = number("--seed") {
        return explain(seed);
    }
    if let Some(jobs) = number("--steady") {
        let days = number("--days").unwrap_or(1);
        let run = latido_simulation::steady(usize::try_from(jobs).unwrap_or(1), Duration::from_secs(86_400 * days));
        say(&format!("{} passes, {} s of subjects, {:?}", run.steps, run.subject_time.as_secs(), run.failure));
        return ExitCode::SUCCESS;
    }
    let from = number("--from").unwrap_or(0);
    many(from, number("--seeds").unwrap_or(100_000))
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
