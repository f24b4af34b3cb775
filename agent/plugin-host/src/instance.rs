//! One plugin with its warm instance: every call has its limits, and a fault costs the instance and nothing else.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wasmtime::{Store, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::bindings::Version;
use crate::capability::Capabilities;
use crate::clock;
use crate::costs::Costs;
use crate::engine::Machine;
use crate::error::{CallError, Fault, FaultKind, PluginError};
use crate::guest::{CpuSpent, Guest, HANDLES};
use crate::probe::Watch;
use crate::spec::Limits;
use crate::world::{Answer, Description, Kinded, Ready};

/// The part of its memory that an instance may hold after a call; above it, it is replaced, since memory never shrinks.
const MEMORY_KEPT: (usize, usize) = (3, 4);

/// More fuel than anything uses.
const FUEL: u64 = u64::MAX;

/// A limit beyond what the clock can hold is this one.
const WALL_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Frames of a guest's stack that a message about a trap shows.
const FRAMES: usize = 8;

/// A plugin that is loaded: what instances are made from, and at most one of them.
pub(crate) struct Plugin<W: Kinded + ?Sized> {
    pub(crate) mould: Mould<W>,
    instance: Option<Instance<W>>,
    pub(crate) costs: Costs,
}

/// What instances are made from. Apart from them, since it is used while one of them waits, from any thread.
pub(crate) struct Mould<W: Kinded + ?Sized> {
    pub(crate) name: String,
    pub(crate) limits: Limits,
    /// the version of the package that it was built against
    pub(crate) version: Version,
    machine: Arc<Machine>,
    ready: Arc<dyn Ready<W>>,
    settings: String,
    capabilities: Arc<Capabilities>,
}

struct Instance<W: ?Sized> {
    store: Store<Guest>,
    world: Box<W>,
    calls: u64,
}

impl<W: Kinded + ?Sized> Plugin<W> {
    pub(crate) fn new(
        name: String,
        limits: Limits,
        version: Version,
        machine: Arc<Machine>,
        ready: Arc<dyn Ready<W>>,
        settings: String,
        capabilities: Arc<Capabilities>,
    ) -> Self {
        Self {
            mould: Mould { name, limits, version, machine, ready, settings, capabilities },
            instance: None,
            costs: Costs::default(),
        }
    }

    /// Makes the first instance, and asks what it is.
    pub(crate) async fn start(&mut self) -> Result<Description, CallError> {
        self.call("describe", &(), |world, store, ()| world.describe(store)).await
    }

    /// Makes another instance in the place of the one that is there.
    pub(crate) async fn restart(&mut self) -> Result<(), CallError> {
        self.instance = None;
        self.start().await.map(drop)
    }

    /// Whether there is a warm instance.
    pub(crate) fn is_warm(&self) -> bool {
        self.instance.is_some()
    }

    /// Calls a function of the guest, in a new instance where there is none. The wall limit covers all of it.
    pub(crate) async fn call<I: ?Sized + Sync, T: Send>(
        &mut self,
        function: &'static str,
        input: &I,
        work: for<'a> fn(&'a W, &'a mut Store<Guest>, &'a I) -> Answer<'a, T>,
    ) -> Result<T, CallError> {
        let mould = &self.mould;
        let _ticking = mould.machine.tick();
        let wall = mould.limits.wall;
        // The instance is out of its place while it is in use: whatever ends the call, also a caller that gives it up,
        // ends the instance with it.
        let warm = self.instance.take();
        self.costs.calls += 1;
        self.costs.instances += u64::from(warm.is_none());
        self.costs.memory = 0;
        let begun = clock::now();
        let mut stage = function;
        let work = async {
            let mut instance = match warm {
                Some(instance) => instance,
                None => mould.instantiate(&mut stage).await?,
            };
            stage = function;
            prepare(&mut instance.store);
            let answer = work(&*instance.world, &mut instance.store, input).await;
            instance.store.data_mut().tell_said();
            mould.count(&mut instance.store);
            match answer {
                Ok(answer) => Ok((instance, answer)),
                Err(error) => Err(mould.fault(function, classify(&error, instance.store.data(), &mould.limits))),
            }
        };
        let until = begun.checked_add(wall).unwrap_or(begun + WALL_MAX).into();
        let called = match &mould.capabilities.watch {
            None => tokio::time::timeout_at(until, work).await.map(Ok),
            Some(watch) => tokio::time::timeout_at(until, watched(watch, work)).await,
        };
        let meter = &mould.capabilities.meter;
        self.costs.memory_peak = meter.memory_peak.load(Ordering::Relaxed);
        self.costs.fuel = meter.fuel.load(Ordering::Relaxed);
        self.costs.busy += clock::now().saturating_duration_since(begun);
        let called = called.unwrap_or(Err(FaultKind::WallDeadline(wall)));
        if mould.capabilities.take_moved() {
            // Whatever came of it: the next instance makes the file ready that is made in its place.
            let answer = PluginError::Retry("a database was moved away or removed".to_owned());
            return Err(CallError::Plugin { plugin: mould.name.clone(), answer });
        }
        let (mut instance, answer) = called.unwrap_or_else(|kind| Err(mould.fault(stage, kind)))?;
        instance.calls += 1;
        let memory_max = mould.limits.memory / MEMORY_KEPT.1 * MEMORY_KEPT.0;
        let memory = instance.store.data().memory.memory;
        if instance.calls < mould.limits.calls && memory <= memory_max {
            self.costs.memory = memory;
            self.instance = Some(instance);
        }
        answer.map_err(|answer| CallError::Plugin { plugin: self.mould.name.clone(), answer })
    }

    /// Ends the instance because its answer cannot be.
    pub(crate) fn refuse(&mut self, function: &'static str, why: String) -> CallError {
        self.instance = None;
        self.costs.memory = 0;
        self.mould.fault(function, FaultKind::BadAnswer(why))
    }
}

impl<W: Kinded + ?Sized> Mould<W> {
    fn fault(&self, function: &'static str, kind: FaultKind) -> CallError {
        CallError::Fault(Fault { plugin: self.name.clone(), function, kind })
    }

    /// Counts the fuel that was used, and fills it up.
    fn count(&self, store: &mut Store<Guest>) {
        if self.machine.metered {
            let used = FUEL.saturating_sub(store.get_fuel().unwrap_or(FUEL));
            self.capabilities.meter.fuel.fetch_add(used, Ordering::Relaxed);
            fuel(store);
        }
    }

    /// Asks what it is, in an instance that is not configured and is let go.
    pub(crate) async fn describe_alone(&self) -> Result<Description, CallError> {
        let _ticking = self.machine.tick();
        let wall = self.limits.wall;
        let mut stage = "instantiate";
        let called = tokio::time::timeout(wall, async {
            let (mut store, world) = self.begin(&mut stage).await?;
            stage = "describe";
            prepare(&mut store);
            match world.describe(&mut store).await {
                Ok(Ok(description)) => Ok(description),
                Ok(Err(answer)) => Err(CallError::Plugin { plugin: self.name.clone(), answer }),
                Err(error) => Err(self.fault(stage, classify(&error, store.data(), &self.limits))),
            }
        })
        .await;
        called.unwrap_or_else(|_| Err(self.fault(stage, FaultKind::WallDeadline(wall))))
    }

    /// Makes an instance and configures it. Limits hold from its first instruction.
    async fn instantiate(&self, stage: &mut &'static str) -> Result<Instance<W>, CallError> {
        let (mut store, world) = self.begin(stage).await?;
        *stage = "configure";
        prepare(&mut store);
        let configured = world.configure(&mut store, &self.settings).await;
        self.count(&mut store);
        match configured {
            Ok(Ok(())) => Ok(Instance { store, world, calls: 0 }),
            Ok(Err(answer)) => Err(CallError::Plugin { plugin: self.name.clone(), answer }),
            Err(error) => Err(self.fault(stage, classify(&error, store.data(), &self.limits))),
        }
    }

    async fn begin(&self, stage: &mut &'static str) -> Result<(Store<Guest>, Box<W>), CallError> {
        *stage = "instantiate";
        let guest = Guest::new(Arc::clone(&self.capabilities), &self.limits);
        let mut store = Store::new(&self.machine.engine, guest);
        store.limiter(|guest| &mut guest.memory);
        store.epoch_deadline_callback(Guest::tick);
        store.set_hostcall_fuel(self.limits.hostcall);
        store.set_max_component_handles(HANDLES);
        if self.machine.metered {
            fuel(&mut store);
        }
        prepare(&mut store);
        match self.ready.instantiate(&mut store).await {
            Ok(world) => Ok((store, world)),
            Err(error) => Err(self.fault(stage, classify(&error, store.data(), &self.limits))),
        }
    }
}

/// Does the work, or tells as what whoever looks on ended the guest meanwhile.
async fn watched<T>(watch: &Watch, work: impl Future<Output = T>) -> Result<T, FaultKind> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        kind = watch.ended() => Err(kind),
    }
}

/// Fills the fuel up: it is counted, never a limit.
fn fuel(store: &mut Store<Guest>) {
    // Fails where the engine has none, which a metered one has.
    drop(store.set_fuel(FUEL));
}

/// Begins a call: its deadline is a tick from here, and what is counted starts again.
fn prepare(store: &mut Store<Guest>) {
    store.set_epoch_deadline(1);
    store.data_mut().begin();
}

/// Tells what ended a guest.
fn classify(error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> FaultKind {
    if error.downcast_ref::<CpuSpent>().is_some() {
        return FaultKind::CpuDeadline(limits.cpu);
    }
    if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
        return FaultKind::Exit(*status);
    }
    if guest.memory.refused {
        return FaultKind::Memory(limits.memory);
    }
    let Some(trap) = error.downcast_ref::<Trap>() else {
        // Not an instruction that went wrong, but an answer that the host could not read.
        return FaultKind::BadAnswer(innermost(error));
    };
    let mut message = trap.to_string();
    let words = guest.words.text();
    if !words.is_empty() {
        message.push_str(&format!("; its last words: {words}"));
    }
    if let Some(frames) = error.downcast_ref::<WasmBacktrace>() {
        let names: Vec<String> = frames.frames().iter().take(FRAMES).map(frame).collect();
        message.push_str(&format!("; in {}", names.join(" < ")));
    }
    FaultKind::Trap(message)
}

fn frame(frame: &wasmtime::FrameInfo) -> String {
    match frame.func_name() {
        Some(name) => name.to_owned(),
        None => format!("function {}", frame.func_index()),
    }
}

/// The cause at the bottom, without the backtrace that stands above it.
fn innermost(error: &wasmtime::Error) -> String {
    error.chain().last().map_or_else(|| error.to_string(), ToString::to_string)
}
