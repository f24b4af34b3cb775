//! Seeds that hold, and what the simulation promises of itself.

use std::collections::BTreeMap;

use latido_simulation::{explain, replay, run, transcript};

/// Seeds that run with every test.
const SEEDS: u64 = 2000;

/// They run in this many tests, so that a machine with more cores needs less time.
const PARTS: u64 = 4;

/// Fails with the story of the first seed that fails.
#[track_caller]
fn hold(seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        if let Some(story) = explain(seed) {
            panic!("{story}\nrun `cargo xtask simulate --seed {seed}`, and add {seed} to tests/simulation/seeds.txt");
        }
    }
}

fn part(number: u64) -> impl Iterator<Item = u64> {
    (0..SEEDS).filter(move |seed| seed % PARTS == number)
}

#[test]
fn seeds_that_failed_before_hold() {
    let seeds = include_str!("../seeds.txt").lines().filter(|line| !line.starts_with('#'));
    hold(seeds.filter_map(|line| line.split_whitespace().next()?.parse().ok()));
}

#[test]
fn two_thousand_seeds_hold_first_part() {
    hold(part(0));
}

#[test]
fn two_thousand_seeds_hold_second_part() {
    hold(part(1));
}

#[test]
fn two_thousand_seeds_hold_third_part() {
    hold(part(2));
}

#[test]
fn two_thousand_seeds_hold_fourth_part() {
    hold(part(3));
}

#[test]
fn the_same_seed_gives_the_same_transcript_twice() {
    for seed in 0..20 {
        let first = transcript(seed);
        assert!(first.len() > 10, "seed {seed} tells nothing");
        assert_eq!(first, transcript(seed), "seed {seed}");
    }
    assert_ne!(transcript(1), transcript(2));
}

/// Seeds whose agents are recorded: each is replayed from the texts of its lines.
const RECORDED_SEEDS: u64 = 200;

#[test]
fn every_life_of_every_agent_decides_the_same_when_it_is_replayed() {
    let mut count = 0;
    for seed in 0..RECORDED_SEEDS {
        count += replay(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(count > 20 * usize::try_from(RECORDED_SEEDS).unwrap(), "only {count} decisions were made");
}

/// A world in which nothing is ever ordered would hold as well.
#[test]
fn every_kind_of_order_is_given_again_and_again() {
    let mut orders: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..600 {
        for (kind, count) in run(seed).orders {
            *orders.entry(kind).or_default() += count;
        }
    }
    for kind in ["launch", "ask a strategy", "end an attempt", "end an orphan", "record a loss"] {
        assert!(orders.get(kind).is_some_and(|count| *count >= 5), "{kind}: {orders:?}");
    }
}

#[test]
fn the_reference_model_stays_small() {
    let lines = include_str!("../src/reference.rs").lines().count();
    assert!(lines <= 300, "the reference model has {lines} lines; one that is as large as the policy proves nothing");
}
