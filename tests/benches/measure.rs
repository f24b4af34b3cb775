//! What the benchmarks of crates measure with: clocks, memory, bytes written, and how figures are told.
#![expect(dead_code, reason = "each benchmark uses a part of it")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Of every machine that this runs on.
const PAGE_BYTES: u64 = 4096;

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// CPU time of this process: other programs on the machine change it little.
pub(crate) fn cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

pub(crate) fn monotonic() -> Duration {
    read(ClockId::Monotonic)
}

/// The CPU time of some work.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = cpu();
    let done = work();
    (cpu() - start, done)
}

/// Bytes of memory that this process has in use.
pub(crate) fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE_BYTES
}

/// Bytes that this process has handed to the system in writes.
pub(crate) fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or(0)
}

pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

pub(crate) fn nanos_each(length: Duration, count: u64) -> f64 {
    length.as_secs_f64() * 1e9 / count as f64
}

/// Median and least, as text: neighbours on the machine add to a cost, and never take from it.
pub(crate) fn spread(mut costs: Vec<f64>, unit: &str) -> String {
    costs.sort_by(f64::total_cmp);
    format!("{:.1} {unit} (least {:.1})", costs[costs.len() / 2], costs[0])
}

/// Numbers below `count` in an order in which no cache helps.
pub(crate) fn shuffled(round: u64, count: u32) -> u32 {
    ((round * 607_363) % u64::from(count)) as u32
}
