//! The real driver, and with it the real policy, in a simulated world: hosts, boots, processes, supervisors, jobs, files,
//! a store and a strategy, all of which can fail, beside a reference model that shares no logic with what it judges.
//!
//! Nothing here reads a clock, a file or the environment, and all chance comes from the seed: the same seed gives the same
//! transcript.

mod agent;
mod attempt;
mod checks;
mod commands;
mod disk;
mod faults;
mod host;
mod jobs;
mod journal;
mod launch;
mod lives;
mod look;
mod measure;
mod random;
mod reference;
mod shortest;
mod store;
mod supervisor;
mod task;
mod told;
mod transcript;
mod truth;
mod weather;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

pub use world::Failure;

use faults::Planned;
use lives::Lives;
use random::Random;
use world::World;

/// When the faults stop, everything has this long to come to rest.
const CALM_FOR: Duration = Duration::from_secs(900);

/// What came of one seed.
#[derive(Debug)]
pub struct Run {
    /// what did not hold
    pub failure: Option<Failure>,
    /// passes of the driver
    pub steps: u64,
    /// orders that it gave, by kind
    pub orders: BTreeMap<&'static str, u64>,
    /// time awake of all subjects together
    pub subject_time: Duration,
}

/// One run with everything that it told.
struct Attempted {
    failure: Option<Failure>,
    transcript: Vec<String>,
    steps: u64,
    orders: BTreeMap<&'static str, u64>,
    subject_time: Duration,
}

/// Runs one seed.
#[must_use]
pub fn run(seed: u64) -> Run {
    let Attempted { failure, steps, orders, subject_time, .. } = attempt_run(seed, plan(seed), false, None);
    Run { failure, steps, orders, subject_time }
}

/// Runs one seed and tells everything that happened, a line each.
#[must_use]
pub fn transcript(seed: u64) -> Vec<String> {
    attempt_run(seed, plan(seed), true, None).transcript
}

/// Runs one seed with its agents recorded, and replays each of their lives. Answers how many decisions were made again.
///
/// # Errors
/// A replay decides otherwise: says which decision is the first.
pub fn replay(seed: u64) -> Result<usize, String> {
    let lives = Lives::default();
    attempt_run(seed, plan(seed), false, Some(lives.clone()));
    lives.replay()
}

/// For a seed that fails: its seed, what did not hold, and the shortest transcript that could be found. `None` for a seed
/// that does not fail.
#[must_use]
pub fn explain(seed: u64) -> Option<String> {
    let failure = run(seed).failure?;
    let fails_alike = |plan: &[Planned]| {
        let Attempted { failure: other, .. } = attempt_run(seed, plan.to_vec(), false, None);
        other.is_some_and(|other| other.check == failure.check)
    };
    let plan = shortest::shorten(plan(seed), fails_alike);
    let Attempted { failure, transcript, .. } = attempt_run(seed, plan.clone(), true, None);
    let failure = failure.map(|failure| failure.to_string()).unwrap_or_default();
    let settings = jobs::specs(seed).iter().map(|spec| format!("{spec:?}\n")).collect::<String>();
    Some(format!("seed {seed}: {failure}\n{settings}{} fault(s) are left\n{}\n", plan.len(), transcript.join("\n")))
}

/// Lets `jobs` steady jobs beat every 30 s for `length`, without faults, and answers as for a seed: for the measure of
/// speed.
#[must_use]
pub fn steady(jobs: usize, length: Duration) -> Run {
    let specs: Vec<_> = (0..jobs).map(jobs::steady).collect();
    let mut world = World::new(0, specs, Vec::new(), length, false);
    world.run(length);
    let subject_time = length * u32::try_from(jobs).unwrap_or(u32::MAX);
    Run { failure: world.failure.take(), steps: world.steps, orders: world.orders, subject_time }
}

fn calm_at(seed: u64) -> Duration {
    Random::new(seed, "length").seconds(60, 5400)
}

fn plan(seed: u64) -> Vec<Planned> {
    faults::plan(seed, jobs::specs(seed).len(), calm_at(seed))
}

fn attempt_run(seed: u64, plan: Vec<Planned>, tells: bool, lives: Option<Lives>) -> Attempted {
    let (specs, calm_at) = (jobs::specs(seed), calm_at(seed));
    let count = u32::try_from(specs.len()).unwrap_or(u32::MAX);
    let mut world = World::new(seed, specs, plan, calm_at, tells);
    world.lives = lives;
    let ran = catch_unwind(AssertUnwindSafe(|| {
        world.run(calm_at);
        world.become_calm();
        world.run(calm_at + CALM_FOR);
        if world.failure.is_none() {
            world.check_rest();
        }
    }));
    if ran.is_err() {
        world.fail("nothing panics", "the driver, or the simulation, panicked");
    }
    Attempted {
        failure: world.failure.take(),
        transcript: world.take_transcript(),
        steps: world.steps,
        orders: std::mem::take(&mut world.orders),
        subject_time: (calm_at + CALM_FOR) * count,
    }
}
