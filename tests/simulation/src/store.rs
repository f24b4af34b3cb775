//! The memory store behind a disk that can be slow or full. What was committed outlives the agent that committed it.

use std::sync::{Arc, Mutex, PoisonError};

use latido_store::{
    AlertRow, Batch, BeatBatch, BeatsKept, Checkpoint, Committed, Cursor, EntryRow, JournalBound, MemoryStore,
    RegistryRows, SetAside, SilenceRow, Store, StoreError, SubjectRow, Trimmed,
};

/// What lies on the simulated disk.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) memory: MemoryStore,
    /// nothing can be written
    pub(crate) fails: bool,
    /// commits since this was last asked
    pub(crate) commits: u32,
    /// the number of who took it last
    holder: u32,
}

/// A handle of one life of the agent.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedStore {
    kept: Arc<Mutex<Kept>>,
    holder: Holder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    Taking,
    Numbered(u32),
}

impl SimulatedStore {
    pub(crate) fn new() -> Self {
        let memory = MemoryStore::new("simulated");
        let kept = Arc::new(Mutex::new(Kept { memory, fails: false, commits: 0, holder: 0 }));
        Self { kept, holder: Holder::Nobody }
    }

    /// Does something with what is kept.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&mut self, act: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut holder = self.holder;
        let written = self.with(|kept| {
            kept.commits += 1;
            if kept.fails {
                let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
                return Err(StoreError::Full { store: "simulated".to_owned(), source: Box::new(full) });
            }
            match holder {
                Holder::Nobody => {}
                Holder::Taking => {
                    kept.holder += 1;
                    holder = Holder::Numbered(kept.holder);
                }
                Holder::Numbered(number) if number == kept.holder => {}
                Holder::Numbered(_) => return Err(StoreError::TakenOver { store: "simulated".to_owned() }),
            }
            act(&mut kept.memory)
        });
        self.holder = holder;
        written
    }
}

impl Store for SimulatedStore {
    fn take(&mut self) -> Result<(), StoreError> {
        self.holder = Holder::Taking;
        self.write(|_| Ok(()))
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        self.write(|memory| memory.commit(batch))
    }

    fn commit_quick(&mut self, batch: &Batch) -> Result<Committed, StoreError> {
        self.write(|memory| memory.commit_quick(batch))
    }

    fn keep_beats(&mut self, batch: &BeatBatch<'_>) -> Result<BeatsKept, StoreError> {
        self.write(|memory| memory.keep_beats(batch))
    }

    fn journal_id(&self) -> &str {
        "simulated"
    }

    fn entries_after(&self, sequence: u64, kinds: &[String], limit: usize) -> Result<Vec<EntryRow>, StoreError> {
        self.with(|kept| kept.memory.entries_after(sequence, kinds, limit))
    }

    fn last_sequence(&self) -> Result<u64, StoreError> {
        self.with(|kept| kept.memory.last_sequence())
    }

    fn subjects(&self) -> Result<Vec<SubjectRow>, StoreError> {
        self.with(|kept| kept.memory.subjects())
    }

    fn alerts(&self) -> Result<Vec<AlertRow>, StoreError> {
        self.with(|kept| kept.memory.alerts())
    }

    fn silences(&self) -> Result<Vec<SilenceRow>, StoreError> {
        self.with(|kept| kept.memory.silences())
    }

    fn registry(&self) -> Result<RegistryRows, StoreError> {
        self.with(|kept| kept.memory.registry())
    }

    fn attach_sink(&mut self, sink: &str) -> Result<Cursor, StoreError> {
        self.write(|memory| memory.attach_sink(sink))
    }

    fn detach_sink(&mut self, sink: &str) -> Result<(), StoreError> {
        self.write(|memory| memory.detach_sink(sink))
    }

    fn cursor(&self, sink: &str) -> Result<Cursor, StoreError> {
        self.with(|kept| kept.memory.cursor(sink))
    }

    fn advance(&mut self, sink: &str, sequence: u64) -> Result<(), StoreError> {
        self.write(|memory| memory.advance(sink, sequence))
    }

    fn set_aside(&mut self, sink: &str, sequence: u64, why: &str) -> Result<(), StoreError> {
        self.write(|memory| memory.set_aside(sink, sequence, why))
    }

    fn set_aside_count(&self, sink: &str) -> Result<u64, StoreError> {
        self.with(|kept| kept.memory.set_aside_count(sink))
    }

    fn set_aside_entries(&self, sink: &str) -> Result<Vec<SetAside>, StoreError> {
        self.with(|kept| kept.memory.set_aside_entries(sink))
    }

    fn plugin_state(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|kept| kept.memory.plugin_state(plugin, key))
    }

    fn set_plugin_state(&mut self, plugin: &str, key: &str, value: Option<&[u8]>) -> Result<(), StoreError> {
        self.write(|memory| memory.set_plugin_state(plugin, key, value))
    }

    fn plugin_keys(&self, plugin: &str) -> Result<Vec<String>, StoreError> {
        self.with(|kept| kept.memory.plugin_keys(plugin))
    }

    fn trim(&mut self, keep: JournalBound) -> Result<Trimmed, StoreError> {
        self.write(|memory| memory.trim(keep))
    }

    fn checkpoint(&mut self) -> Result<Checkpoint, StoreError> {
        self.with(|kept| kept.memory.checkpoint())
    }
}
