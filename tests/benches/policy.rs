//! Figures of the policy with a million workers, beside simpler ways to keep deadlines, in one run.
//!
//! `cargo bench -p latido-policy`. Times are of the CPU, so that other programs on the machine change them little; the
//! clock of the policy is moved by the benchmark itself.
#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use latido_policy::{
    Action, Epoch, Event, FoundWorker, GroupId, GroupSettings, Moment, Policy, RegistryAction, RegistryEvent, Speaker,
    Ticket, Verdict, WorkerId, WorkerLease, WorkerReport, WorkerStanding,
};

mod measure;

use measure::{measured, nanos_each, resident, spread};

const WORKERS: u32 = 1_000_000;
const GROUP: GroupId = GroupId(0);
/// Each beats every 30 s.
const BEATS_A_SECOND: u64 = 33_333;
const NANOS: u64 = 1_000_000_000;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Its own ttl for each: 180 s and up to 18 s more.
fn ttl(worker: u32) -> Duration {
    Duration::from_millis(180_000 + u64::from(worker % 18_000))
}

fn row(worker: u32, heard_at: Moment) -> FoundWorker {
    let lease = WorkerLease::new(seconds(30), ttl(worker), seconds(60));
    FoundWorker {
        group: GROUP,
        instance: Epoch(0),
        epoch: Epoch(u64::from(worker) + 1),
        lease: lease.unwrap_or_else(|| unreachable!("180 s is more than 30 s")),
        registered_at: heard_at,
        heard_at,
        standing: WorkerStanding::Active,
        recorded: Verdict::Alive,
        report: WorkerReport { sequence: Some(1), ..WorkerReport::default() },
    }
}

/// A policy with all workers, heard over the last 30 s.
fn filled(now: Moment) -> Policy {
    let mut policy = Policy::new();
    let one = NonZeroU32::MIN;
    let lease = row(0, now).lease;
    let settings = GroupSettings { capacity: None, claims_max: one, max_pickups: one, lease };
    policy.handle_event(Event::Registry(RegistryEvent::GroupAdded { group: GROUP, settings, instance: Epoch(0) }), now);
    for worker in 0..WORKERS {
        let found = row(worker, now.before(Duration::from_nanos(u64::from(worker) * NANOS / BEATS_A_SECOND)));
        policy.handle_event(Event::Registry(RegistryEvent::WorkerRestored { worker: WorkerId(worker), found }), now);
    }
    policy
}

fn shuffled(round: u64) -> u32 {
    measure::shuffled(round, WORKERS)
}

fn beat(worker: u32) -> Event {
    let from = Speaker { worker: WorkerId(worker), epoch: Some(Epoch(u64::from(worker) + 1)) };
    Event::Registry(RegistryEvent::BeatHeard {
        ticket: Ticket(u64::from(worker)),
        from,
        report: WorkerReport::default(),
    })
}

fn take(policy: &mut Policy) -> usize {
    std::iter::from_fn(|| policy.poll_action()).map(black_box).count()
}

/// Ten simulated minutes of beats, in steps of a tick as the driver makes them. Answers what a beat cost in each minute,
/// all told and in its timer part.
fn beats(policy: &mut Policy, start: Moment) -> (Moment, Vec<f64>, Vec<f64>) {
    const COUNT: u64 = 2_000_000;
    const STEP: u64 = 280;
    let (mut now, mut all, mut timers) = (start, Vec::new(), Vec::new());
    for minute in 0..10 {
        let mut timer = Duration::ZERO;
        let (spent, ()) = measured(|| {
            for step in minute * COUNT / STEP..(minute + 1) * COUNT / STEP {
                now = start.after(Duration::from_nanos(step * STEP * NANOS / BEATS_A_SECOND));
                let rounds = step * STEP..(step + 1) * STEP;
                black_box(policy.registry().known_count(rounds.clone().map(|round| WorkerId(shuffled(round)))));
                for round in rounds {
                    policy.handle_event(beat(shuffled(round)), now);
                    take(policy);
                }
                let (spent, dead) = measured(|| {
                    policy.handle_timeout(now);
                    take(policy)
                });
                timer += spent;
                assert_eq!(dead, 0, "everybody beats");
            }
        });
        all.push(nanos_each(spent, COUNT));
        timers.push(nanos_each(timer, COUNT));
    }
    (now, all, timers)
}

/// The same beats with every deadline in a tree, moved by each beat.
fn tree_peer() -> (f64, f64) {
    let before = resident();
    let mut deadlines: Vec<u64> = (0..WORKERS).map(|worker| u64::from(worker) * 30_000).collect();
    let mut tree: BTreeSet<(u64, u32)> = (0..).zip(&deadlines).map(|(worker, &due)| (due, worker)).collect();
    let bytes = (resident() - before) as f64 / f64::from(WORKERS);
    const COUNT: u64 = 2_000_000;
    let (spent, ()) = measured(|| {
        for round in 0..COUNT {
            let worker = shuffled(round);
            let due = &mut deadlines[worker as usize];
            tree.remove(&(*due, worker));
            *due = 180 * NANOS + round * 30_000;
            tree.insert((*due, worker));
        }
    });
    (nanos_each(spent, COUNT), bytes)
}

/// The least that a beat can cost on this machine at this moment: two words stored in a record of two lines of the cache,
/// in the same order.
fn floor() -> f64 {
    const COUNT: u64 = 20_000_000;
    let mut records = vec![[0_u64; 13]; WORKERS as usize];
    let (spent, ()) = measured(|| {
        for round in 0..COUNT {
            let record = &mut records[shuffled(round) as usize];
            record[0] = round;
            record[12] += 1;
        }
    });
    black_box(&records);
    nanos_each(spent, COUNT)
}

/// A walk over all deadlines, as a table without an index is swept.
fn walk_peer() -> Duration {
    let deadlines: Vec<u64> = (0..WORKERS).map(|worker| u64::from(worker) * 30_000).collect();
    let (spent, _) = measured(|| black_box(&deadlines).iter().filter(|&&due| due < black_box(3_000_000)).count());
    spent
}

/// Declares `count` workers dead that are due at one moment, all others being alive, and answers what that costs.
fn sweep(due: Moment, count: u32) -> Duration {
    let mut policy = Policy::new();
    let filled_at = due.before(seconds(30));
    let lease = row(0, due).lease;
    let settings = GroupSettings { capacity: None, claims_max: NonZeroU32::MIN, max_pickups: NonZeroU32::MIN, lease };
    let added = RegistryEvent::GroupAdded { group: GROUP, settings, instance: Epoch(0) };
    policy.handle_event(Event::Registry(added), filled_at);
    for worker in 0..WORKERS {
        let is_silent = (u64::from(worker) * 607_363) % u64::from(WORKERS) < u64::from(count);
        let heard_at = if is_silent { due.before(ttl(worker)) } else { filled_at };
        let found = row(worker, heard_at);
        policy.handle_event(
            Event::Registry(RegistryEvent::WorkerRestored { worker: WorkerId(worker), found }),
            filled_at,
        );
    }
    policy.handle_timeout(due.before(Duration::from_millis(1)));
    assert_eq!(take(&mut policy), 0, "nobody is due before the moment");
    let (spent, actions) = measured(|| {
        let (now, mut actions) = (due.after(Duration::from_millis(9)), 0);
        while policy.poll_timeout().is_some_and(|next| next <= now) {
            policy.handle_timeout(now);
            actions += take(&mut policy);
        }
        actions
    });
    assert!(actions > 2 * count as usize, "a verdict and a reap for each, and one report");
    spent
}

/// How late the deaths among beating workers are recorded: every thousandth falls silent.
fn lateness(policy: &mut Policy, start: Moment) -> Vec<Duration> {
    let is_silent = |worker: u32| worker % 1000 == 7;
    let (mut now, mut round, mut late) = (start, 0_u64, Vec::new());
    let end = start.after(seconds(230));
    while let Some(next) = policy.poll_timeout().filter(|&next| next < end) {
        let beats = next.since(start).as_nanos() as u64 * BEATS_A_SECOND / NANOS;
        for round in round..beats.max(round) {
            let worker = shuffled(round);
            if !is_silent(worker) {
                policy.handle_event(beat(worker), start.after(Duration::from_nanos(round * NANOS / BEATS_A_SECOND)));
            }
        }
        (round, now) = (beats.max(round), now.max(next));
        let (spent, found) = measured(|| {
            policy.handle_timeout(now);
            std::iter::from_fn(|| policy.poll_action()).filter_map(death).collect::<Vec<_>>()
        });
        late.extend(found.into_iter().map(|(worker, heard_at)| {
            assert!(is_silent(worker.0), "a false death");
            now.since(heard_at.after(ttl(worker.0))) + spent
        }));
    }
    late.sort();
    assert_eq!(late.len(), 1000, "every death is found");
    late
}

fn death(action: Action) -> Option<(WorkerId, Moment)> {
    let Action::Registry(RegistryAction::ReapWorker { worker, heard_at, .. }) = action else { return None };
    Some((worker, heard_at))
}

fn micros(length: Duration) -> f64 {
    length.as_secs_f64() * 1e6
}

fn main() {
    let now = Moment::ORIGIN.after(seconds(1_000_000));
    let before = resident();
    let (start, mut policy) = measured(|| filled(now));
    let bytes = (resident() - before) as f64 / f64::from(WORKERS);
    println!("1,000,000 workers, each with its own ttl; load {}", measure::load());
    println!("memory of a subject: {bytes:.1} B (target 128)");
    println!("taken in at the start: {:.1} ns each", nanos_each(start, WORKERS.into()));
    let (now, all, timer) = beats(&mut policy, now);
    let (all, timer) = (spread(all, "ns"), spread(timer, "ns"));
    println!("a beat all told: {all} (target 120); its timer part: {timer} (target 50)");
    println!("  beside it, two words stored in the same order: {:.1} ns", floor());
    let (tree, tree_bytes) = tree_peer();
    println!("  beside it, a deadline moved in a BTreeSet: {tree:.1} ns, {tree_bytes:.1} B");
    for count in [100, 1_000, 10_000, 100_000] {
        let sweeps = (0..5).map(|_| micros(sweep(now, count))).collect();
        println!("a sweep with {count} due: {} (target for 100: 100 µs; for 100,000: 2 s)", spread(sweeps, "µs"));
    }
    println!("  beside it, a walk over all deadlines in an array: {:.1} µs", micros(walk_peer()));
    let late = lateness(&mut policy, now);
    let at = |share: usize| late[(late.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!(
        "lateness of 1,000 deaths: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms (target p99 25 ms)",
        at(50),
        at(99),
        at(100)
    );
}
