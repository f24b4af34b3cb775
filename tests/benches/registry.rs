//! A million workers through the driver and the store: the start, verdicts in real time, and a mass death.
//!
//! `cargo bench -p latido-driver`. It takes about a minute, half of it to make the rows. Lateness is read from the
//! clock, so other programs on the machine change it.
#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

mod measure;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use latido_driver::{Driver, Fact, Reading};
use latido_protocol::WallTime;
use latido_protocol::registry::{Question, WorkerBeat};
use latido_store::{Batch, Beat, BeatBatch, BeatRow, GroupRow, RegistryWrite, SqliteStore, Store, WorkerRow};
use measure::{cpu, monotonic, shuffled};

const WORKERS: u32 = 1_000_000;
const BEATS_A_SECOND: u64 = 33_333;
const TTL_MS: u64 = 180_000;
/// How long was listened when the agent before was killed.
const LISTENED_MS: u64 = 1_000_000_000;
/// Where the wall clock stood then; the next agent starts a minute later.
const KILLED_MS: u64 = 1_700_000_000_000;
const OUTAGE: Duration = Duration::from_secs(60);
/// A thousand workers die between these two, in milliseconds after the start.
const RARE_MS: (u64, u64) = (8_000, 20_000);
/// A hundred thousand die at this one.
const MASS_MS: u64 = 25_000;
/// On a machine with much else to do they take longer than the target, and are waited for this long.
const MASS_FOR_MS: u64 = 60_000;

/// When a worker's lease runs out, in milliseconds after the start; `None` beats on.
fn dies_ms(worker: u32) -> Option<u64> {
    match worker % 1000 {
        7 => Some(RARE_MS.0 + u64::from(worker / 1000) * (RARE_MS.1 - RARE_MS.0) / 1000),
        number if number % 10 == 3 => Some(MASS_MS),
        _ => None,
    }
}

fn heard_ms(worker: u32) -> u64 {
    let silent = dies_ms(worker).map_or(u64::from(worker) * 30_000 / u64::from(WORKERS), |dies| TTL_MS - dies);
    LISTENED_MS - silent
}

fn name(worker: u32) -> String {
    format!("worker-{worker:07}")
}

fn row(worker: u32) -> WorkerRow {
    WorkerRow {
        name: name(worker),
        group: "executor".to_owned(),
        epoch: u64::from(worker) + 1,
        standing: "active".to_owned(),
        verdict: "alive".to_owned(),
        interval_ms: 30_000,
        ttl_ms: TTL_MS,
        start_ms: 60_000,
        host: Some("pod-1".to_owned()),
        pid: Some(42),
        registered_ms: KILLED_MS,
        beat: BeatRow { sequence: 1, state: Some("waiting".parse().unwrap()), ..BeatRow::default() },
        ..WorkerRow::default()
    }
}

/// The rows of all workers, and then their newest beats.
fn fill(path: &Path) {
    let mut store = SqliteStore::open(path).unwrap();
    let counters = [
        RegistryWrite::Epoch(u64::from(WORKERS) + 1),
        RegistryWrite::Listened { listened_ms: LISTENED_MS, baseline_ms: 0 },
    ];
    let group = RegistryWrite::Group(GroupRow { name: "executor".to_owned(), instance: 0 });
    let registry = counters.into_iter().chain([group]).collect();
    store.commit(&Batch { registry, ..Batch::default() }).unwrap();
    let all: Vec<u32> = (0..WORKERS).collect();
    for some in all.chunks(50_000) {
        let registry = some.iter().map(|worker| RegistryWrite::Worker(row(*worker))).collect();
        store.commit_quick(&Batch { registry, ..Batch::default() }).unwrap();
    }
    store.checkpoint().unwrap();
}

fn keep_beats(path: &Path) {
    let mut store = SqliteStore::open(path).unwrap();
    let named: Vec<(u32, String)> = (0..WORKERS).map(|worker| (worker, name(worker))).collect();
    for some in named.chunks(33_333) {
        let beats = some.iter().map(|(worker, name)| Beat {
            name,
            epoch: u64::from(*worker) + 1,
            at_ms: Some(KILLED_MS),
            heard_ms: heard_ms(*worker),
            sequence: 2,
            state: Some("waiting"),
            active_job: None,
            errors: 0,
        });
        store.keep_beats(&BeatBatch { beats: beats.collect(), ends_round: false }).unwrap();
    }
}

fn reading() -> Reading {
    let now = monotonic();
    let wall = u64::try_from((now + OUTAGE).as_millis()).unwrap() + KILLED_MS;
    Reading { monotonic: now, boottime: now, wall: WallTime::from_millis(wall) }
}

fn beat(worker: u32, ticket: u64) -> Fact {
    let beat = WorkerBeat {
        worker: name(worker).parse().unwrap(),
        epoch: Some(u64::from(worker) + 1),
        sequence: None,
        state: Some("waiting".parse().unwrap()),
        active_job: None,
        errors: 0,
    };
    Fact::Asked { ticket, question: Box::new(Question::Beat(beat)) }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = monotonic();
    let done = work();
    (monotonic() - start, done)
}

/// The start on rows and beats of a million, beside a load of the rows alone.
fn started(path: &Path) -> Driver<SqliteStore> {
    let (bare, rows) = timed(|| SqliteStore::open(path).unwrap().registry().unwrap());
    assert_eq!(rows.workers.len(), WORKERS as usize);
    drop(rows);
    keep_beats(path);
    let (start, driver) = timed(|| Driver::new(SqliteStore::open(path).unwrap(), Duration::from_secs(300)).unwrap());
    println!(
        "a start with 1,000,000 workers: {:.2} s; the bare load of their rows: {:.2} s; {:.2} × (target 1.5)",
        start.as_secs_f64(),
        bare.as_secs_f64(),
        start.as_secs_f64() / bare.as_secs_f64()
    );
    driver
}

/// What came out of the steps in real time.
#[derive(Default)]
struct Seen {
    /// the journal's last entry after a step, and when that was
    recorded: Vec<(u64, Duration)>,
    beats: u64,
    busy: Duration,
    longest: Duration,
}

/// Feeds beats as they come, and steps when the driver wants to.
fn run(driver: &mut Driver<SqliteStore>, start: Duration, until_ms: u64, seen: &mut Seen) {
    let end = start + Duration::from_millis(until_ms);
    loop {
        let now = monotonic();
        if now >= end {
            return;
        }
        let heard = (now - start).as_nanos() as u64 * BEATS_A_SECOND / 1_000_000_000;
        let workers = (seen.beats..heard).map(|round| (round, shuffled(round, WORKERS)));
        let facts = workers.filter(|(_, worker)| dies_ms(*worker).is_none());
        let facts: Vec<Fact> = facts.map(|(round, worker)| beat(worker, round)).collect();
        seen.beats = heard;
        let before = cpu();
        let output = driver.step(facts, reading());
        assert!(output.store_error.is_none(), "{:?}", output.store_error);
        let done = monotonic();
        seen.busy += cpu() - before;
        seen.longest = seen.longest.max(done - now);
        seen.recorded.push((output.last_sequence, done));
        driver.rest(reading());
        // Beats come in one by one; the driver takes those of a few milliseconds at once.
        let pause = output.wake_in.min(Duration::from_millis(4)).min(end.saturating_sub(done));
        let _slept_less = rustix::thread::nanosleep(&rustix::thread::Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(pause.subsec_nanos()),
        });
    }
}

/// When each death was recorded, by the worker.
fn deaths(driver: &mut Driver<SqliteStore>, after: u64, seen: &Seen) -> BTreeMap<u32, Duration> {
    let entries = driver.store().entries_after(after, &["transition".to_owned()], usize::MAX).unwrap();
    let moment = |sequence: u64| {
        let step = seen.recorded.partition_point(|(last, _)| *last < sequence);
        seen.recorded[step].1
    };
    let worker = |subject: Option<String>| subject.unwrap().strip_prefix("worker-").unwrap().parse().unwrap();
    entries.into_iter().map(|entry| (worker(entry.subject), moment(entry.sequence))).collect()
}

fn main() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("latido.db");
    fill(&path);
    println!("1,000,000 workers through driver and store; load {}", measure::load());
    let mut driver = started(&path);
    let before = driver.store().last_sequence().unwrap();
    let start = monotonic();
    driver.step(Vec::new(), reading());
    let mut seen = Seen::default();
    run(&mut driver, start, MASS_MS - 1_000, &mut seen);
    println!(
        "a beat through the driver, kept by the store: {:.0} ns of CPU; the longest step {:.1} ms",
        seen.busy.as_secs_f64() * 1e9 / seen.beats as f64,
        seen.longest.as_secs_f64() * 1e3
    );
    let rare = deaths(&mut driver, before, &seen);
    let expected: Vec<u32> = (0..WORKERS).filter(|worker| worker % 1000 == 7).collect();
    assert_eq!(rare.keys().copied().collect::<Vec<_>>(), expected, "every death is found, and none is false");
    let late = rare
        .iter()
        .map(|(worker, recorded)| (*recorded - start).as_secs_f64() * 1e3 - dies_ms(*worker).unwrap() as f64);
    let mut late: Vec<f64> = late.collect();
    late.sort_by(f64::total_cmp);
    let at = |share: usize| late[(late.len() - 1) * share / 1000];
    println!(
        "1,000 deaths under 33,333 beats/s are recorded late by: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms (target p99 25)",
        at(500),
        at(990),
        at(1000)
    );
    let after = driver.store().last_sequence().unwrap();
    let (busy, beats) = (seen.busy, seen.beats);
    let mut mass = BTreeMap::new();
    for until_ms in (MASS_MS + 4_000..MASS_MS + MASS_FOR_MS).step_by(2_000) {
        run(&mut driver, start, until_ms, &mut seen);
        mass = deaths(&mut driver, after, &seen);
        if mass.len() >= WORKERS as usize / 10 {
            break;
        }
    }
    assert_eq!(mass.len(), WORKERS as usize / 10, "every one of them is found");
    let last = mass.values().max().unwrap();
    println!(
        "100,000 deaths at once are recorded after {:.2} s (target 2 s); with {} beats meanwhile it took {:.2} s of CPU",
        (*last - start).as_secs_f64() - MASS_MS as f64 / 1e3,
        seen.beats - beats,
        (seen.busy - busy).as_secs_f64()
    );
}
