//! A clock that stands and randomness that is known: what a guest sees of WASI's where its answers are to be the same each
//! time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wasmtime_wasi::random::Deterministic;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

/// Bytes of randomness before they begin again.
const RANDOM: usize = 64 << 10;

/// What a plugin is told of time and chance where both are fixed. Each of its instances is told the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// The wall time, in milliseconds since the Unix epoch. It stands; the monotonic clock moves on by a microsecond with
    /// each look, so that who waits for it ends.
    pub now_ms: u64,
    /// What the randomness is made from.
    pub seed: u64,
}

impl Fixed {
    pub(crate) fn set(self, wasi: &mut WasiCtxBuilder) {
        let mut state = self.seed;
        let bytes: Vec<u8> = std::iter::repeat_with(|| mixed(&mut state)).take(RANDOM / 8).flatten().collect();
        wasi.wall_clock(Standing(Duration::from_millis(self.now_ms)))
            .monotonic_clock(Counting(AtomicU64::new(0)))
            .insecure_random_seed(u128::from(self.seed))
            .insecure_random(Deterministic::new(bytes.clone()))
            .secure_random(Deterministic::new(bytes));
    }
}

/// The next eight bytes of a sequence (splitmix64: every bit of the seed moves every bit).
fn mixed(state: &mut u64) -> [u8; 8] {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

struct Standing(Duration);

impl HostWallClock for Standing {
    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

struct Counting(AtomicU64);

impl HostMonotonicClock for Counting {
    fn resolution(&self) -> u64 {
        1_000
    }

    fn now(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_its_randomness_and_the_clock_stands() {
        let bytes = |seed: u64| {
            let mut state = seed;
            [mixed(&mut state), mixed(&mut state)]
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
        let [first, second] = bytes(0);
        assert_ne!(first, second);
        let wall = Standing(Duration::from_millis(7));
        assert_eq!((wall.now(), wall.now()), (Duration::from_millis(7), Duration::from_millis(7)));
        let monotonic = Counting(AtomicU64::new(0));
        assert!(monotonic.now() < monotonic.now());
    }
}
