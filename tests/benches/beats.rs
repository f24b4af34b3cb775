//! What it costs to keep beats on the disk, beside row upserts in batches of 1,000, in one run.
//!
//! `cargo bench -p latido-store`. A million workers beat every 30 s, and every second's beats are kept together; costs
//! are CPU time and bytes handed to the system, rounds included.
#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

mod measure;

use std::time::Duration;

use latido_store::{Beat, BeatBatch, SqliteStore, Store};
use measure::{measured, monotonic, shuffled, written};

const WORKERS: u32 = 1_000_000;
const BEATS_A_SECOND: u64 = 33_333;

fn beat(worker: u32, sequence: u64) -> Beat<'static> {
    let at_ms = Some(1_700_000_000_000 + sequence);
    let (epoch, heard_ms) = (u64::from(worker) + 1, 1_000_000 + sequence);
    Beat { name: "", epoch, at_ms, heard_ms, sequence, state: Some("waiting"), active_job: None, errors: 0 }
}

/// CPU and bytes of one beat.
struct Cost {
    nanos: f64,
    bytes: f64,
}

fn cost(count: u64, work: impl FnOnce()) -> Cost {
    let bytes = written();
    let (spent, ()) = measured(work);
    Cost { nanos: measure::nanos_each(spent, count), bytes: (written() - bytes) as f64 / count as f64 }
}

/// Three minutes of beats, kept each second, with the rounds that the store wants.
fn kept(store: &mut SqliteStore, latency: &mut Vec<Duration>) -> Cost {
    const SECONDS: u64 = 180;
    const STEP: u32 = WORKERS.div_ceil(60);
    let mut round = None;
    cost(SECONDS * BEATS_A_SECOND, || {
        for second in 0..SECONDS {
            let rounds = second * BEATS_A_SECOND..(second + 1) * BEATS_A_SECOND;
            let mut beats: Vec<Beat<'_>> = rounds.map(|round| beat(shuffled(round, WORKERS), second + 1)).collect();
            let end = round.map(|first: u32| (first + STEP).min(WORKERS));
            beats.extend((round.unwrap_or(0)..end.unwrap_or(0)).map(|worker| beat(worker, second + 1)));
            let start = monotonic();
            let kept = store.keep_beats(&BeatBatch { beats, ends_round: end == Some(WORKERS) }).unwrap();
            latency.push(monotonic() - start);
            round = end.filter(|end| *end < WORKERS).or(kept.wants_round.then_some(0));
        }
    })
}

/// The same beats as rows that are replaced in place, a thousand in a transaction.
fn upserted(connection: &rusqlite::Connection) -> Cost {
    const COUNT: u64 = 400_000;
    let sql = "insert into beats values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) on conflict (epoch) do update set
               heard_ms = excluded.heard_ms, at_ms = excluded.at_ms, sequence = excluded.sequence";
    let write = |rounds: std::ops::Range<u64>, worker: &dyn Fn(u64) -> u32| {
        connection.execute_batch("begin immediate").unwrap();
        let mut statement = connection.prepare_cached(sql).unwrap();
        for round in rounds {
            let beat = beat(worker(round), round + 1);
            let (heard, at) = (beat.heard_ms.cast_signed(), beat.at_ms.unwrap().cast_signed());
            let (epoch, sequence) = (beat.epoch.cast_signed(), beat.sequence.cast_signed());
            statement.execute(rusqlite::params![epoch, heard, at, sequence, "alive", 180_000, beat.state, 0]).unwrap();
        }
        drop(statement);
        connection.execute_batch("commit").unwrap();
    };
    write(0..WORKERS.into(), &|round| u32::try_from(round).unwrap());
    cost(COUNT, || {
        for batch in 0..COUNT / 1000 {
            write(batch * 1000..(batch + 1) * 1000, &|round| shuffled(round, WORKERS));
        }
    })
}

fn main() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    println!("beats of 1,000,000 workers kept on the disk; load {}", measure::load());
    let mut store = SqliteStore::open(&directory.path().join("latido.db")).unwrap();
    let mut latency = Vec::new();
    let ours = kept(&mut store, &mut latency);
    latency.sort();
    println!("a beat that is kept: {:.0} ns of CPU, {:.0} B written", ours.nanos, ours.bytes);
    let at = |share: usize| latency[(latency.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("  a second's beats are on the disk after: p50 {:.1} ms, p99 {:.1} ms", at(50), at(99));
    let connection = rusqlite::Connection::open(directory.path().join("rows.db")).unwrap();
    let settings = "pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -262144;
         create table beats (epoch integer primary key, heard_ms integer, at_ms integer, sequence integer,
                             verdict text, ttl_ms integer, state text, errors integer)";
    connection.execute_batch(settings).unwrap();
    let peer = upserted(&connection);
    println!("  beside it, a row upserted, 1,000 in a transaction: {:.0} ns of CPU, {:.0} B", peer.nanos, peer.bytes);
    println!(
        "  that is 1/{:.0} of the CPU (target 1/15) and 1/{:.0} of the bytes (target 1/40)",
        peer.nanos / ours.nanos,
        peer.bytes / ours.bytes
    );
}
