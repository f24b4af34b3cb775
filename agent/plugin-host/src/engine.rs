//! The WebAssembly engine, and the thread that ticks while guests compute.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use wasmtime::{Config, Engine, EngineWeak};

/// How often a guest that computes is looked at: it yields to the other tasks of its thread, and its time is counted.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Stack of a guest. What the fiber has beyond it is for the host's functions.
const GUEST_STACK: usize = 512 << 10;
const FIBER_STACK: usize = 2 << 20;

/// The engine with its ticker. There is one in a host, made when the first plugin is loaded.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    /// Whether guests count the instructions that they run.
    pub(crate) metered: bool,
    /// Names what compiled code depends on: version and settings of the engine, and the processor.
    pub(crate) compatibility: String,
    ticker: Arc<Ticker>,
}

impl Machine {
    pub(crate) fn new(metered: bool) -> wasmtime::Result<Self> {
        let engine = engine(metered)?;
        let mut hasher = DigestHasher(Sha256::new());
        std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut hasher);
        let compatibility = hasher.0.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let ticker = Arc::new(Ticker::default());
        let (ticking, weak) = (Arc::clone(&ticker), engine.weak());
        thread::Builder::new().name("latido-ticker".to_owned()).spawn(move || ticking.run(&weak))?;
        Ok(Self { engine, metered, compatibility, ticker })
    }

    /// Lets the epoch tick until the answer is dropped.
    pub(crate) fn tick(&self) -> Ticking {
        self.ticker.change(|calls| *calls += 1);
        Ticking(Arc::clone(&self.ticker))
    }
}

/// The engine that runs plugins, and that compiles them in whatever process.
fn engine(metered: bool) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.consume_fuel(metered);
    config.epoch_interruption(true);
    // The interfaces are synchronous, and asynchronous components make every call slower.
    config.concurrency_support(false);
    config.max_wasm_stack(GUEST_STACK).async_stack_size(FIBER_STACK);
    // Nothing that a plugin needs: less to attack.
    config.wasm_memory64(false);
    // A component made of several, as componentize-qjs makes them, copies between their memories.
    config.wasm_multi_memory(true);
    Engine::new(&config)
}

/// Compiles a component for the hosts of this program and machine. Nothing of it runs.
///
/// # Errors
///
/// In the compiler's words.
pub fn compile(component: &[u8]) -> Result<Vec<u8>, String> {
    engine(false).and_then(|engine| engine.precompile_component(component)).map_err(|error| format!("{error:#}"))
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.ticker.calls.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.ticker.changed.notify_all();
    }
}

/// Ticks while a call is under way and rests otherwise, so that an agent at rest wakes up for nothing.
#[derive(Default)]
struct Ticker {
    calls: Mutex<Calls>,
    changed: Condvar,
}

#[derive(Default)]
struct Calls {
    count: usize,
    /// the ticker waits for a call, and has to be woken
    resting: bool,
    ended: bool,
}

impl Ticker {
    fn run(&self, engine: &EngineWeak) {
        loop {
            {
                let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
                while calls.count == 0 && !calls.ended {
                    calls.resting = true;
                    calls = self.changed.wait(calls).unwrap_or_else(PoisonError::into_inner);
                }
                calls.resting = false;
                if calls.ended {
                    return;
                }
            }
            pause();
            let Some(engine) = engine.upgrade() else { return };
            engine.increment_epoch();
        }
    }

    fn change(&self, change: impl FnOnce(&mut usize)) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut calls.count);
        // Between two calls that follow each other it does not rest, and nobody pays for waking it.
        let is_to_wake = calls.resting && calls.count > 0;
        drop(calls);
        if is_to_wake {
            self.changed.notify_one();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the tick itself: a thread of its own that does nothing else")]
fn pause() {
    thread::sleep(TICK);
}

/// While it lives the epoch ticks.
pub(crate) struct Ticking(Arc<Ticker>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.change(|calls| *calls = calls.saturating_sub(1));
    }
}

/// Feeds what is hashed into a digest that is the same in every build.
struct DigestHasher(Sha256);

impl std::hash::Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        0 // only the whole digest is asked for
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
