//! What the host keeps for one instance: its memory, its computing time, its words.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use wasmtime::component::ResourceTable;
use wasmtime::{ResourceLimiter, StoreContextMut, UpdateDeadline};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::bindings::v0_2::sink::latido::plugin::log::Level;
use crate::bindings::v0_2::sink::latido::plugin::{journal, types};
use crate::capability::log::LogBook;
use crate::capability::{Capabilities, Meter};
use crate::engine::TICK;
use crate::probe::Watch;
use crate::spec::Limits;

/// How much of what a guest said last is kept for the message about its end.
const LAST_WORDS: usize = 2 << 10;

/// How much of what a guest wrote is kept until it is told: what one call may log.
const UNTOLD_MAX: usize = 64 << 10;

/// Elements in the tables of an instance: Python's function table has 6,000.
const TABLE_ELEMENTS: usize = 100_000;

/// Handles of WASI's resources that an instance may hold at once.
pub(crate) const HANDLES: usize = 4096;

/// The host's side of one instance.
pub(crate) struct Guest {
    wasi: WasiCtx,
    table: ResourceTable,
    pub(crate) memory: MemoryLimiter,
    pub(crate) log: LogBook,
    pub(crate) words: Words,
    pub(crate) capabilities: Arc<Capabilities>,
    /// of the job that the call under way is about
    pub(crate) directory: Option<Arc<Path>>,
    ticks: u32,
    ticks_max: u32,
}

impl Guest {
    pub(crate) fn new(capabilities: Arc<Capabilities>, limits: &Limits) -> Self {
        let words = Words::default();
        // No files, no environment, no arguments, no network: WASI is there for languages that need its names.
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(words.clone()).stderr(words.clone());
        if let Some(fixed) = capabilities.fixed {
            fixed.set(&mut wasi);
        }
        let wasi = wasi.build();
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        let ticks_max = u32::try_from(limits.cpu.as_millis() / TICK.as_millis()).unwrap_or(u32::MAX);
        Self {
            wasi,
            table,
            memory: MemoryLimiter {
                limit: limits.memory,
                memory: 0,
                elements: 0,
                refused: false,
                meter: Arc::clone(&capabilities.meter),
            },
            log: LogBook::new(&capabilities, limits),
            words,
            capabilities,
            directory: None,
            ticks: 0,
            ticks_max,
        }
    }

    /// Begins a call: what is counted by the call starts again, and no job's directory is there until it is named.
    pub(crate) fn begin(&mut self) {
        self.ticks = 0;
        self.directory = None;
        self.log.begin();
    }

    /// Who looks on at what it asks of the host, where somebody does.
    pub(crate) fn watch(&self) -> Option<Arc<Watch>> {
        self.capabilities.watch.clone()
    }

    /// Counts a tick of computing, and ends the guest when it has had its share.
    pub(crate) fn tick(mut context: StoreContextMut<'_, Self>) -> wasmtime::Result<UpdateDeadline> {
        let guest = context.data_mut();
        guest.ticks += 1;
        if guest.ticks > guest.ticks_max { Err(CpuSpent.into()) } else { Ok(UpdateDeadline::Yield(1)) }
    }
}

impl Guest {
    /// Puts what the guest wrote to its standard output and error into its log, as far as its budget goes.
    pub(crate) fn tell_said(&mut self) {
        let said = self.words.take_said();
        for line in String::from_utf8_lossy(&said).lines().filter(|line| !line.trim().is_empty()) {
            self.log.write(Level::Info, line);
        }
    }
}

impl Drop for Guest {
    /// A guest that was ended in the middle of a call has said something all the same.
    fn drop(&mut self) {
        self.tell_said();
    }
}

/// The guest has computed for as long as it may.
#[derive(Debug, thiserror::Error)]
#[error("computing time is used up")]
pub(crate) struct CpuSpent;

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

// Interfaces of nouns alone: nothing in them can be called.
impl types::Host for Guest {}
impl journal::Host for Guest {}

/// Limits the sum of all memories of an instance, and remembers that it had to.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: usize,
    /// bytes in use
    pub(crate) memory: usize,
    elements: usize,
    /// whether more was asked for than there is
    pub(crate) refused: bool,
    meter: Arc<Meter>,
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let sum = self.memory.saturating_add(desired.saturating_sub(current));
        if sum > self.limit {
            self.refused = true;
            return Ok(false);
        }
        if maximum.is_none_or(|maximum| desired <= maximum) {
            self.memory = sum;
            self.meter.memory_peak.fetch_max(sum, Ordering::Relaxed);
        }
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let sum = self.elements.saturating_add(desired.saturating_sub(current));
        if sum > TABLE_ELEMENTS {
            return Ok(false);
        }
        self.elements = sum;
        Ok(true)
    }
}

/// What a guest said: the tail of its standard output and error and of its log's errors, and what of the former is not in
/// its log yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    last: VecDeque<u8>,
    untold: Vec<u8>,
}

impl Words {
    /// Adds to the last words alone.
    pub(crate) fn add(&self, bytes: &[u8]) {
        let last = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).last;
        let tail = bytes.get(bytes.len().saturating_sub(LAST_WORDS)..).unwrap_or(bytes);
        last.extend(tail);
        let excess = last.len().saturating_sub(LAST_WORDS);
        last.drain(..excess);
    }

    /// Keeps what was written to standard output or error until it is told; what is too much is dropped.
    fn say(&self, bytes: &[u8]) {
        self.add(bytes);
        let untold = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).untold;
        let room = UNTOLD_MAX.saturating_sub(untold.len());
        untold.extend(bytes.iter().take(room));
    }

    fn take_said(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).untold)
    }

    /// What is kept, as text without control characters.
    pub(crate) fn text(&self) -> String {
        let kept: Vec<u8> = self.0.lock().unwrap_or_else(PoisonError::into_inner).last.iter().copied().collect();
        let text = String::from_utf8_lossy(&kept);
        crate::capability::log::printable(text.trim(), LAST_WORDS)
    }
}

impl IsTerminal for Words {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Words {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }
}

impl AsyncWrite for Words {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.say(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
